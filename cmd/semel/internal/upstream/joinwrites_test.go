package upstream

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/semelhttp"
	"github.com/semel-go/semel/store/memstore"
)

// writesOf sends one request with a key through an Upstream. It returns the number of
// writes to the service, and the body that the service read.
func writesOf(t *testing.T, body string) (writes int, got string) {
	t.Helper()
	backend := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		got = string(b)
	}))
	defer backend.Close()
	address, err := url.Parse(backend.URL)
	if err != nil {
		t.Fatal(err)
	}
	u := New(Options{URL: address})
	defer u.Close()
	var used atomic.Pointer[conn]
	dial := u.base.DialContext
	u.base.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := dial(ctx, network, addr)
		if err == nil {
			used.Store(c.(*conn))
		}
		return c, err
	}
	g, err := semel.New(memstore.New(nil), nil)
	if err != nil {
		t.Fatal(err)
	}
	once, err := semelhttp.Middleware(g, func(*http.Request) (string, error) { return semel.Shared, nil },
		&semelhttp.Options{Operation: func(*http.Request) string { return "http" }})
	if err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(body))
	r.Header.Set("Idempotency-Key", "k")
	w := httptest.NewRecorder()
	once(u.Handler(time.Minute, Answers{})).ServeHTTP(w, r)
	if w.Code != http.StatusOK {
		// The backend writes nothing, so net/http answers 200 for it.
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	return used.Load().count(), got
}

func TestKeyed_SmallBody_OneWriteWithTheHeaders(t *testing.T) {
	writes, got := writesOf(t, "a small body")
	if writes != 1 || got != "a small body" {
		t.Errorf("%d writes, and the service read %q", writes, got)
	}
}

func TestKeyed_BodyLargerThanBuffer_Complete(t *testing.T) {
	for _, size := range []int{smallBody - 1, smallBody, smallBody + 1, 1 << 20} {
		body := strings.Repeat("x", size)
		if _, got := writesOf(t, body); got != body {
			t.Errorf("of %d bytes the service read %d", size, len(got))
		}
	}
}
