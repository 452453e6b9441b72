package semel_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/memstore"
)

func TestWait_BrokenNotifier_DoesNotSpin(t *testing.T) {
	for name, ret := range map[string]error{"error": errBoom, "early nil": nil} {
		t.Run(name, func(t *testing.T) {
			var gets, waits atomic.Int64
			st := memstore.New(nil)
			w := &badWaiter{hooks: hooks{Store: st}, n: &waits, err: ret}
			w.hooks.get = func(ctx context.Context, k store.Key) (store.Found, error) {
				gets.Add(1)
				return st.Get(ctx, k)
			}
			g := guard(t, w, nil)
			crash(t, st, semel.Retry, "k", time.Minute)
			_, err := g.Run(t.Context(), waiting("k", 300*time.Millisecond), never(t))
			wantErr(t, err, semel.ErrInProgress)
			if gets.Load() > 100 {
				t.Errorf("%d reads, %d waits in 300 ms", gets.Load(), waits.Load())
			}
		})
	}
}

type badWaiter struct {
	hooks
	n   *atomic.Int64
	err error
}

func (b *badWaiter) Wait(context.Context, store.Seen) error { b.n.Add(1); return b.err }

func TestWait_NotifierStillWaiting_DoesNotRace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := &okWaiter{hooks{Store: memstore.New(nil)}}
		g := guard(t, st, nil)
		for i := range 20 {
			k := fmt.Sprint(i)
			started := make(chan struct{})
			var wg sync.WaitGroup
			wg.Go(func() {
				_, _ = g.Run(t.Context(), ann(k), func(context.Context, *semel.Execution) (store.Outcome, error) {
					close(started)
					time.Sleep(2 * time.Millisecond)
					return store.Outcome{Body: []byte("one")}, nil
				})
			})
			<-started
			_, _ = g.Run(t.Context(), waiting(k, time.Minute), never(t))
			wg.Wait()
		}
	})
}

type okWaiter struct{ hooks }

func (b *okWaiter) Wait(ctx context.Context, _ store.Seen) error { <-ctx.Done(); return ctx.Err() }

func TestWait_RunOfAnotherProcess_Polls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := memstore.New(nil)
		g1, g2 := guard(t, st, nil), guard(t, st, nil)
		go func() { _, _ = g1.Run(t.Context(), ann("k"), slowly) }()
		synctest.Wait()
		start := time.Now()
		res, err := g2.Run(t.Context(), waiting("k", time.Minute), never(t))
		wantBody(t, res, err, "one", true)
		if took := time.Since(start); took > 2*time.Second {
			t.Errorf("noticed the end after %v", took)
		}
	})
}

// teller is a store that tells of changes as its function does.
type teller struct {
	hooks
	wait func(ctx context.Context) error
}

func (s *teller) Wait(ctx context.Context, _ store.Seen) error { return s.wait(ctx) }

// One Guard runs for a minute; another, over a store that tells, waits for it.
func TestWait_StoreNotifiesOrNot_NoticesEnd(t *testing.T) {
	told := make(chan struct{})
	for _, c := range []struct {
		name     string
		wait     func(context.Context) error
		tell     bool          // when the run has ended
		late     time.Duration // at most
		min, max int           // reads
	}{
		{"told", func(ctx context.Context) error {
			select {
			case <-told:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}, true, 20 * time.Millisecond, 0, 40},
		{"what it is told is lost", func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }, false, 8 * time.Second, 0, 40},
		{"the store cannot tell", func(context.Context) error { return errors.ErrUnsupported }, false, 2 * time.Second, 80, 400},
		{"the store cannot tell any longer", func(ctx context.Context) error {
			if pauseFor(ctx, time.Second) {
				return errBoom
			}
			return ctx.Err()
		}, false, 2 * time.Second, 80, 400},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				told = make(chan struct{})
				st, gets := memstore.New(nil), 0
				w := &teller{hooks{Store: st, get: func(ctx context.Context, k store.Key) (store.Found, error) {
					gets++
					return st.Get(ctx, k)
				}}, c.wait}
				g1, g2 := guard(t, st, nil), guard(t, w, nil)
				var ended time.Time
				var run sync.WaitGroup
				run.Go(func() {
					_, _ = g1.Run(t.Context(), ann("k"), func(context.Context, *semel.Execution) (store.Outcome, error) {
						time.Sleep(time.Minute)
						return store.Outcome{Body: []byte("one")}, nil
					})
					ended = time.Now()
					if c.tell {
						close(told)
					}
				})
				synctest.Wait()
				res, err := g2.Run(t.Context(), waiting("k", 5*time.Minute), never(t))
				noticed := time.Now()
				wantBody(t, res, err, "one", true)
				run.Wait()
				if late := noticed.Sub(ended); late > c.late || gets < c.min || gets > c.max {
					t.Errorf("noticed the end %v late, with %d reads; want %v at most, and %d to %d", late, gets, c.late, c.min, c.max)
				}
			})
		})
	}
}

// Rule 14: within one Guard a waiter needs neither the store nor a poll to be
// told, also when it is one of several, and when others wait for another key.
func TestWait_SameGuard_IsWokenAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := guard(t, memstore.New(nil), nil)
		var ended, told sync.Map // by key: when the run was over; by waiter: when it was told
		var all sync.WaitGroup
		for i, key := range []string{"a", "b"} {
			all.Go(func() {
				_, _ = g.Run(t.Context(), ann(key), func(context.Context, *semel.Execution) (store.Outcome, error) {
					time.Sleep(time.Duration(i+1) * time.Second)
					return store.Outcome{Body: []byte(key)}, nil
				})
				ended.Store(key, time.Now())
			})
		}
		synctest.Wait()
		for i := range 6 {
			key := []string{"a", "b"}[i%2]
			all.Go(func() {
				res, err := g.Run(t.Context(), waiting(key, time.Minute), never(t))
				now := time.Now()
				wantBody(t, res, err, key, true)
				told.Store(i, now) // which may be before the run's own caller is
			})
		}
		all.Wait()
		for i := range 6 {
			at, _ := told.Load(i)
			end, _ := ended.Load([]string{"a", "b"}[i%2])
			if late := at.(time.Time).Sub(end.(time.Time)); late != 0 {
				t.Errorf("waiter %v was told %v late", i, late)
			}
		}
	})
}

func pauseFor(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}
