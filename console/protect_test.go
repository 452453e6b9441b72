package console_test

import (
	"net/http"
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

// Each search reads the store for up to 5 s, and a page of another site could start many.
func TestPages_LoadedByAnotherSite_Refused(t *testing.T) {
	s := newSite(t, console.Options{})
	for _, c := range []struct {
		site, mode, dest string
		status           int
	}{
		{"cross-site", "no-cors", "image", 403},
		{"cross-site", "cors", "empty", 403},
		{"same-site", "no-cors", "script", 403},
		{"cross-site", "navigate", "iframe", 403},
		{"cross-site", "navigate", "document", 200},
		{"same-site", "navigate", "document", 200},
		{"same-origin", "cors", "empty", 200},
		{"none", "navigate", "document", 200},
		{"", "", "", 200},
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url+"records?key=x", nil)
		if err != nil {
			t.Fatal(err)
		}
		for name, v := range map[string]string{"Sec-Fetch-Site": c.site, "Sec-Fetch-Mode": c.mode, "Sec-Fetch-Dest": c.dest} {
			if v != "" {
				r.Header.Set(name, v)
			}
		}
		if a := s.do(r); a.StatusCode != c.status {
			t.Errorf("%+v: answered %d", c, a.StatusCode)
		}
	}
}
