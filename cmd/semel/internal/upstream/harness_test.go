package upstream_test

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/cmd/semel/internal/upstream"
	"github.com/semel-go/semel/semelhttp"
	"github.com/semel-go/semel/store/memstore"
)

const operation = "http"

// front is a proxy in front of a backend, like semel proxy's.
type front struct {
	*httptest.Server
	guard *semel.Guard
	up    *upstream.Upstream
}

// newFront puts a proxy in front of address; change may be nil.
func newFront(t *testing.T, address string, o *semel.Options, timeout time.Duration, change func(*upstream.Options)) *front {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	opt := upstream.Options{URL: u, Log: slog.New(slog.DiscardHandler)}
	if change != nil {
		change(&opt)
	}
	up := upstream.New(opt)
	g, err := semel.New(memstore.New(nil), o)
	if err != nil {
		t.Fatal(err)
	}
	once, err := semelhttp.Middleware(g, func(*http.Request) (string, error) { return semel.Shared, nil },
		&semelhttp.Options{
			Operation: func(*http.Request) string { return operation }, Optional: true, HoldFlush: true, Detach: true,
		})
	if err != nil {
		t.Fatal(err)
	}
	f := &front{Server: httptest.NewServer(once(up.Handler(timeout, upstream.Answers{}))), guard: g, up: up}
	t.Cleanup(f.Close)
	t.Cleanup(up.Close)
	return f
}

// send sends a request with a key through the proxy; key "" is none.
func (f *front) send(t *testing.T, method, path, key, body string, headers ...string) *http.Response {
	t.Helper()
	req, err := http.NewRequest(method, f.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if key != "" {
		req.Header.Set("Idempotency-Key", key)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Add(headers[i], headers[i+1])
	}
	res, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = res.Body.Close() })
	return res
}

// effects counts what a backend has done, by key.
type effects struct {
	mu sync.Mutex
	by map[string]int
}

func (e *effects) add(key string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.by == nil {
		e.by = map[string]int{}
	}
	e.by[key]++
}

func (e *effects) of(key string) int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.by[key]
}

// backend serves f until the test ends.
func backend(t *testing.T, f http.HandlerFunc) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(f)
	t.Cleanup(s.Close)
	return s
}
