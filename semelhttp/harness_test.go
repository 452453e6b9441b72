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

// quiet is for servers whose handlers misbehave on purpose.
var quiet = log.New(io.Discard, "", 0)

// patience is how long a test waits for what must happen.
const patience = 2 * time.Minute

// site is a protected handler on a server.
type site struct {
	t      testing.TB
	url    string
	client *http.Client
	runs   atomic.Int64
}

// setup says what a site is made of; zero fields are the defaults.
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

// tenantHeader stands for authentication.
const tenantHeader = "X-Account"

func byHeader(r *http.Request) (string, error) {
	tenant := r.Header.Get(tenantHeader)
	if tenant == "" {
		tenant = "ann"
	}
	return tenant, nil
}

func newSite(t testing.TB, s setup, handler http.HandlerFunc) *site {
	t.Helper()
	if s.runner == nil {
		s.runner = newGuard(t, s.store, &s.guard)
	}
	once, err := semelhttp.Middleware(s.runner, byHeader, &s.options)
	if err != nil {
		t.Fatal(err)
	}
	x := &site{t: t}
	mux := http.NewServeMux()
	mux.Handle("/", once(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		x.runs.Add(1)
		handler(w, r)
	})))
	var h http.Handler = mux
	if s.outer != nil {
		h = s.outer(mux)
	}
	x.serve(h, s.http2)
	return x
}

func (x *site) serve(h http.Handler, http2 bool) {
	srv := httptest.NewUnstartedServer(h)
	srv.Config.ErrorLog = quiet
	if http2 {
		srv.EnableHTTP2 = true
		srv.StartTLS()
	} else {
		srv.Start()
	}
	x.t.Cleanup(srv.Close)
	x.url, x.client = srv.URL, srv.Client()
}

// request is a POST with a key.
func (x *site) request(key, body string) *http.Request {
	x.t.Helper()
	r, err := http.NewRequestWithContext(x.t.Context(), http.MethodPost, x.url+"/pay", strings.NewReader(body))
	if err != nil {
		x.t.Fatal(err)
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

func (x *site) do(r *http.Request) answer {
	x.t.Helper()
	resp, err := x.client.Do(r)
	if err != nil {
		x.t.Fatal(err)
	}
	return readAnswer(resp)
}

func (x *site) post(key, body string) answer {
	x.t.Helper()
	return x.do(x.request(key, body))
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
func (x *site) want(a answer, status int, codeOrBody string) {
	x.t.Helper()
	if a.StatusCode != status || a.code() != codeOrBody && a.body != codeOrBody {
		x.t.Errorf("got %d %q, want %d %q", a.StatusCode, a.body, status, codeOrBody)
	}
}

func (x *site) wantRuns(n int64) {
	x.t.Helper()
	if got := x.runs.Load(); got != n {
		x.t.Errorf("the handler ran %d times, want %d", got, n)
	}
}

// bothProtocols runs a test over HTTP/1.1 and HTTP/2.
func bothProtocols(t *testing.T, f func(t *testing.T, http2 bool)) {
	t.Run("http1", func(t *testing.T) { t.Parallel(); f(t, false) })
	t.Run("http2", func(t *testing.T) { t.Parallel(); f(t, true) })
}

// receive waits for a channel, with an end.
func receive[T any](t testing.TB, c <-chan T, what string) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(patience):
		t.Fatalf("%s: nothing came within %v", what, patience)
		panic("unreachable")
	}
}

// faulty lets a test stand between a Guard and its store.
type faulty struct {
	store.Store
	claim   func(store.Proposal) error // an error: the store is not reached
	settle  func(store.Settlement) error
	settled func(store.Settlement) // told once the store has it
}

func (f *faulty) Claim(ctx context.Context, p store.Proposal) (store.Found, error) {
	if f.claim != nil {
		if err := f.claim(p); err != nil {
			return store.Found{}, err
		}
	}
	return f.Store.Claim(ctx, p)
}

func (f *faulty) Settle(ctx context.Context, l store.Lease, s store.Settlement) error {
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

// serve answers a request without a network.
func serve(t testing.TB, ctx context.Context, h http.Handler, key string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(ctx, http.MethodPost, "/pay", strings.NewReader("hello"))
	r.Header.Set("Idempotency-Key", key)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// poll waits for what happens in the background.
func poll(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !ok(); <-time.After(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited in vain for %s", what)
		}
	}
}
