package nearcache_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/memstore"
	"github.com/semel-go/semel/store/nearcache"
	"github.com/semel-go/semel/store/storetest"
)

// clock is a clock that a test sets.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func newClock() *clock {
	return &clock{now: time.Date(2026, 11, 20, 12, 0, 0, 123_456_789, time.Local)}
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// world is a cache, the calls that reach its store, that store, and the clocks of
// the store and the process.
type world struct {
	*nearcache.Store
	calls       *storetest.Fault
	mem         *memstore.Store
	there, here *clock
}

func newWorld(t testing.TB, o *nearcache.Options) *world {
	t.Helper()
	return newWorldBehind(t, o, nil)
}

func newWorldBehind(t testing.TB, o *nearcache.Options, inject func(storetest.Op, int) storetest.Mode) *world {
	t.Helper()
	w := &world{there: newClock(), here: newClock()}
	w.mem = memstore.New(&memstore.Options{Now: w.there.Now})
	w.calls = storetest.NewFault(w.mem, inject)
	d := nearcache.Options{}
	if o != nil {
		d = *o
	}
	d.Now = w.here.Now
	w.Store = newCache(t, w.calls, &d)
	return w
}

func newCache(t testing.TB, st store.Store, o *nearcache.Options) *nearcache.Store {
	t.Helper()
	c, err := nearcache.New(st, o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// pass lets time pass on both clocks.
func (w *world) pass(d time.Duration) {
	w.there.Advance(d)
	w.here.Advance(d)
}

// trips is how many claims and reads have reached the store.
func (w *world) trips() int {
	return w.calls.Calls(storetest.OpClaim) + w.calls.Calls(storetest.OpGet)
}

var lastOwner struct {
	sync.Mutex
	n uint32
}

func proposal(value string) store.Proposal {
	lastOwner.Lock()
	defer lastOwner.Unlock()
	lastOwner.n++
	n := lastOwner.n
	return store.Proposal{
		Key: store.Key{Operation: "op", Tenant: "t", Value: value}, State: store.Processing,
		Owner: store.Owner{1, byte(n), byte(n >> 8), byte(n >> 16)}, Holder: "test/1", Attempt: 1, Lease: time.Minute, Keep: time.Hour,
		Fingerprint: store.Fingerprint{Alg: "test", KeyID: "k1", Sum: "\x00\xff sum"},
	}
}

func outcome(body string) store.Outcome {
	return store.Outcome{Code: 201, Codec: "json", Body: []byte(body), Header: []store.Header{{Name: "A", Value: "1"}, {Name: "A", Value: "2"}}}
}

func settlement(keep time.Duration) store.Settlement {
	return store.Settlement{State: store.Completed, Attempt: 1, Outcome: outcome("kept"), Keep: keep}
}

func claim(t testing.TB, st store.Store, value string) store.Found {
	t.Helper()
	f, err := st.Claim(t.Context(), proposal(value))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// complete makes a completed record through st.
func complete(t testing.TB, st store.Store, value string, keep time.Duration) store.Found {
	t.Helper()
	f := claim(t, st, value)
	if !f.Won {
		t.Fatalf("the claim of %q was not won", value)
	}
	if err := st.Settle(t.Context(), f.Record.Lease(), settlement(keep)); err != nil {
		t.Fatal(err)
	}
	return f
}

func get(t testing.TB, st store.Store, value string) store.Found {
	t.Helper()
	f, err := st.Get(t.Context(), proposal(value).Key)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// trip fails unless fn reaches the store with so many claims and reads.
func (w *world) trip(t testing.TB, want int, what string, fn func()) {
	t.Helper()
	before := w.trips()
	fn()
	if got := w.trips() - before; got != want {
		t.Errorf("%s took %d trips to the store, want %d", what, got, want)
	}
}

// patient sends again what an injected fault has spoilt, as a Guard does.
type patient struct{ store.Store }

func (p patient) Unwrap() store.Store { return p.Store }

func again[T any](call func() (T, error)) (T, error) {
	for {
		if v, err := call(); !isInjected(err) {
			return v, err
		}
	}
}

func (p patient) Claim(ctx context.Context, pr store.Proposal) (store.Found, error) {
	return again(func() (store.Found, error) { return p.Store.Claim(ctx, pr) })
}

func (p patient) Swap(ctx context.Context, seen store.Seen, pr store.Proposal) (store.Found, error) {
	return again(func() (store.Found, error) { return p.Store.Swap(ctx, seen, pr) })
}

func (p patient) Renew(ctx context.Context, held []store.Lease, d time.Duration) ([]error, error) {
	return again(func() ([]error, error) { return p.Store.Renew(ctx, held, d) })
}

func (p patient) Settle(ctx context.Context, l store.Lease, s store.Settlement) error {
	_, err := again(func() (struct{}, error) { return struct{}{}, p.Store.Settle(ctx, l, s) })
	return err
}

func (p patient) Get(ctx context.Context, k store.Key) (store.Found, error) {
	return again(func() (store.Found, error) { return p.Store.Get(ctx, k) })
}
