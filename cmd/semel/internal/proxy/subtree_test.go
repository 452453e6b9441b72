package proxy_test

import (
	"net/http"
	"strings"
	"testing"
)

// failing leaves each request in doubt.
func failing(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) }

// ServeMux redirects a path that lacks only the slash at the end of a rule's
// path. The proxy does not redirect: another rule may match the path.
func TestRules_PathWithoutFinalSlash_ParentRuleApplies(t *testing.T) {
	s := play(t, failing, `
scope: single
on-doubt: retry
rules:
  - match: /api/
    on-doubt: park
  - match: /api/files/
    pass-through: true
  - match: /v2/
    on-doubt: park
  - match: POST /v2/{kind}/{rest...}
    pass-through: true
  - match: /api/{$}
    pass-through: true
  - match: /alone/
    pass-through: true
`)
	for path, want := range map[string]string{
		"/api/pay": "parked", "/api/files": "parked", "/api/pay/7": "parked", "/api/a%2Fb": "parked", "/api/files/": "again",
		"/api/files/x": "again", "/api/": "again", "/alone": "again", "/api": "again",
	} {
		s.send("POST", path, "", "Idempotency-Key", "k"+path)
		before := s.backend.count()
		r := s.send("POST", path, "", "Idempotency-Key", "k"+path)
		got := "again"
		if strings.Contains(r.body, "outcome_unknown") && s.backend.count() == before {
			got = "parked"
		}
		if got != want {
			t.Errorf("%s: %s, want %s: %+v", path, got, want, r)
		}
	}
}

func TestRules_RootRule_CoversPathWithoutFinalSlash(t *testing.T) {
	s := play(t, failing, "scope: single\nrules: [{match: /, on-doubt: park}, {match: /files/, pass-through: true}]\n")
	s.send("POST", "/files", "", "Idempotency-Key", "k")
	if r := s.send("POST", "/files", "", "Idempotency-Key", "k"); !strings.Contains(r.body, "outcome_unknown") || s.backend.count() != 1 {
		t.Errorf("%+v", r)
	}
}
