package console_test

import (
	"strings"
	"testing"

	"github.com/semel-go/semel/console"
)

func TestPages_HostileNames_AreText(t *testing.T) {
	s := newSite(t, console.Options{Operator: eve, ShowBodies: true})
	bad := named("POST /payments", "ann", hostile)
	for _, path := range []string{"", "records", bad.path, named("charge", hostile, "call").path, "records?key=" + hostile, "sagas?name=" + hostile, "?done=" + hostile, "records?state=" + hostile} {
		if page := s.get(path); strings.Contains(page.body, "<script>alert") || !strings.Contains(page.body, "&lt;script&gt;") && path != "?done="+hostile {
			t.Errorf("%s: the name is not shown as text:\n%s", path, page.body)
		}
	}
}

func TestPages_BrowserRunsNothingElse(t *testing.T) {
	s := newSite(t, console.Options{})
	for _, path := range []string{"", "records", "record", "assets/style.css", "none"} {
		h := s.get(path).Header
		policy := h.Get("Content-Security-Policy")
		if !strings.Contains(policy, "default-src 'none'") || !strings.Contains(policy, "frame-ancestors 'none'") || strings.Contains(policy, "unsafe") {
			t.Errorf("%s: the policy is %q", path, policy)
		}
		if h.Get("X-Frame-Options") != "DENY" || h.Get("X-Content-Type-Options") != "nosniff" || h.Get("Cache-Control") != "no-store" {
			t.Errorf("%s: the headers are %v", path, h)
		}
	}
}

// The policy forbids scripts and styles in the pages themselves.
func TestPages_HaveNoInlineScriptOrStyle(t *testing.T) {
	s := newSite(t, console.Options{Operator: eve})
	for _, path := range []string{"", "records", "sagas", named("POST /payments", "ann", "parked").path} {
		body := s.get(path).body
		for _, text := range []string{"<script>", "<style", ` style="`, ` onclick`, "javascript:"} {
			if strings.Contains(body, text) {
				t.Errorf("%s: has %s", path, text)
			}
		}
	}
}
