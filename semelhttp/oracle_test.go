package semelhttp_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/logtest"
	"github.com/semel-go/semel/semelhttp"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/memstore"
)

// A client without rights learns nothing of a key from any refusal: not that it is in
// use, nor for what, nor that its outcome is not known.
func TestAuthorize_Fails_NoAnswerTellsOfTheKey(t *testing.T) {
	g, err := semel.New(memstore.New(nil), &semel.Options{OnDoubt: semel.Park})
	if err != nil {
		t.Fatal(err)
	}
	started, release := make(chan struct{}), make(chan struct{})
	mw, err := semelhttp.Middleware(g, func(*http.Request) (string, error) { return "ann", nil }, &semelhttp.Options{
		Operation: func(*http.Request) string { return "pay" },
		Authorize: func(r *http.Request) error {
			if r.Header.Get("Authorization") == "" {
				return errors.New("no rights")
			}
			return nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	h := mw(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.Header.Get("Idempotency-Key") {
		case "running":
			close(started)
			<-release
		case "doubt":
			w.WriteHeader(500)
			return
		}
		w.WriteHeader(200)
	}))
	send := func(key, body, rights string) *httptest.ResponseRecorder {
		r := httptest.NewRequest("POST", "/pay", strings.NewReader(body))
		r.Header.Set("Idempotency-Key", key)
		if rights != "" {
			r.Header.Set("Authorization", rights)
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		send("running", "a", "yes")
	}()
	<-started
	send("done", "a", "yes")
	send("doubt", "a", "yes")
	for _, c := range []struct {
		name, key, body string
		status          int
	}{{"in progress", "running", "a", 409}, {"another request", "done", "b", 422}, {"parked", "doubt", "a", 409}, {"kept", "done", "a", 200}} {
		if w := send(c.key, c.body, ""); w.Code != 403 || !strings.Contains(w.Body.String(), semelhttp.CodeReplayForbidden) || w.Header().Get("Retry-After") != "" {
			t.Errorf("%s, without rights: %d %s", c.name, w.Code, w.Body)
		}
		if w := send(c.key, c.body, "yes"); w.Code != c.status {
			t.Errorf("%s, with rights: %d, want %d", c.name, w.Code, c.status)
		}
	}
	close(release)
	<-ended
}

// unreadable is a store whose records cannot be read.
type unreadable struct{ store.Store }

func (unreadable) Claim(context.Context, store.Proposal) (store.Found, error) {
	return store.Found{}, store.ErrCorrupt
}

// That there is a record which cannot be read is for the log, and for clients with rights.
func TestAuthorize_Fails_UnreadableRecordIsOnlyLogged(t *testing.T) {
	out := logtest.Capture(t)
	for _, c := range []struct {
		deny   error
		status int
		code   string
	}{{errors.New("no rights"), 403, semelhttp.CodeReplayForbidden}, {nil, 500, semelhttp.CodeRecordUnreadable}} {
		out.Reset()
		mw, err := semelhttp.Middleware(newGuard(t, unreadable{memstore.New(nil)}, nil), byHeader, &semelhttp.Options{
			Operation: func(*http.Request) string { return "pay" },
			Authorize: func(*http.Request) error { return c.deny },
		})
		if err != nil {
			t.Fatal(err)
		}
		w, r := httptest.NewRecorder(), httptest.NewRequest("POST", "/", nil)
		r.Header.Set("Idempotency-Key", "k")
		if mw(http.NotFoundHandler()).ServeHTTP(w, r); w.Code != c.status || w.Header().Get("Semel-Refusal") != c.code {
			t.Errorf("got %d %s; want %d %s", w.Code, w.Body, c.status, c.code)
		}
		if n := strings.Count(out.String(), "a record cannot be read"); n != 1 {
			t.Errorf("%d: logged %d times: %s", c.status, n, out)
		}
	}
}

// A handler that is set up wrongly says so in the log of the server, because its
// client is told nothing.
func TestMiddleware_NoOperation_Logged(t *testing.T) {
	out := logtest.Capture(t)
	g, err := semel.New(memstore.New(nil), nil)
	if err != nil {
		t.Fatal(err)
	}
	mw, err := semelhttp.Middleware(g, func(*http.Request) (string, error) { return semel.Shared, nil }, nil)
	if err != nil {
		t.Fatal(err)
	}
	w, r := httptest.NewRecorder(), httptest.NewRequest("POST", "/", nil)
	r.Header.Set("Idempotency-Key", "canary")
	if mw(http.NotFoundHandler()).ServeHTTP(w, r); w.Code != 500 || !strings.Contains(out.String(), "Route is empty") || strings.Contains(out.String(), "canary") {
		t.Errorf("%d, logged %q", w.Code, out.String())
	}
}

// endlessBody sends one byte and then nothing until it is closed.
type endlessBody struct {
	sent   bool
	closed chan struct{}
}

func (b *endlessBody) Read(p []byte) (int, error) {
	if !b.sent {
		b.sent = true
		p[0] = 'x'
		return 1, nil
	}
	<-b.closed
	return 0, io.ErrClosedPipe
}

func (b *endlessBody) Close() error {
	select {
	case <-b.closed:
	default:
		close(b.closed)
	}
	return nil
}

type roundTrip func(r *http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestTransport_ErrorBodyNeverEnds_NextAttemptIsMade(t *testing.T) {
	n := 0
	tr, err := semelhttp.NewTransport(roundTrip(func(r *http.Request) (*http.Response, error) {
		if n++; n == 1 {
			return &http.Response{StatusCode: 503, Header: http.Header{}, Body: &endlessBody{closed: make(chan struct{})}, Request: r}, nil
		}
		return &http.Response{StatusCode: 201, Header: http.Header{}, Body: http.NoBody, Request: r}, nil
	}), &semelhttp.TransportOptions{Backoff: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	r, err := http.NewRequest("POST", "http://a.example/", strings.NewReader("x"))
	if err != nil {
		t.Fatal(err)
	}
	res, err := tr.RoundTrip(r)
	if err != nil || res.StatusCode != 201 || n != 2 {
		t.Errorf("%+v, %v after %d attempts", res, err, n)
	}
}
