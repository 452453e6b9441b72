package upstream_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/semel-go/semel/cmd/semel/internal/upstream"
)

// dropping performs its effect and then drops the connection without a word,
// once the connection was used before: the case in which http.Transport sends
// again what it takes for repeatable.
func dropping(t *testing.T, e *effects) *httptest.Server {
	return backend(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		if r.URL.Path == "/warm" {
			return
		}
		e.add(r.Header.Get("Idempotency-Key"))
		c, _, err := http.NewResponseController(w).Hijack()
		if err == nil {
			_ = c.Close()
		}
	})
}

// bodies are the three ways in which a body can come.
func bodies() map[string]func() io.Reader {
	return map[string]func() io.Reader{
		"empty":    func() io.Reader { return nil },
		"fixed":    func() io.Reader { return strings.NewReader("amount=1") },
		"streamed": func() io.Reader { return struct{ io.Reader }{strings.NewReader("amount=1")} },
	}
}

// through sends a request after one that leaves a used connection behind.
func through(t *testing.T, proxy, method, key string, body io.Reader) int {
	t.Helper()
	warm, err := http.Get(proxy + "/warm")
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, warm.Body)
	_ = warm.Body.Close()
	req, err := http.NewRequest(method, proxy+"/pay", body)
	if err != nil {
		t.Fatal(err)
	}
	req.GetBody = nil // this client does not repeat; the proxy is what is tested
	req.Header.Set("Idempotency-Key", key)
	res, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	return res.StatusCode
}

func TestConnectionBreaks_RequestSentOnce(t *testing.T) {
	var e effects
	f := newFront(t, dropping(t, &e).URL, nil, time.Minute, nil)
	for name, body := range bodies() {
		for _, method := range []string{"POST", "PATCH", "PUT", "DELETE"} { // the last two pass unprotected
			key := name + method
			if status := through(t, f.URL, method, key, body()); status != http.StatusBadGateway {
				t.Errorf("%s, %s: the status is %d", method, name, status)
			}
			if n := e.of(key); n != 1 {
				t.Errorf("%s, %s body: %d effects", method, name, n)
			}
		}
	}
}

// A connection that the upstream is about to close is the one on which requests
// are lost, so the proxy closes it first.
func TestIdleConnection_ClosedAfterLimit(t *testing.T) {
	closed := make(chan struct{}, 1)
	b := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	b.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateClosed {
			closed <- struct{}{}
		}
	}
	b.Start()
	defer b.Close()
	f := newFront(t, b.URL, nil, time.Minute, func(o *upstream.Options) { o.Idle = 20 * time.Millisecond })
	f.send(t, "POST", "/", "k", "")
	select {
	case <-closed:
	case <-time.After(time.Minute):
		t.Error("it is kept")
	}
}

// This shows that the backend of the test above provokes a repeated request.
func TestPlainReverseProxy_SendsTwice(t *testing.T) {
	var e effects
	u, err := url.Parse(dropping(t, &e).URL)
	if err != nil {
		t.Fatal(err)
	}
	plain := httptest.NewServer(httputil.NewSingleHostReverseProxy(u))
	defer plain.Close()
	through(t, plain.URL, "POST", "k", nil)
	if n := e.of("k"); n < 2 {
		t.Errorf("%d effects; http.Transport no longer repeats requests, or the trap does not work", n)
	}
}

func TestReportedNotSent_NothingArrived(t *testing.T) {
	const rounds = 300
	var e effects
	b := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		e.add(r.Header.Get("Idempotency-Key"))
		w.WriteHeader(http.StatusCreated)
	}))
	b.Config.IdleTimeout = 200 * time.Microsecond // so that connections die just when they are used again
	b.Start()
	defer b.Close()
	f := newFront(t, b.URL, nil, time.Minute, nil)
	for i := range rounds {
		key := fmt.Sprint("k", i)
		res := f.send(t, "POST", "/", key, "")
		seen := e.of(key)
		switch {
		case res.StatusCode == http.StatusServiceUnavailable && seen != 0:
			t.Fatalf("%s: the client was told that nothing was sent, and the backend saw %d", key, seen)
		case res.StatusCode == http.StatusCreated && seen != 1:
			t.Fatalf("%s: %d effects", key, seen)
		}
	}
}
