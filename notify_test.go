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

// notifyingStore is a store.Waiter that waits by a function.
type notifyingStore struct {
	hooks
	wait func(ctx context.Context) error
}

func (s *notifyingStore) Wait(ctx context.Context, _ store.Seen) error { return s.wait(ctx) }

func TestWait_BrokenNotifier_DoesNotSpin(t *testing.T) {
	for name, ret := range map[string]error{"error": errBoom, "early nil": nil} {
		t.Run(name, func(t *testing.T) {
			var gets, waits atomic.Int64
			st := memstore.New(nil)
			w := &notifyingStore{hooks{Store: st}, func(context.Context) error { waits.Add(1); return ret }}
			w.hooks.get = func(ctx context.Context, k store.Key) (store.Found, error) {
				gets.Add(1)
				return st.Get(ctx, k)
			}
			g := guard(t, w, nil)
			crash(t, st, semel.Retry, "k", time.Minute)
			_, err := g.Run(t.Context(), waiting("k", 300*time.Millisecond), never(t))
			wantErr(t, err, semel.ErrInProgress)
			if gets.Load() > 100 {
				t.Errorf("%d reads and %d waits in 300 ms; want at most 100 reads", gets.Load(), waits.Load())
			}
		})
	}
}

func TestWait_NotifierStillWaiting_GetsResult(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := &notifyingStore{hooks{Store: memstore.New(nil)}, func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }}
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
			res, err := g.Run(t.Context(), waiting(k, time.Minute), never(t))
			wg.Wait()
			wantBody(t, res, err, "one", true)
		}
	})
}

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
			t.Errorf("noticed the end of the run after %v, want at most 2 s", took)
		}
	})
}

// One Guard runs a call for a minute. Another Guard, over a notifying store, waits.
func TestWait_StoreNotifiesOrNot_NoticesEnd(t *testing.T) {
	changed := make(chan struct{})
	for _, c := range []struct {
		name     string
		wait     func(context.Context) error
		notifies bool          // when the run has ended
		late     time.Duration // the latest time to notice the end, after it
		min, max int           // reads while waiting
	}{
		{"the store notifies", func(ctx context.Context) error {
			select {
			case <-changed:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}, true, 20 * time.Millisecond, 0, 40},
		{"the notification is lost", func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }, false, 8 * time.Second, 0, 40},
		{"the store cannot notify", func(context.Context) error { return errors.ErrUnsupported }, false, 2 * time.Second, 80, 400},
		{"the store fails while it waits", func(ctx context.Context) error {
			if sleepUnlessDone(ctx, time.Second) {
				return errBoom
			}
			return ctx.Err()
		}, false, 2 * time.Second, 80, 400},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				changed = make(chan struct{})
				st, gets := memstore.New(nil), 0
				w := &notifyingStore{hooks{Store: st, get: func(ctx context.Context, k store.Key) (store.Found, error) {
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
					if c.notifies {
						close(changed)
					}
				})
				synctest.Wait()
				res, err := g2.Run(t.Context(), waiting("k", 5*time.Minute), never(t))
				noticed := time.Now()
				wantBody(t, res, err, "one", true)
				run.Wait()
				if late := noticed.Sub(ended); late > c.late || gets < c.min || gets > c.max {
					t.Errorf("noticed the end after %v and %d reads; want at most %v and %d to %d reads", late, gets, c.late, c.min, c.max)
				}
			})
		})
	}
}

// Rule 14: the end of a run wakes each call of the same Guard that waits for the key,
// without the store and without a poll.
func TestWait_SameGuard_IsWokenAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := guard(t, memstore.New(nil), nil)
		var ended, woken sync.Map // the time at which a run ended, by key; and a caller woke, by number
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
				woken.Store(i, now) // before the caller of the run has stored its time, perhaps
			})
		}
		all.Wait()
		for i := range 6 {
			woke, _ := woken.Load(i)
			end, _ := ended.Load([]string{"a", "b"}[i%2])
			if late := woke.(time.Time).Sub(end.(time.Time)); late != 0 {
				t.Errorf("caller %v woke %v after the end of the run, want at once", i, late)
			}
		}
	})
}

// sleepUnlessDone reports whether the time has passed before ctx has ended.
func sleepUnlessDone(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}
