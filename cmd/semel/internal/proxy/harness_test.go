package proxy_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/semel-go/semel/cmd/semel/internal/config"
	"github.com/semel-go/semel/cmd/semel/internal/proxy"
	"github.com/semel-go/semel/cmd/semel/internal/scope"
	"github.com/semel-go/semel/cmd/semel/internal/secrets"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/memstore"
)

// stage is a backend and a proxy in front of it.
type stage struct {
	*httptest.Server // the proxy
	t                *testing.T
	proxy            *proxy.Proxy
	admin            *httptest.Server
	store            *flaky
	backend          *backend
	log              *logged
}

// flaky is a store that can be cut off.
type flaky struct {
	store.Store
	down  atomic.Bool
	sweep func(ctx context.Context) // is called first; nil: nothing is
}

func (s *flaky) Sweep(ctx context.Context, from store.Cursor, limit int) (store.SweepResult, error) {
	if s.sweep != nil {
		s.sweep(ctx)
	}
	return s.Store.Sweep(ctx, from, limit)
}

func (s *flaky) Unwrap() store.Store { return s.Store }

var errDown = errors.New("the store is cut off")

func (s *flaky) Claim(ctx context.Context, p store.Proposal) (store.Found, error) {
	if s.down.Load() {
		return store.Found{}, errDown
	}
	return s.Store.Claim(ctx, p)
}

func (s *flaky) Get(ctx context.Context, k store.Key) (store.Found, error) {
	if s.down.Load() {
		return store.Found{}, errDown
	}
	return s.Store.Get(ctx, k)
}

// logged keeps what is logged.
type logged struct {
	mu sync.Mutex
	b  strings.Builder
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// backend keeps what it was sent, and answers as it is told.
type backend struct {
	*httptest.Server
	mu     sync.Mutex
	seen   []*http.Request
	bodies []string
	answer http.HandlerFunc
}

func newBackend(t *testing.T, answer http.HandlerFunc) *backend {
	b := &backend{answer: answer}
	b.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		b.mu.Lock()
		b.seen = append(b.seen, r.Clone(context.WithoutCancel(r.Context())))
		b.bodies = append(b.bodies, string(body))
		b.mu.Unlock()
		b.answer(w, r)
	}))
	t.Cleanup(b.Close)
	return b
}

// created answers 201, each time with another body.
func created() http.HandlerFunc {
	var n atomic.Int64
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Set-Cookie", "session=canary")
		w.Header().Set("Content-Type", "text/plain")
		w.WriteHeader(http.StatusCreated)
		_, _ = io.WriteString(w, "answer "+string(rune('0'+n.Add(1))))
	}
}

func (b *backend) count() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.seen)
}

// play sets up a stage from a configuration, to which the upstream is added.
func play(t *testing.T, answer http.HandlerFunc, doc string) *stage {
	t.Helper()
	b := newBackend(t, answer)
	s := playAt(t, b.URL, doc)
	s.backend = b
	return s
}

// playAt sets up a stage without a backend, for an upstream.
func playAt(t *testing.T, upstream, doc string) *stage {
	t.Helper()
	s := &stage{t: t, store: &flaky{Store: memstore.New(nil)}, log: &logged{}}
	if !strings.Contains(doc, "refusal-pause") {
		doc = "refusal-pause: 0s\n" + doc
	}
	file, err := config.Parse("test.yaml", []byte("upstream: "+upstream+"\n"+doc))
	if err != nil {
		t.Fatal(err)
	}
	c, err := config.Resolve(&config.Options{}, file)
	if err != nil {
		t.Fatal(err)
	}
	rule, err := scope.Parse(c.Scope, "scope")
	if err != nil {
		t.Fatal(err)
	}
	var keys *scope.KeySet
	if rule.NeedsKeys() {
		keys = scope.NewKeySet(c.JWKS, nil)
	}
	finder, err := scope.NewFinder(rule, keys)
	if err != nil {
		t.Fatal(err)
	}
	hashKeys, err := secrets.HashKeys(c.HashKeysFile, "hash-keys-file")
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.NewTextHandler(s.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	s.proxy, err = proxy.New(proxy.Parts{Config: c, Store: s.store, Rule: rule, Finder: finder, HashKeys: hashKeys, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.proxy.Close)
	s.Server, s.admin = httptest.NewServer(s.proxy.Handler()), httptest.NewServer(s.proxy.Admin())
	t.Cleanup(s.Close)
	t.Cleanup(s.admin.Close)
	return s
}

type reply struct {
	status int
	header http.Header
	body   string
}

func (r reply) replayed() bool { return r.header.Get("Idempotent-Replayed") == "true" }

// send sends a request; headers are names and values in turn.
func (s *stage) send(method, path, body string, headers ...string) reply {
	s.t.Helper()
	return fetch(s.t, method, s.URL+path, body, headers...)
}

func fetch(t *testing.T, method, address, body string, headers ...string) reply {
	t.Helper()
	req, err := http.NewRequest(method, address, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header[headers[i]] = append(req.Header[headers[i]], headers[i+1]) // as it is, not canonical
	}
	res, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return reply{res.StatusCode, res.Header, string(b)}
}

// pay sends a POST with a key.
func (s *stage) pay(key string, headers ...string) reply {
	s.t.Helper()
	return s.send("POST", "/pay", "body", append([]string{"Idempotency-Key", key}, headers...)...)
}

// eventually polls for an event.
func eventually(t *testing.T, what string, f func() bool) {
	t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(time.Minute); !f(); <-tick.C {
		if time.Now().After(end) {
			t.Fatalf("not within a minute: %s", what)
		}
	}
}
