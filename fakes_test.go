package semel_test

import (
	"context"
	"errors"
	"maps"
	"sync"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/driver"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/memstore"
)

// fakeTx is a transaction on maps. It tests RunIn without a database; the tests of
// the stores call RunIn on real databases.
type fakeTx struct {
	records map[store.Key]store.Record
	effects map[string]int
	now     time.Time
}

func newTx() *fakeTx {
	return &fakeTx{map[store.Key]store.Record{}, map[string]int{}, time.Date(2026, 11, 20, 0, 0, 0, 0, time.UTC)}
}

func (f *fakeTx) Claim(_ context.Context, p store.Proposal) (store.Found, error) {
	r, ok := f.records[p.Key]
	if !ok {
		r = p.Insert(f.now, 0)
		f.records[p.Key] = r
	}
	return store.Found{Record: r, Won: !ok, Now: f.now}, nil
}

func (f *fakeTx) Swap(_ context.Context, seen store.Seen, p store.Proposal) (store.Found, error) {
	r := f.records[p.Key]
	won := r.Seen() == seen
	if won {
		r = p.Replace(&r, f.now)
		f.records[p.Key] = r
	}
	return store.Found{Record: r, Won: won, Now: f.now}, nil
}

func (f *fakeTx) Settle(_ context.Context, l store.Lease, s store.Settlement) error {
	r, ok := f.records[l.Key]
	if !ok || r.Lease() != l || r.State != store.Processing {
		return store.ErrLeaseLost
	}
	f.records[l.Key] = s.Apply(r, f.now)
	return nil
}

func (f *fakeTx) Nested(_ context.Context, fn func() error) error {
	records, effects := maps.Clone(f.records), maps.Clone(f.effects)
	done := false
	defer func() {
		if !done {
			f.records, f.effects = records, effects
		}
	}()
	err := fn()
	done = err == nil
	return err
}

// effect is a handler that writes in the transaction and then returns err.
func (f *fakeTx) effect(err error) semel.Handler {
	return func(ctx context.Context, x *semel.Execution) (store.Outcome, error) {
		f.effects[x.Key()]++
		if cerr := driver.Complete(ctx, x, store.Outcome{}); !errors.Is(cerr, errors.ErrUnsupported) {
			return store.Outcome{}, errors.New("Complete before the commit must be refused")
		}
		return store.Outcome{Body: []byte("paid")}, err
	}
}

// clockless is the store of a Guard that runs calls only in transactions.
type clockless struct{ store.Store }

// hooks is a store whose methods a test can replace. A nil function calls the inner
// store.
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

// crash claims a key like a process that then dies, so nobody settles the claim.
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

// newClockedStore makes a memory store whose clock advance moves.
func newClockedStore() (st *memstore.Store, advance func(time.Duration)) {
	var mu sync.Mutex
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	read := func() time.Time {
		mu.Lock()
		defer mu.Unlock()
		return now
	}
	return memstore.New(&memstore.Options{Now: read}), func(d time.Duration) {
		mu.Lock()
		defer mu.Unlock()
		now = now.Add(d)
	}
}

// events collects the events of a Guard.
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

// losingSwaps makes a store in which another process swaps first each time.
func losingSwaps(st store.Store) *hooks {
	h := &hooks{Store: st}
	h.swap = func(ctx context.Context, seen store.Seen, p store.Proposal) (store.Found, error) {
		other := p
		other.Owner = store.Owner{7}
		if _, err := st.Swap(ctx, seen, other); err != nil {
			return store.Found{}, err
		}
		return st.Swap(ctx, seen, p)
	}
	return h
}
