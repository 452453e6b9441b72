package shardstore_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/memstore"
	"github.com/semel-go/semel/store/shardstore"
	"github.com/semel-go/semel/store/storetest"
)

// clock is a clock that a test sets.
type clock struct {
	mu   sync.Mutex
	now  time.Time
	tick time.Duration // with each reading
}

func newClock() *clock {
	return &clock{now: time.Date(2026, 11, 20, 12, 0, 0, 123_456_789, time.Local)}
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(c.tick)
	return c.now
}

func (c *clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// world is a shard store with its shards. Shard i is named "s<i>", and its clock is
// i times apart ahead of the first shard's.
type world struct {
	*shardstore.Store
	clock  *clock // the first shard's
	apart  time.Duration
	mems   []*memstore.Store
	faults []*storetest.Fault
}

func newWorld(t testing.TB, n int, apart time.Duration, inject func(shard int, op storetest.Op, n int) storetest.Mode) *world {
	t.Helper()
	w := &world{clock: newClock(), apart: apart}
	var shards []shardstore.Shard
	for i := range n {
		mem := memstore.New(&memstore.Options{Now: func() time.Time { return w.now(i) }})
		f := storetest.NewFault(mem, func(op storetest.Op, n int) storetest.Mode {
			if inject == nil {
				return storetest.None
			}
			return inject(i, op, n)
		})
		w.mems, w.faults = append(w.mems, mem), append(w.faults, f)
		shards = append(shards, shardstore.Shard{Name: fmt.Sprint("s", i), Store: f})
	}
	w.Store = newStore(t, shards...)
	return w
}

func newStore(t testing.TB, shards ...shardstore.Shard) *shardstore.Store {
	t.Helper()
	s, err := shardstore.New(shards)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// now is a shard's clock.
func (w *world) now(shard int) time.Time { return w.clock.Now().Add(time.Duration(shard) * w.apart) }

func (w *world) pass(d time.Duration) { w.clock.Advance(d) }

func advance(_ testing.TB, s store.Store, d time.Duration) {
	w, _ := store.As[*world](s)
	w.pass(d)
}

func key(value string) store.Key { return store.Key{Operation: "op", Tenant: "t", Value: value} }

// on is a key of each shard.
func (w *world) on(t testing.TB) []store.Key {
	t.Helper()
	keys := make([]store.Key, len(w.mems))
	for found, i := 0, 0; found < len(keys); i++ {
		if i > 100_000 {
			t.Fatal("a shard has no keys")
		}
		k := key(fmt.Sprint(i))
		for n := range keys {
			if w.On(k) == fmt.Sprint("s", n) && keys[n].Value == "" {
				keys[n] = k
				found++
			}
		}
	}
	return keys
}

func proposal(k store.Key, owner byte) store.Proposal {
	return store.Proposal{Key: k, State: store.Processing, Owner: store.Owner{owner}, Attempt: 1, Lease: time.Minute, Keep: time.Hour}
}

func claim(t testing.TB, st store.Store, k store.Key) store.Record {
	t.Helper()
	f, err := st.Claim(t.Context(), proposal(k, 1))
	if err != nil || !f.Won {
		t.Fatalf("claim: won %v, %v", f.Won, err)
	}
	return f.Record
}

func settlement() store.Settlement {
	return store.Settlement{State: store.Completed, Attempt: 1, Keep: time.Hour, Outcome: store.Outcome{Body: []byte("done")}}
}

// down makes all calls of one shard fail.
func down(shard int) func(int, storetest.Op, int) storetest.Mode {
	return func(i int, _ storetest.Op, _ int) storetest.Mode {
		if i == shard {
			return storetest.Before
		}
		return storetest.None
	}
}

func isInjected(err error) bool { return errors.Is(err, storetest.ErrInjected) }

// frozen is a store that gives no answer while hangs is set.
type frozen struct {
	*memstore.Store
	hangs atomic.Bool
}

func (f *frozen) wait(ctx context.Context) error {
	if !f.hangs.Load() {
		return nil
	}
	<-ctx.Done()
	return ctx.Err()
}

func (f *frozen) Sweep(ctx context.Context, from store.Cursor, limit int) (store.SweepResult, error) {
	if err := f.wait(ctx); err != nil {
		return store.SweepResult{}, err
	}
	return f.Store.Sweep(ctx, from, limit)
}

func (f *frozen) DueTimers(ctx context.Context, operation string, within time.Duration, limit int) ([]store.Timer, time.Time, error) {
	if err := f.wait(ctx); err != nil {
		return nil, time.Time{}, err
	}
	return f.Store.DueTimers(ctx, operation, within, limit)
}

func (f *frozen) List(ctx context.Context, filter store.Filter) iter.Seq2[store.Found, error] {
	return func(yield func(store.Found, error) bool) {
		if err := f.wait(ctx); err != nil {
			yield(store.Found{}, err)
			return
		}
		f.Store.List(ctx, filter)(yield)
	}
}

func (f *frozen) Check(ctx context.Context) error { return f.wait(ctx) }

// newFrozen makes a store of the shards a, which can hang, and b. onB returns a key of an
// operation that is on b.
func newFrozen(t testing.TB) (s *shardstore.Store, a *frozen, onB func(operation string) string) {
	t.Helper()
	a = &frozen{Store: memstore.New(nil)}
	s = newStore(t, shardstore.Shard{Name: "a", Store: a}, shardstore.Shard{Name: "b", Store: memstore.New(nil)})
	return s, a, func(operation string) string {
		for i := 0; ; i++ {
			if k := (store.Key{Operation: operation, Tenant: "ann", Value: fmt.Sprint(i)}); s.On(k) == "b" {
				return k.Value
			}
		}
	}
}
