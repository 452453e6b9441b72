package semelhttp_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/semelhttp"
)

func TestRoute_Pattern_HasMethodAndPattern(t *testing.T) {
	for pattern, want := range map[string]semel.Operation{
		"POST /payments/{id}":       "POST /payments/{id}",
		"/payments/{id}":            "POST /payments/{id}",
		"example.com/payments/{id}": "POST example.com/payments/{id}",
	} {
		var got semel.Operation
		mux := http.NewServeMux()
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) { got = semelhttp.Route(r) })
		r := httptest.NewRequest(http.MethodPost, "http://example.com/payments/7", nil)
		mux.ServeHTTP(httptest.NewRecorder(), r)
		if got != want {
			t.Errorf("pattern %q: %q, want %q", pattern, got, want)
		}
	}
	if got := semelhttp.Route(httptest.NewRequest(http.MethodPost, "/payments/7", nil)); got != "" {
		t.Errorf("outside a router: %q", got)
	}
}

func TestScope_Missing_IsRefused(t *testing.T) {
	const op = semel.Operation("pay")
	for name, c := range map[string]struct {
		scope  semel.Scope
		err    error
		status int
		code   string
	}{
		"an error":         {op.For("ann"), errors.New("secret"), 401, semelhttp.CodeScopeMissing},
		"an empty tenant":  {op.For(""), nil, 401, semelhttp.CodeScopeMissing},
		"a zero scope":     {semel.Scope{}, nil, 500, semelhttp.CodeMisconfigured},
		"no operation":     {semel.Operation("").For("ann"), nil, 500, semelhttp.CodeMisconfigured},
		"a bad operation":  {semel.Operation("a#b").For("ann"), nil, 500, semelhttp.CodeMisconfigured},
		"an outage":        {semel.Scope{}, fmt.Errorf("accounts: %w", semel.ErrUnavailable), 503, semelhttp.CodeStoreUnavailable},
		"a shared scope":   {op.Shared(), nil, 200, ""},
		"a tenant's scope": {op.For("ann"), nil, 200, ""},
	} {
		t.Run(name, func(t *testing.T) {
			once, err := semelhttp.Middleware(newGuard(t, nil, nil), func(*http.Request) (semel.Scope, error) { return c.scope, c.err }, nil)
			if err != nil {
				t.Fatal(err)
			}
			ran := false
			site := &testSite{t: t}
			site.serve(once(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { ran = true })), false)
			a := site.post("k", "hello")
			site.want(a, c.status, c.code)
			if ran != (c.status == 200) {
				t.Errorf("ran is %v", ran)
			}
			if strings.Contains(a.body, "secret") {
				t.Errorf("the error's text was sent: %s", a.body)
			}
		})
	}
}

// An invalid scope is the server's fault, and it is reported before the body is read.
func TestScope_Invalid_IsMisconfigured(t *testing.T) {
	for name, scope := range map[string]semel.Scope{
		"the operation": semel.Operation("a#b").For("ann"),
		"too long":      semel.Operation("pay").For(strings.Repeat("x", 256)),
		"a line break":  semel.Operation("pay").For("a\nb"),
	} {
		once, err := semelhttp.Middleware(newGuard(t, nil, nil), func(*http.Request) (semel.Scope, error) { return scope, nil }, &semelhttp.Options{
			Payload: func(*http.Request, io.Reader) (semel.Payload, error) {
				t.Errorf("%s: the body is read", name)
				return semel.NoPayload(), nil
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		site := &testSite{t: t}
		site.serve(once(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Errorf("%s: the handler ran", name) })), false)
		if a := site.post("k", "hello"); a.StatusCode != 500 || !strings.Contains(a.body, semelhttp.CodeMisconfigured) {
			t.Errorf("%s: %d %s", name, a.StatusCode, a.body)
		}
	}
}

func TestScope_Missing_BodyIsNotRead(t *testing.T) {
	once, err := semelhttp.Middleware(newGuard(t, nil, nil), func(*http.Request) (semel.Scope, error) { return semel.Scope{}, errors.New("who?") }, nil)
	if err != nil {
		t.Fatal(err)
	}
	body := &countingBody{}
	r := httptest.NewRequest(http.MethodPost, "/pay", body)
	r.Header.Set("Idempotency-Key", "k")
	once(http.NotFoundHandler()).ServeHTTP(httptest.NewRecorder(), r)
	if body.reads > 0 {
		t.Errorf("the body was read %d times", body.reads)
	}
}

type countingBody struct{ reads int }

func (b *countingBody) Read(p []byte) (int, error) { b.reads++; return len(p), nil }
