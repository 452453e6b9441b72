package proxy_test

import (
	"fmt"
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

// The counter says when require-key can be set, so it counts each request that require-key
// would refuse.
func TestWithoutKey_OddSpellings_CountedAsRequireKeyRefuses(t *testing.T) {
	asked := []struct {
		method, override string
		refused          bool
	}{{"POST", "", true}, {"patch", "", true}, {"Post", "", true}, {"GET", "POST", true}, {"GET", "", false}, {"get", "", false}}
	counted, strict := play(t, created(), "scope: single\n"), play(t, created(), "scope: single\nrequire-key: true\n")
	want := 0
	for _, a := range asked {
		var headers []string
		if a.override != "" {
			headers = []string{"X-HTTP-Method-Override", a.override}
		}
		if r := counted.send(a.method, "/a", "x", headers...); r.status != 201 {
			t.Errorf("%+v: %+v", a, r)
		}
		if r := strict.send(a.method, "/a", "x", headers...); (r.status == 400) != a.refused {
			t.Errorf("%+v with require-key: %+v", a, r)
		}
		if a.refused {
			want++
		}
	}
	if text := fetch(t, "GET", counted.admin.URL+"/metrics", "").body; !strings.Contains(text, fmt.Sprintf("semel_unkeyed_requests_total{operation=\"http\",rule=\"/\"} %d", want)) {
		t.Errorf("want %d, counted:\n%s", want, text)
	}
}
