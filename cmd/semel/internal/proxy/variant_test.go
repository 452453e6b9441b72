package proxy_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
)

// A rule that parks: a spelling that evades it would reach the service twice.
func TestRules_OtherSpellingOfPath_IsNotWeaker(t *testing.T) {
	s := play(t, func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(500) }, `
scope: single
rules:
  - match: POST /v1/Pay/{ID}
    on-doubt: park
  - match: PATCH /v1/items/
    on-doubt: park
  - match: /
    pass-through: true
`)
	for i, c := range []struct {
		method, path string
		parked       bool
	}{
		{"POST", "/v1/Pay/7", true},
		{"POST", "/v1/pay/7", true},
		{"POST", "/V1/PAY/7", true},
		{"POST", "/v1/Pay/7/", true},
		{"POST", "/v1/Pay/7;x=1", true},
		{"POST", "/v1;a=b/Pay/7", true},
		{"POST", "/v1%2fPay%2F7", true},
		{"POST", "/v1%252fPay/7", true},
		{"POST", `/v1\Pay\7`, true},
		{"POST", "/v1/Pay/7.json", true},
		{"POST", "/v1/Pay%20/7", true},
		{"POST", "/v1/pay%00/7", true},
		{"post", "/v1/Pay/7", true},
		{"GET", "/v1/pay/7", false},
		{"POST", "/v1/Payments/7", false},
		{"POST", "/v1/Pay/7/capture", false},
		{"patch", "/v1/items/7", true},
		{"PATCH", "/v1/Items", true},
		{"PATCH", "/v1/ITEMS/7/8", true},
		{"POST", "/", false},
	} {
		before := s.backend.count()
		head := fmt.Sprintf("%s %s HTTP/1.1\r\nHost: a\r\nIdempotency-Key: k%d\r\nContent-Length: 0\r\n\r\n", c.method, c.path, i)
		for range 2 {
			res := raw(t, s.URL, head)
			_, _ = io.Copy(io.Discard, res.Body)
		}
		if parked := s.backend.count()-before == 1; parked != c.parked {
			t.Errorf("%s %s: the service was asked %d times", c.method, c.path, s.backend.count()-before)
		}
	}
}

func TestRules_MethodReplacedByHeader_RuleOfThatMethodApplies(t *testing.T) {
	s := play(t, func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(500) }, `
scope: single
rules:
  - match: PATCH /pay
    on-doubt: park
`)
	for header, asked := range map[string]int{"X-Http-Method-Override": 1, "X-Method-Override": 1, "X-Other": 2} {
		before := s.backend.count()
		for range 2 {
			s.send("POST", "/pay", "", "Idempotency-Key", "k"+header, header, "patch")
		}
		if got := s.backend.count() - before; got != asked {
			t.Errorf("%s: the service was asked %d times, want %d", header, got, asked)
		}
	}
}

// Many servers (CGI, WSGI, Rack) read X_HTTP_METHOD_OVERRIDE as X-HTTP-Method-Override, so
// a GET with it may be a POST that passes by require-key.
func TestMethodOverride_UnderscoresOrConnection_Refused(t *testing.T) {
	s := play(t, created(), "scope: single\nrequire-key: true\n")
	for _, c := range []struct{ name, connection, code string }{
		{"X-HTTP-Method-Override", "", "key_missing"},
		{"X_HTTP_METHOD_OVERRIDE", "", "ambiguous_header"},
		{"X_Http-Method", "", "ambiguous_header"},
		{"x-method_override", "", "ambiguous_header"},
		{"X-Method-Override", "x-method-override", "protected_header"},
	} {
		headers := []string{c.name, "POST"}
		if c.connection != "" {
			headers = append(headers, "Connection", c.connection)
		}
		if r := s.send("GET", "/pay", "", headers...); r.status != http.StatusBadRequest || !strings.Contains(r.body, `"`+c.code+`"`) {
			t.Errorf("%s: %+v, want %s", c.name, r, c.code)
		}
	}
	if n := s.backend.count(); n != 0 {
		t.Errorf("the service was asked %d times", n)
	}
}

func TestRules_TwoWithOneNormalForm_StricterApplies(t *testing.T) {
	s := play(t, func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(500) }, `
scope: single
rules:
  - {match: /Pay, pass-through: true}
  - {match: POST /pay, on-doubt: park}
`)
	for path, asked := range map[string]int{"/pay": 1, "/PAY": 1, "/Pay": 1} {
		before := s.backend.count()
		for range 2 {
			s.send("POST", path, "", "Idempotency-Key", "k"+path)
		}
		if got := s.backend.count() - before; got != asked {
			t.Errorf("%s: the service was asked %d times, want %d", path, got, asked)
		}
	}
}

func TestMethod_OtherSpelling_TakesEffectOnce(t *testing.T) {
	s := play(t, created(), "scope: single\n")
	for i, c := range []struct{ method, header string }{{"patch", ""}, {"Post", ""}, {"GET", "X-HTTP-Method-Override: POST\r\n"}} {
		before := s.backend.count()
		for range 2 {
			res := raw(t, s.URL, fmt.Sprintf("%s /pay HTTP/1.1\r\nHost: a\r\nIdempotency-Key: k%d\r\n%sContent-Length: 0\r\n\r\n", c.method, i, c.header))
			_, _ = io.Copy(io.Discard, res.Body)
		}
		if got := s.backend.count() - before; got != 1 {
			t.Errorf("%+v: the service was asked %d times", c, got)
		}
	}
}

func TestStatuses_Configured_Decide(t *testing.T) {
	s := play(t, func(w http.ResponseWriter, r *http.Request) {
		status := 0
		_, _ = fmt.Sscanf(r.URL.Path, "/%d", &status)
		w.WriteHeader(status)
	}, "scope: single\nfinal-statuses: [402, 501]\nno-effect-statuses: [404, 302]\nrules: [{match: /404, no-effect-statuses: []}]\n")
	for path, asked := range map[string]int{"/402": 1, "/501": 1, "/404": 1, "/302": 2, "/201": 1, "/500": 2} {
		before := s.backend.count()
		for range 2 {
			s.send("POST", path, "", "Idempotency-Key", "k"+path)
		}
		if got := s.backend.count() - before; got != asked {
			t.Errorf("%s: the service was asked %d times, want %d", path, got, asked)
		}
	}
}

// The proxy's own 502 is never a result.
func TestFinalStatuses_NoAnswer_StaysInDoubt(t *testing.T) {
	s := play(t, func(w http.ResponseWriter, r *http.Request) { panic(http.ErrAbortHandler) }, "scope: single\nfinal-statuses: [502]\n")
	for range 2 {
		if r := s.pay("k"); r.status != 502 || r.replayed() {
			t.Errorf("%+v", r)
		}
	}
}

func TestReplayHeaders_Configured_AreAdded(t *testing.T) {
	s := play(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Trace", "7")
		w.Header().Set("Vary", "Origin")
		w.WriteHeader(201)
	}, "scope: single\nreplay-headers: [x-trace]\n")
	s.pay("k")
	if r := s.pay("k"); !r.replayed() || r.header.Get("X-Trace") != "7" || r.header.Get("Vary") != "Origin" {
		t.Errorf("%+v", r)
	}
}

func TestFingerprintHeaders_Configured_AreCompared(t *testing.T) {
	s := play(t, created(), "scope: single\nfingerprint-headers: [X-Version]\n")
	s.pay("k", "X-Version", "1", "If-Match", "a")
	if r := s.pay("k", "X-Version", "1", "If-Match", "b"); !r.replayed() {
		t.Errorf("a header that is not listed counts: %+v", r)
	}
	if r := s.pay("k", "X-Version", "2"); r.status != 422 {
		t.Errorf("a listed header does not count: %+v", r)
	}
}

func TestRefusalOrigins_EachRefusal_IsReadable(t *testing.T) {
	s := play(t, func(w http.ResponseWriter, r *http.Request) { panic(http.ErrAbortHandler) }, "scope: single\nrequire-key: true\nrefusal-origins: [https://shop.example]\n")
	for what, r := range map[string]reply{
		"no key":       s.send("POST", "/pay", "", "Origin", "https://shop.example"),
		"no upstream":  s.pay("k", "Origin", "https://shop.example"),
		"of the proxy": s.pay("k", "Origin", "https://shop.example", "Connection", "Cookie"),
	} {
		if r.status < 400 || r.header.Get("Access-Control-Allow-Origin") != "https://shop.example" || !strings.Contains(r.header.Get("Content-Type"), "problem") {
			t.Errorf("%s: %+v", what, r)
		}
	}
}

func TestRules_VariantOfWeakerRule_KeepsItsOwn(t *testing.T) {
	s := play(t, func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(500) }, `
scope: single
on-doubt: park
rules:
  - {match: POST /Free, pass-through: true}
`)
	for path, asked := range map[string]int{"/Free": 2, "/free": 1, "/Free/": 1} {
		before := s.backend.count()
		for range 2 {
			s.send("POST", path, "", "Idempotency-Key", "k"+path)
		}
		if got := s.backend.count() - before; got != asked {
			t.Errorf("%s: the service was asked %d times, want %d", path, got, asked)
		}
	}
}

// As in net/http, /orders does not match /orders/. If the rule of /orders is weaker than the
// one of /orders/ and has an operation of its own, the same key takes effect under both.
func TestRules_SlashAtEndOfWeakerRule_IsOfAnotherOperation(t *testing.T) {
	for rules, asked := range map[string]int{
		"[{match: POST /orders, on-doubt: retry, operation: orders}]":                                                                  2,
		"[{match: POST /orders, on-doubt: retry, operation: orders}, {match: 'POST /orders/{$}', on-doubt: retry, operation: orders}]": 1,
		"[{match: POST /orders, on-doubt: retry}]":                                                                                     1,
	} {
		s := play(t, created(), "scope: single\non-doubt: park\nrules: "+rules+"\n")
		for _, path := range []string{"/orders", "/orders/"} {
			s.send("POST", path, "", "Idempotency-Key", "k")
		}
		if n := s.backend.count(); n != asked {
			t.Errorf("%s: the service was asked %d times, want %d", rules, n, asked)
		}
	}
}
