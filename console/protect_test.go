package console_test

import (
	"bufio"
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/semel-go/semel/console"
	"github.com/semel-go/semel/store"
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

func TestLive_RecordChanges_SendsEvent(t *testing.T) {
	s := newSite(t, console.Options{Operator: eve})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	parked := named("POST /payments", "ann", "parked")
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+"live/"+parked.path, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	if !lines.Scan() || lines.Text() != ": ready" {
		t.Fatalf("the first line is %q", lines.Text())
	}
	before := s.state(parked.key)
	if _, err := s.store.Swap(t.Context(), before.Seen(), store.Proposal{Key: parked.key, State: store.Released, Owner: store.Owner{7}}); err != nil {
		t.Fatal(err)
	}
	for lines.Scan() {
		if lines.Text() == "event: changed" {
			return
		}
	}
	t.Errorf("the stream ended without an event: %v", lines.Err())
}
