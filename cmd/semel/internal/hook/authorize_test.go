package hook_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/semel-go/semel/cmd/semel/internal/hook"
)

func TestAuthorize_SendsHeadersWithoutBody(t *testing.T) {
	var got *http.Request
	h := to(t, time.Minute, func(w http.ResponseWriter, r *http.Request) {
		got = r.Clone(r.Context())
		w.WriteHeader(http.StatusNoContent)
	})
	r := httptest.NewRequest("POST", "http://pay.example/payments?a=b", strings.NewReader("body"))
	for name, v := range map[string]string{
		"Authorization": "Bearer t", "Cookie": "s=1", "X-User": "ann", "Content-Type": "a/b", "Content-Length": "4", "X-Forwarded-Uri": "/public",
		"X-Forwarded-User": "root", "Connection": "keep-alive, X-Secret", "X-Secret": "1", "Te": "trailers", "Semel-Fence": "1", "Forwarded": "for=x",
		"Expect": "100-continue", "Upgrade": "h2c", "Keep-Alive": "timeout=5", "Trailer": "X-Sum", "Transfer-Encoding": "chunked", "Proxy-Authorization": "Basic x",
	} {
		r.Header.Set(name, v)
	}
	if err := h.Authorize(r); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"Authorization": "Bearer t", "Cookie": "s=1", "X-User": "ann", "X-Forwarded-Method": "POST",
		"X-Forwarded-Uri": "/payments?a=b", "X-Forwarded-Host": "pay.example", "X-Forwarded-Proto": "http", "X-Forwarded-For": "192.0.2.1"}
	for name, v := range want {
		if got.Header.Get(name) != v || len(got.Header[name]) != 1 {
			t.Errorf("%s: got %q, want %q", name, got.Header[name], v)
		}
	}
	for name := range got.Header {
		if _, ok := want[name]; !ok && !slices.Contains([]string{"User-Agent", "Accept-Encoding"}, name) {
			t.Errorf("the authorizer got %s", name)
		}
	}
	if got.Method != http.MethodGet || got.ContentLength != 0 {
		t.Errorf("asked by %s with %d bytes", got.Method, got.ContentLength)
	}
	if r.Header.Get("X-Forwarded-Uri") != "/public" {
		t.Error("the client's request was changed")
	}
}

func TestAuthorize_Only2xxAllows(t *testing.T) {
	for status, want := range map[int]int{
		200: 0, 204: 0, 401: 401, 403: 403, 302: 503, 404: 503, 500: 503, 429: 503,
	} {
		err := to(t, time.Minute, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("WWW-Authenticate", "Bearer realm=x")
			w.Header().Set("Location", "/login")
			w.WriteHeader(status)
		}).Authorize(httptest.NewRequest("POST", "/", nil))
		denied, _ := errors.AsType[*hook.Denied](err)
		switch {
		case want == 0 && err != nil:
			t.Errorf("%d: got %v", status, err)
		case want != 0 && (denied == nil || denied.Status != want):
			t.Errorf("%d: got %v, want %d", status, err, want)
		case want == 401 && denied.Challenge != "Bearer realm=x":
			t.Errorf("%d: the challenge is %q", status, denied.Challenge)
		}
	}
}

func TestAuthorize_NoAnswer_Denied(t *testing.T) {
	stop := make(chan struct{})
	slow := to(t, 20*time.Millisecond, func(w http.ResponseWriter, r *http.Request) { <-stop })
	defer close(stop)
	for name, h := range map[string]*hook.Hook{"slow": slow, "not there": at(t, time.Minute, "http://127.0.0.1:1")} {
		err := h.Authorize(httptest.NewRequest("POST", "/", nil))
		if denied, ok := errors.AsType[*hook.Denied](err); !ok || denied.Status != http.StatusServiceUnavailable || denied.Unwrap() == nil {
			t.Errorf("%s: got %v", name, err)
		}
	}
}
