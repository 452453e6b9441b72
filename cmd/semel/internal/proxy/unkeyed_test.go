package proxy_test

import (
	"strings"
	"testing"
)

// A log-in form sends no key, so it must work behind the proxy without an option.
func TestPost_WithoutKey_PassesCountedLoggedOnce(t *testing.T) {
	s := play(t, created(), "scope: single\nrules: [{match: POST /pay, require-key: true}]\n")
	for range 3 {
		if r := s.send("POST", "/login", "user=ann"); r.status != 201 || r.replayed() {
			t.Fatalf("%+v", r)
		}
	}
	s.send("GET", "/page", "")
	if r := s.send("POST", "/pay", ""); r.status != 400 || !strings.Contains(r.body, `"key_missing"`) {
		t.Errorf("with require-key in its rule: %+v", r)
	}
	s.pay("k")
	if text := fetch(t, "GET", s.admin.URL+"/metrics", "").body; !strings.Contains(text, `semel_unkeyed_requests_total{operation="http",rule="/"} 3`) ||
		!strings.Contains(text, `semel_unkeyed_requests_total{operation="http",rule="POST /pay"} 0`) {
		t.Errorf("counted:\n%s", text)
	}
	if n := strings.Count(s.log.String(), "passes unprotected"); n != 1 {
		t.Errorf("logged %d times", n)
	}
}
