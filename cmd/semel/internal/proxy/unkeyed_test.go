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

// Where keys can be in bodies, requests that have none pass, too: log-in forms, uploads, and
// requests of nobody known. A tenant or a body that cannot be judged is refused.
func TestKeyFrom_RequestWithoutKey_Passes(t *testing.T) {
	const form = "application/x-www-form-urlencoded"
	s := play(t, created(), "scope: header:X-Account\nkey-from: [id]\nmax-body: 1KiB\nrules: [{match: POST /pay, require-key: true, key-from: [id]}]\n")
	large := strings.Repeat("x", 2000)
	passed := 0
	for name, c := range map[string]struct {
		path, body string
		headers    []string
		status     int
	}{
		"a log-in form":                {"/login", "user=ann", []string{"Content-Type", form}, 201},
		"a form of a tenant":           {"/form", "a=b", []string{"Content-Type", form, "X-Account", "ann"}, 201},
		"without a body":               {"/logout", "", []string{"X-Account", "ann"}, 201},
		"a list":                       {"/list", `[{"id":"a"}]`, []string{"Content-Type", "application/json", "X-Account", "ann"}, 201},
		"a large upload":               {"/upload", large, []string{"Content-Type", "image/png", "X-Account", "ann"}, 201},
		"a large upload of nobody":     {"/upload", large, []string{"Content-Type", "image/png"}, 201},
		"an empty tenant":              {"/login", "user=ann", []string{"X-Account", ""}, 201},
		"large JSON":                   {"/large", `{"x":"` + large + `"}`, []string{"Content-Type", "application/json", "X-Account", "ann"}, 413},
		"large, of no known type":      {"/large", large, []string{"X-Account", "ann"}, 413},
		"two tenants":                  {"/two", `{"id":"a"}`, []string{"X-Account", "ann", "X-Account", "bob"}, 401},
		"a key in a header, no tenant": {"/key", "", []string{"Idempotency-Key", "k"}, 401},
		"require-key, no tenant":       {"/pay", `{"id":"a"}`, nil, 401},
		"require-key, a form":          {"/pay", "user=ann", []string{"Content-Type", form, "X-Account", "ann"}, 400},
	} {
		r := s.send("POST", c.path, c.body, c.headers...)
		if r.status != c.status {
			t.Errorf("%s: %+v", name, r)
		}
		if c.status == 201 {
			passed++
			if last := s.backend.bodies[s.backend.count()-1]; last != c.body {
				t.Errorf("%s: the service got %d bytes, want %d", name, len(last), len(c.body))
			}
		}
	}
	if n := s.backend.count(); n != passed {
		t.Errorf("the service got %d requests, want %d", n, passed)
	}
	if text := fetch(t, "GET", s.admin.URL+"/metrics", "").body; !strings.Contains(text, fmt.Sprintf("semel_unkeyed_requests_total{operation=\"http\",rule=\"/\"} %d", passed)) {
		t.Errorf("want %d, counted:\n%s", passed, text)
	}
	for range 2 { // with a key and a tenant, it takes effect once
		s.send("POST", "/orders", `{"id":"a"}`, "X-Account", "ann")
	}
	if n := s.backend.count(); n != passed+1 {
		t.Errorf("a duplicate reached the service")
	}
}

// The client learns which member it has to write in another way.
func TestKeyFrom_OtherCapitals_400NamesBothSpellings(t *testing.T) {
	s := play(t, created(), "scope: single\nkey-from: [order.id]\n")
	for range 2 {
		r := s.send("POST", "/orders", `{"order":{"ID":"o-1"},"cents":1}`)
		if r.status != 400 || !strings.Contains(r.body, `"payload_malformed"`) || !strings.Contains(r.body, `\"order.ID\"`) || !strings.Contains(r.body, `\"order.id\"`) || !strings.Contains(r.body, "Nothing was done") {
			t.Errorf("%+v", r)
		}
	}
	if n := s.backend.count(); n != 0 {
		t.Errorf("the service got %d requests", n)
	}
	if r := s.send("POST", "/orders", `{"order":{"id":"o-1"},"cents":1}`); r.status != 201 {
		t.Errorf("%+v", r)
	}
}
