package semelhttp_test

import (
	"context"
	"encoding/json"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/semelhttp"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/memstore"
)

// discardLog is for servers whose handlers fail on purpose.
var discardLog = log.New(io.Discard, "", 0)

// waitLimit is how long a test waits for an event.
const waitLimit = 2 * time.Minute

// testSite is a server with a protected handler.
type testSite struct {
	t      testing.TB
	url    string
	client *http.Client
	runs   atomic.Int64
}

// setup configures a testSite. Zero fields are the defaults.
type setup struct {
	options semelhttp.Options
	guard   semel.Options
	store   store.Store
	runner  semel.Runner
	outer   func(http.Handler) http.Handler
	http2   bool
}

func newGuard(t testing.TB, st store.Store, o *semel.Options) *semel.Guard {
	t.Helper()
	if st == nil {
		st = memstore.New(nil)
	}
	g, err := semel.New(st, o)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// tenantHeader replaces authentication in tests.
const tenantHeader = "X-Account"

func byHeader(r *http.Request) (string, error) {
	tenant := r.Header.Get(tenantHeader)
	if tenant == "" {
		tenant = "ann"
	}
	return tenant, nil
}

func newSite(t testing.TB, s setup, handler http.HandlerFunc) *testSite {
	t.Helper()
	if s.runner == nil {
		s.runner = newGuard(t, s.store, &s.guard)
	}
	once, err := semelhttp.Middleware(s.runner, byHeader, &s.options)
	if err != nil {
		t.Fatal(err)
	}
	site := &testSite{t: t}
	mux := http.NewServeMux()
	mux.Handle("/", once(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		site.runs.Add(1)
		handler(w, r)
	})))
	var h http.Handler = mux
	if s.outer != nil {
		h = s.outer(mux)
	}
	site.serve(h, s.http2)
	return site
}

func (site *testSite) serve(h http.Handler, http2 bool) {
	srv := httptest.NewUnstartedServer(h)
	srv.Config.ErrorLog = discardLog
	if http2 {
		srv.EnableHTTP2 = true
		srv.StartTLS()
	} else {
		srv.Start()
	}
	site.t.Cleanup(srv.Close)
	site.url, site.client = srv.URL, srv.Client()
}

// request is a POST with a key.
func (site *testSite) request(key, body string) *http.Request {
	site.t.Helper()
	r, err := http.NewRequestWithContext(site.t.Context(), http.MethodPost, site.url+"/pay", strings.NewReader(body))
	if err != nil {
		site.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	if key != "" {
		r.Header.Set("Idempotency-Key", key)
	}
	return r
}

// answer is a response, read to its end.
type answer struct {
	*http.Response
	body string
	err  error // from reading the body
}

func (site *testSite) do(r *http.Request) answer {
	site.t.Helper()
	resp, err := site.client.Do(r)
	if err != nil {
		site.t.Fatal(err)
	}
	return readAnswer(resp)
}

func (site *testSite) post(key, body string) answer {
	site.t.Helper()
	return site.do(site.request(key, body))
}

func readAnswer(resp *http.Response) answer {
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return answer{resp, string(b), err}
}

func (a answer) code() string {
	var p struct{ Code string }
	if a.Header.Get("Content-Type") != "application/problem+json" || json.Unmarshal([]byte(a.body), &p) != nil {
		return ""
	}
	return p.Code
}

func (a answer) replayed() bool { return semelhttp.Replayed(a.Response) }

// want checks an answer's status and problem code, or body.
func (site *testSite) want(a answer, status int, codeOrBody string) {
	site.t.Helper()
	if a.StatusCode != status || a.code() != codeOrBody && a.body != codeOrBody {
		site.t.Errorf("got %d %q, want %d %q", a.StatusCode, a.body, status, codeOrBody)
	}
}

func (site *testSite) wantRuns(n int64) {
	site.t.Helper()
	if got := site.runs.Load(); got != n {
		site.t.Errorf("the handler ran %d times, want %d", got, n)
	}
}

// bothProtocols runs a test over HTTP/1.1 and HTTP/2.
func bothProtocols(t *testing.T, f func(t *testing.T, http2 bool)) {
	t.Run("http1", func(t *testing.T) { t.Parallel(); f(t, false) })
	t.Run("http2", func(t *testing.T) { t.Parallel(); f(t, true) })
}

// receive waits for a value of a channel, up to waitLimit.
func receive[T any](t testing.TB, c <-chan T, what string) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(waitLimit):
		t.Fatalf("%s: nothing came within %v", what, waitLimit)
		panic("unreachable")
	}
}

// faultyStore calls a test's functions between a Guard and its store.
type faultyStore struct {
	store.Store
	claim   func(store.Proposal) error // if it returns an error, the store is not called
	settle  func(store.Settlement) error
	settled func(store.Settlement) // called after the store has stored it
}

func (f *faultyStore) Claim(ctx context.Context, p store.Proposal) (store.Found, error) {
	if f.claim != nil {
		if err := f.claim(p); err != nil {
			return store.Found{}, err
		}
	}
	return f.Store.Claim(ctx, p)
}

func (f *faultyStore) Settle(ctx context.Context, l store.Lease, s store.Settlement) error {
	if f.settle != nil {
		if err := f.settle(s); err != nil {
			return err
		}
	}
	err := f.Store.Settle(ctx, l, s)
	if f.settled != nil && err == nil {
		f.settled(s)
	}
	return err
}

// serve sends a request to a handler without a network.
func serve(t testing.TB, ctx context.Context, h http.Handler, key string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(ctx, http.MethodPost, "/pay", strings.NewReader("hello"))
	r.Header.Set("Idempotency-Key", key)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// poll waits until ok returns true.
func poll(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(waitLimit); !ok(); <-time.After(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("timed out waiting for %s", what)
		}
	}
}
