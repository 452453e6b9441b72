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

func TestRoute_Request_NamesMethodAndPattern(t *testing.T) {
	for pattern, want := range map[string]string{
		"POST /payments/{id}":       "POST /payments/{id}",
		"/payments/{id}":            "POST /payments/{id}",
		"example.com/payments/{id}": "POST example.com/payments/{id}",
	} {
		var got string
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

func TestMiddleware_NoTenantOrOperation_RefusesTheRequest(t *testing.T) {
	for name, c := range map[string]struct {
		operation, tenant string
		err               error
		status            int
		code              string
	}{
		"an error":        {"pay", "ann", errors.New("secret"), 401, semelhttp.CodeTenantMissing},
		"an empty tenant": {"pay", "", nil, 401, semelhttp.CodeTenantMissing},
		"nothing at all":  {"", "", nil, 500, semelhttp.CodeMisconfigured},
		"no operation":    {"", "ann", nil, 500, semelhttp.CodeMisconfigured},
		"a bad operation": {"a#b", "ann", nil, 500, semelhttp.CodeMisconfigured},
		"an outage":       {"pay", "", fmt.Errorf("accounts: %w", semel.ErrUnavailable), 503, semelhttp.CodeStoreUnavailable},
		"shared":          {"pay", semel.Shared, nil, 200, ""},
		"a tenant":        {"pay", "ann", nil, 200, ""},
	} {
		t.Run(name, func(t *testing.T) {
			once, err := semelhttp.Middleware(newGuard(t, nil, nil), func(*http.Request) (string, error) { return c.tenant, c.err }, &semelhttp.Options{
				Operation: func(*http.Request) string { return c.operation },
			})
			if err != nil {
				t.Fatal(err)
			}
			ran := false
			x := &testSite{t: t}
			x.serve(once(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { ran = true; w.WriteHeader(200) })), false)
			a := x.post("k", "hello")
			x.want(a, c.status, c.code)
			if ran != (c.status == 200) {
				t.Errorf("ran is %v", ran)
			}
			if strings.Contains(a.body, "secret") {
				t.Errorf("the error's text was sent: %s", a.body)
			}
		})
	}
}

// The error is found before the body is read.
func TestMiddleware_InvalidOperationOrTenant_IsTheServersFault(t *testing.T) {
	for name, call := range map[string]semel.Call{
		"the operation": {Operation: "a#b", Tenant: "ann"},
		"too long":      {Operation: "pay", Tenant: strings.Repeat("x", 256)},
		"a line break":  {Operation: "pay", Tenant: "a\nb"},
	} {
		once, err := semelhttp.Middleware(newGuard(t, nil, nil), func(*http.Request) (string, error) { return call.Tenant, nil }, &semelhttp.Options{
			Operation: func(*http.Request) string { return call.Operation },
			Payload: func(*http.Request, io.Reader) (semel.Payload, error) {
				t.Errorf("%s: the body is read", name)
				return semel.NoPayload(), nil
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		x := &testSite{t: t}
		x.serve(once(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Errorf("%s: the handler ran", name) })), false)
		if a := x.post("k", "hello"); a.StatusCode != 500 || !strings.Contains(a.body, semelhttp.CodeMisconfigured) {
			t.Errorf("%s: %d %s", name, a.StatusCode, a.body)
		}
	}
}

func TestMiddleware_NoTenant_ReadsNoBody(t *testing.T) {
	once, err := semelhttp.Middleware(newGuard(t, nil, nil), func(*http.Request) (string, error) { return "", errors.New("who?") }, nil)
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

// Each operation has labels of metrics and counters for ever, so clients must not choose it.
func TestRoute_MethodsWithoutEnd_FewOperations(t *testing.T) {
	operations := map[string]bool{}
	mux := http.NewServeMux()
	mux.HandleFunc("/reports", func(_ http.ResponseWriter, r *http.Request) { operations[semelhttp.Route(r)] = true })
	for _, method := range []string{"A1", "a1", "A2", "POSTS", "mkcol", "MKCOL", "post"} {
		mux.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(method, "/reports", nil))
	}
	if len(operations) != 3 || !operations["OTHER /reports"] || !operations["POST /reports"] || !operations["MKCOL /reports"] {
		t.Errorf("the operations are %v", operations)
	}
}
