// Package answertest runs a table of HTTP answers through an adapter of package
// semelhttp and compares each with the net/http middleware. It is for the tests of the
// adapters.
package answertest

import (
	"errors"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/semelhttp"
	"github.com/semel-go/semel/store/memstore"
)

// Answer says how a handler ends.
type Answer struct {
	Name   string
	Status int // 0: the handler returns without an answer
	Header http.Header
	Body   string
	// Error says that the handler returns an error with Status, or hands it to the
	// framework; a framework without errors writes Status and Body.
	Error bool
	Panic bool
	// Mark is called with the handler's request. Nil: no mark.
	Mark func(*http.Request)
	// EndsEarly says that the context of the first request ends before the handler runs.
	EndsEarly bool
	// Undone is the answer of a first run, whose transaction is repeated. Nil: there is
	// one run.
	Undone *Answer
}

// Answers is the table.
var Answers = []Answer{
	{Name: "200", Status: 200, Body: "paid"},
	{Name: "201", Status: 201, Body: "paid", Header: http.Header{"Location": {"/payments/7"}, "Link": {"</a>", "</b>"}, "Set-Cookie": {"a=1", "b=2"}}},
	{Name: "204", Status: 204},
	{Name: "302", Status: 302, Header: http.Header{"Location": {"/payments/7"}}},
	{Name: "303 to the log-in page", Status: 303, Header: http.Header{"Location": {"/login?next=/pay"}}},
	{Name: "307", Status: 307, Header: http.Header{"Location": {"/elsewhere"}}},
	{Name: "400", Status: 400, Body: "no"},
	{Name: "401", Status: 401, Body: "who", Header: http.Header{"Www-Authenticate": {"Basic"}}},
	{Name: "404 without a body", Status: 404},
	{Name: "409, later", Status: 409, Body: "busy", Header: http.Header{"Retry-After": {"5"}}},
	{Name: "422", Status: 422, Body: "declined"},
	{Name: "429", Status: 429, Body: "slow"},
	{Name: "500", Status: 500, Body: "lost"},
	{Name: "503", Status: 503, Body: "lost"},
	{Name: "error 422", Status: 422, Body: "declined", Error: true},
	{Name: "error 429", Status: 429, Body: "slow", Error: true},
	{Name: "error 500", Status: 500, Body: "lost", Error: true},
	{Name: "silence"},
	{Name: "silence, final", Mark: semelhttp.Final},
	{Name: "panic", Panic: true},
	{Name: "200, no effect", Status: 200, Body: "paid", Mark: semelhttp.NoEffect},
	{Name: "503, final", Status: 503, Body: "paid", Mark: semelhttp.Final},
	{Name: "503, the header says no effect", Status: 503, Body: "closed", Header: http.Header{"Semel-Result": {"no-effect"}}},
	{Name: "503, the header says final", Status: 503, Body: "paid", Header: http.Header{"Semel-Result": {"final"}}},

	{Name: "201, context ended", Status: 201, Body: "paid", Mark: endRequest},
	{Name: "204, context ended", Status: 204, Mark: endRequest},
	{Name: "500, context ended", Status: 500, Body: "lost", Mark: endRequest},
	{Name: "error 422, context ended", Status: 422, Body: "declined", Error: true, Mark: endRequest},
	{Name: "silence, context ended", Mark: endRequest},
	{Name: "201, context ended before it began", Status: 201, Body: "paid", EndsEarly: true},

	{
		Name: "201 after an undone 202", Status: 201, Body: "paid", Header: http.Header{"Location": {"/payments/7"}},
		Undone: &Answer{Status: 202, Body: "a longer text", Header: http.Header{"X-Undone": {"1"}}},
	},
	{Name: "204 after an undone error", Status: 204, Undone: &Answer{Status: 422, Body: "declined", Error: true}},
	{Name: "error 422 after an undone 204", Status: 422, Body: "declined", Error: true, Undone: &Answer{Status: 204}},
	{Name: "silence after an undone 200", Undone: &Answer{Status: 200, Body: "paid"}},
	{Name: "200 after undone silence", Status: 200, Body: "paid", Undone: &Answer{Mark: semelhttp.Final}},
}

// Start serves POST /pay with a protected handler behind a middleware that recovers
// panics with an empty 599, and gives each request a context of [Endable]. The handler
// gives the body of the request to next, and answers as next says. Start returns the URL
// of the server, which ends with the test.
type Start func(t *testing.T, run semel.Runner, next func(body string) Answer) (url string)

// Tenant is for the servers of the tests.
func Tenant(*http.Request) (string, error) { return "ann", nil }

// Run runs the table.
func Run(t *testing.T, start Start) { run(t, start, Answers) }

// RunOneWay runs the table for an adapter whose framework goes through a chain of
// handlers once. If a transaction is repeated, the adapter answers 503, which is not kept.
func RunOneWay(t *testing.T, start Start) {
	run(t, start, slices.DeleteFunc(slices.Clone(Answers), func(a Answer) bool { return a.Undone != nil }))
	t.Run("repeated transaction", func(t *testing.T) {
		guard, err := semel.New(memstore.New(nil), nil)
		if err != nil {
			t.Fatal(err)
		}
		var runs atomic.Int64
		url := start(t, &repeatsFirst{Guard: guard}, func(string) Answer {
			runs.Add(1)
			return Answer{Status: 201, Body: "paid"}
		})
		if s := Post(t, url+"/pay", "key", "hello"); s.Status != http.StatusServiceUnavailable || s.Header.Get("Retry-After") != "1" || runs.Load() != 1 {
			t.Errorf("got %+v after %d runs, want 503 with Retry-After after 1", s, runs.Load())
		}
		for range 2 {
			if s := Post(t, url+"/pay", "key", "hello"); s.Status != 201 || s.Body != "paid" || runs.Load() != 2 {
				t.Errorf("sent again: got %+v after %d runs, want 201 after 2", s, runs.Load())
			}
		}
	})
}

func run(t *testing.T, start Start, answers []Answer) {
	for _, policy := range []semel.Policy{semel.Retry, semel.Park} {
		for _, a := range answers {
			t.Run(policy.String()+"/"+a.Name, func(t *testing.T) {
				want, got := observe(t, startPlain, policy, a), observe(t, start, policy, a)
				if a.Error { // the framework writes its own text
					for i := range got {
						if got[i].Status == a.Status && got[i].Body == "" {
							t.Error("the error has no text")
						}
					}
					if got[1].Header.Get("Idempotent-Replayed") != "" && got[1].Body != got[0].Body {
						t.Errorf("the replay is %q, the first answer was %q", got[1].Body, got[0].Body)
					}
					forget(got)
					forget(want)
				}
				for i, when := range []string{"first", "duplicate", "other payload"} {
					if !reflect.DeepEqual(got[i], want[i]) {
						t.Errorf("%s:\n got %+v\nwant %+v", when, got[i], want[i])
					}
				}
			})
		}
	}
}

// Seen is an answer from the client's view, and how often the handler has run.
type Seen struct {
	Status int
	Header http.Header
	Body   string
	Runs   int64
}

func forget(seen []Seen) {
	for i := range seen {
		if seen[i].Header.Get("Content-Type") != "application/problem+json" {
			seen[i].Body = ""
			seen[i].Header.Del("Content-Type")
		}
		seen[i].Header.Del("X-Content-Type-Options")
	}
}

// observe sends a request, a duplicate, and the same key with another payload.
func observe(t *testing.T, start Start, policy semel.Policy, a Answer) []Seen {
	t.Helper()
	guard, err := semel.New(memstore.New(nil), &semel.Options{OnDoubt: policy})
	if err != nil {
		t.Fatal(err)
	}
	var runs atomic.Int64
	url := start(t, &runner{Guard: guard, answer: &a}, func(body string) Answer {
		if body != "hello" && body != "other" {
			t.Errorf("the handler got the body %q", body)
		}
		if n := runs.Add(1); a.Undone != nil && n%2 == 1 {
			return *a.Undone
		}
		return a
	})
	var seen []Seen
	for _, body := range []string{"hello", "hello", "other"} {
		s := Post(t, url+"/pay?a=1&a=2", "key", body)
		s.Runs = runs.Load()
		seen = append(seen, s)
	}
	return seen
}

// Post sends a request with a key and reads the answer. Date and length are left out,
// because each server has its own.
func Post(t *testing.T, url, key, body string) Seen {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Idempotency-Key", key)
	r.Header.Set("Content-Type", "text/plain")
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	defer client.CloseIdleConnections()
	res, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(res.Body)
	if err = errors.Join(err, res.Body.Close()); err != nil {
		t.Fatal(err)
	}
	h := maps.Clone(res.Header)
	h.Del("Date")
	h.Del("Content-Length")
	return Seen{Status: res.StatusCode, Header: h, Body: string(text)}
}

func startPlain(t *testing.T, run semel.Runner, next func(body string) Answer) string {
	once, err := semelhttp.Middleware(run, Tenant, nil)
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle("POST /pay", once(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		a := next(string(body))
		if a.Mark != nil {
			a.Mark(r)
		}
		switch {
		case a.Panic:
			panic("boom")
		case a.Status == 0:
			return
		}
		maps.Copy(w.Header(), a.Header)
		if a.Body != "" {
			w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		}
		w.WriteHeader(a.Status)
		_, _ = io.WriteString(w, a.Body)
	})))
	return Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			if recover() != nil {
				w.WriteHeader(599)
			}
		}()
		mux.ServeHTTP(w, r.WithContext(Endable(r.Context())))
	}))
}

// Serve serves h until the test ends, and returns its URL.
func Serve(t *testing.T, h http.Handler) string {
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	return srv.URL
}
