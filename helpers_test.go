package semel_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/memstore"
)

const pay = "pay"

var errBoom = errors.New("boom")

// ann is a call of one tenant, without a payload to compare.
func ann(key string) semel.Call {
	return semel.Call{Operation: pay, Tenant: "ann", Key: key, Payload: semel.NoPayload()}
}

func guard(t testing.TB, st store.Store, o *semel.Options) *semel.Guard {
	t.Helper()
	g, err := semel.New(st, o)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// answer is a handler that returns body.
func answer(body string) semel.Handler {
	return func(context.Context, *semel.Execution) (store.Outcome, error) {
		return store.Outcome{Body: []byte(body)}, nil
	}
}

// fail is a handler that returns err.
func fail(err error) semel.Handler {
	return func(context.Context, *semel.Execution) (store.Outcome, error) { return store.Outcome{}, err }
}

// never is a handler that must not run.
func never(t testing.TB) semel.Handler {
	return func(context.Context, *semel.Execution) (store.Outcome, error) {
		t.Error("the handler ran")
		return store.Outcome{}, nil
	}
}

func wantBody(t testing.TB, res semel.Result, err error, body string, replayed bool) {
	t.Helper()
	if err != nil || string(res.Body) != body || res.Replayed != replayed {
		t.Fatalf("got %q (replayed %v), %v; want %q (replayed %v)", res.Body, res.Replayed, err, body, replayed)
	}
}

func wantErr(t testing.TB, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Fatalf("got error %v, want %v", err, want)
	}
}

func record(t testing.TB, g *semel.Guard, key string) store.Record {
	t.Helper()
	r, err := g.Get(t.Context(), semel.Call{Operation: pay, Tenant: "ann", Key: key})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func wantState(t testing.TB, g *semel.Guard, key string, want store.State) store.Record {
	t.Helper()
	r := record(t, g, key)
	if r.State != want {
		t.Fatalf("the record is %v, want %v (last error %q)", r.State, want, r.LastError)
	}
	return r
}

// hooks is a store whose methods a test may replace; each gets the real one.
type hooks struct {
	store.Store
	claim  func(ctx context.Context, p store.Proposal) (store.Found, error)
	swap   func(ctx context.Context, seen store.Seen, p store.Proposal) (store.Found, error)
	renew  func(ctx context.Context, held []store.Lease, d time.Duration) ([]error, error)
	settle func(ctx context.Context, l store.Lease, s store.Settlement) error
	get    func(ctx context.Context, k store.Key) (store.Found, error)
}

func (h *hooks) Unwrap() store.Store { return h.Store }

func (h *hooks) Claim(ctx context.Context, p store.Proposal) (store.Found, error) {
	if h.claim != nil {
		return h.claim(ctx, p)
	}
	return h.Store.Claim(ctx, p)
}

func (h *hooks) Swap(ctx context.Context, seen store.Seen, p store.Proposal) (store.Found, error) {
	if h.swap != nil {
		return h.swap(ctx, seen, p)
	}
	return h.Store.Swap(ctx, seen, p)
}

func (h *hooks) Renew(ctx context.Context, held []store.Lease, d time.Duration) ([]error, error) {
	if h.renew != nil {
		return h.renew(ctx, held, d)
	}
	return h.Store.Renew(ctx, held, d)
}

func (h *hooks) Settle(ctx context.Context, l store.Lease, s store.Settlement) error {
	if h.settle != nil {
		return h.settle(ctx, l, s)
	}
	return h.Store.Settle(ctx, l, s)
}

func (h *hooks) Get(ctx context.Context, k store.Key) (store.Found, error) {
	if h.get != nil {
		return h.get(ctx, k)
	}
	return h.Store.Get(ctx, k)
}

// crash claims a key as a process does that then dies: nobody settles it.
func crash(t testing.TB, st store.Store, policy semel.Policy, key string, lease time.Duration) store.Record {
	t.Helper()
	f, err := st.Claim(t.Context(), store.Proposal{
		Key: store.Key{Operation: string(pay), Tenant: "ann", Value: key}, State: store.Processing, Policy: policy,
		Owner: store.Owner{1}, Holder: "dead/1", Attempt: 1, Lease: lease, Keep: time.Hour,
	})
	if err != nil || !f.Won {
		t.Fatalf("claim: %+v, %v", f, err)
	}
	return f.Record
}

// clocked is a memory store whose clock the test moves.
func clocked() (*memstore.Store, func(time.Duration)) {
	var mu sync.Mutex
	at := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	now := func() time.Time {
		mu.Lock()
		defer mu.Unlock()
		return at
	}
	return memstore.New(&memstore.Options{Now: now}), func(d time.Duration) {
		mu.Lock()
		defer mu.Unlock()
		at = at.Add(d)
	}
}

// events collects what a Guard tells.
type events struct {
	mu  sync.Mutex
	all []semel.Event
}

func (e *events) observe(_ context.Context, ev semel.Event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.all = append(e.all, ev)
}

func (e *events) count(k string) int {
	e.mu.Lock()
	defer e.mu.Unlock()
	n := 0
	for _, ev := range e.all {
		if ev.Kind == k {
			n++
		}
	}
	return n
}
