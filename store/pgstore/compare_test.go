package pgstore

import (
	"context"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
)

// TestStore_ComparedWithPublishedPatterns measures, with default durability, on
// servers of its own: SEMEL_TEST_COMPARE=1. Nothing here is judged, because
// that depends on the machine; ratios are of contenders that take turns. Each
// of its tests takes less than 90 s.
func TestStore_ComparedWithPublishedPatterns(t *testing.T) {
	if os.Getenv("SEMEL_TEST_COMPARE") != "1" {
		t.Skip("a measurement: set SEMEL_TEST_COMPARE=1")
	}
	t.Run("leased", func(t *testing.T) {
		b := newComparison(t)
		floors := map[int][2]float64{1: {1, 0}, 64: {4.8, 0}, 256: {8.5, 0}}
		for _, g := range []int{1, 64, 256} {
			b.m.versus(t, "leased, new", g, 1, b.twoTx(0), b.leased(floors[g][0], 0), b.relaxed(floors[g][1], 0))
		}
	})
	t.Run("duplicates", func(t *testing.T) {
		b := newComparison(t)
		for _, g := range []int{64, 256} {
			b.m.versus(t, "leased, 50%", g, 2, b.twoTx(0), b.leased(0, 0), b.relaxed(0, 0))
		}
	})
	t.Run("handler", func(t *testing.T) {
		b := newComparison(t)
		const work = 5 * time.Millisecond
		b.m.versus(t, "5 ms", 256, 1, b.twoTx(work), b.oneTx(work), b.leased(4, work), b.relaxed(0, work))
	})
	t.Run("pgbench", func(t *testing.T) {
		b := newComparison(t)
		b.m.versus(t, "pgbench", 64, 1, b.m.pgbench(t), b.leased(2.3, 0), b.relaxed(0, 0))
	})
	t.Run("atomic", func(t *testing.T) {
		b := newComparison(t)
		for _, g := range []int{1, 16, 64, 256} {
			b.m.versus(t, "atomic, new", g, 1, b.oneTx(0), b.atomic(1.05))
		}
	})
	t.Run("atomicDuplicates", func(t *testing.T) {
		b := newComparison(t)
		for _, g := range []int{1, 16, 64, 256} {
			b.m.versus(t, "atomic, 50%", g, 2, b.oneTx(0), b.atomic(2))
		}
	})
	t.Run("operations", func(t *testing.T) { newComparison(t).operations(t) })
}

// comparison is a server with the tables of all contenders.
type comparison struct {
	m    *meter
	s, r *Store // r: relaxed
	pub  *published
	a    *Atomic
}

func newComparison(t *testing.T) *comparison {
	b := &comparison{m: newMeter(t)}
	b.s = b.m.open(t, nil)
	b.r = b.m.open(t, &Options{RelaxedClaims: true})
	b.pub = newPublished(t, b.s)
	var err error
	if b.a, err = NewAtomic(b.s, nil); err != nil {
		t.Fatal(err)
	}
	return b
}

func (b *comparison) twoTx(work time.Duration) competitor {
	return competitor{name: "2 tx", do: (&published{b.pub.db, work}).twoTx}
}

func (b *comparison) oneTx(work time.Duration) competitor {
	return competitor{name: "1 tx", do: (&published{b.pub.db, work}).oneTx}
}

func (b *comparison) leased(floor float64, work time.Duration) competitor {
	return competitor{name: "leased", floor: floor, do: guarded(b.s, work)}
}

func (b *comparison) relaxed(floor float64, work time.Duration) competitor {
	return competitor{name: "relaxed", floor: floor, do: guarded(b.r, work)}
}

func guarded(s store.Store, work time.Duration) func(ctx context.Context, key string) error {
	g, err := semel.New(s, nil)
	return func(ctx context.Context, key string) error {
		if err != nil {
			return err
		}
		_, err := g.Run(ctx, call(key), func(context.Context, *semel.Execution) (store.Outcome, error) {
			sleepBusy(work)
			return store.Outcome{Code: 200, Body: []byte(result)}, nil
		})
		return err
	}
}

func (b *comparison) atomic(floor float64) competitor {
	return competitor{name: "atomic", floor: floor, do: func(ctx context.Context, key string) error {
		_, err := b.a.Run(ctx, call(key), func(ctx context.Context, _ *semel.Execution) (store.Outcome, error) {
			tx, _ := TxFrom(ctx)
			_, err := tx.Exec(ctx, "INSERT INTO business VALUES ($1, 1)", key)
			return store.Outcome{Code: 200, Body: []byte(result)}, err
		})
		return err
	}}
}

// operations reports what each operation of the store costs.
func (b *comparison) operations(t *testing.T) {
	for _, g := range []int{1, 64} {
		n := 2000 * min(g, 16) // of each
		keys := make([]string, n)
		for i := range keys {
			keys[i] = fmt.Sprint(g, " ", i)
		}
		leases := make([]store.Lease, n)
		kept := completion(result)
		atomically := b.atomic(0)
		for _, op := range []struct {
			name string
			do   func(i int) error
		}{
			{"claim", func(i int) error {
				f, err := b.s.Claim(t.Context(), proposal(keys[i]))
				leases[i] = f.Record.Lease()
				return err
			}},
			{"settle", func(i int) error { return b.s.Settle(t.Context(), leases[i], kept) }},
			{"duplicate", func(i int) error {
				_, err := b.s.Claim(t.Context(), proposal(keys[i]))
				return err
			}},
			{"get", func(i int) error {
				_, err := b.s.Get(t.Context(), testKey(keys[i]))
				return err
			}},
			{"claim, relaxed", func(i int) error {
				f, err := b.r.Claim(t.Context(), proposal("r"+keys[i]))
				leases[i] = f.Record.Lease()
				return err
			}},
			{"atomic, new", func(i int) error { return atomically.do(t.Context(), keys[i]) }},
			{"atomic, dup", func(i int) error { return atomically.do(t.Context(), keys[i]) }},
		} {
			c := b.m.measure(t, func() (int, []time.Duration) { return shared(t, g, n, op.do) })
			t.Logf("%-14s %3d goroutines  %v", op.name, g, c)
		}
	}
	var held []store.Lease
	for i := range 250 {
		r := claim(t, b.s, fmt.Sprint("held ", i))
		held = append(held, r.Lease())
	}
	c := b.m.measure(t, func() (int, []time.Duration) {
		return shared(t, 1, 200, func(int) error {
			_, err := b.s.Renew(t.Context(), held, time.Minute)
			return err
		})
	})
	t.Logf("%-14s %3d goroutine   %v", "renew of 250", 1, c)
}

// shared has g goroutines share n operations.
func shared(t testing.TB, g, n int, do func(i int) error) (int, []time.Duration) {
	t.Helper()
	took := make([]time.Duration, n)
	var all sync.WaitGroup
	for w := range g {
		all.Go(func() {
			for i := w; i < n; i += g {
				at := time.Now()
				if err := do(i); err != nil {
					t.Error(err)
					return
				}
				took[i] = time.Since(at)
			}
		})
	}
	all.Wait()
	return n, took
}
