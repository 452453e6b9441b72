package shardstore_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/clocks"
	"github.com/semel-go/semel/saga"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/memstore"
	"github.com/semel-go/semel/store/shardstore"
)

// timerless is a store whose timers cannot be had.
type timerless struct{ *memstore.Store }

func (timerless) DueTimers(context.Context, string, time.Duration, int) ([]store.Timer, time.Time, error) {
	return nil, time.Time{}, errDown
}

// A shard that is down delays its own sagas only.
func TestDueTimers_ShardDown_OthersAreFound(t *testing.T) {
	s := newStore(t, shardstore.Shard{Name: "a", Store: timerless{memstore.New(nil)}}, shardstore.Shard{Name: "b", Store: memstore.New(nil)})
	timers, ok := store.As[store.Timers](s)
	if !ok {
		t.Fatal("the store keeps no timers")
	}
	up := 0
	for i := range 60 {
		k := key(fmt.Sprint(i))
		if set, err := timers.SetTimer(t.Context(), k, store.Owner{}, store.Owner{1}, 0); err != nil || !set {
			t.Fatalf("set %v, error %v", set, err)
		}
		if s.On(k) == "b" {
			up++
		}
	}
	due, now, err := timers.DueTimers(t.Context(), key("").Operation, time.Hour, 100)
	if len(due) != up || up == 0 || now.IsZero() || !errors.Is(err, errDown) || !strings.Contains(err.Error(), `"a"`) {
		t.Errorf("%d timers at %v, error %v; want %d and the error of a", len(due), now, err, up)
	}
}

// A clock that cannot be read may be the fastest, or the slowest. A shard may have several.
func TestClocks_EachShard_SlowestAndFastestOrError(t *testing.T) {
	w := newWorld(t, 3, time.Hour, nil)
	want := func(i int) time.Time { return store.Time(store.Micros(w.now(i))) }
	slow, fast, err := clocks.Read(t.Context(), w)
	if err != nil || !slow.Equal(want(0)) || !fast.Equal(want(2)) {
		t.Errorf("%v and %v, error %v; want %v and %v", slow, fast, err, want(0), want(2))
	}
	outer := newStore(t, shardstore.Shard{Name: "a", Store: w}, shardstore.Shard{Name: "b", Store: newWorld(t, 1, 0, nil)})
	slow, fast, err = clocks.Read(t.Context(), outer)
	if err != nil || !slow.Equal(want(0)) || !fast.Equal(want(2)) {
		t.Errorf("shards of shards: %v and %v, error %v; want %v and %v", slow, fast, err, want(0), want(2))
	}
	s := newStore(t, shardstore.Shard{Name: "a", Store: timerless{memstore.New(nil)}}, shardstore.Shard{Name: "b", Store: memstore.New(nil)})
	if slow, fast, err := clocks.Read(t.Context(), s); !errors.Is(err, errDown) || !strings.Contains(err.Error(), `"a"`) {
		t.Errorf("%v and %v, error %v; want the error of a", slow, fast, err)
	}
}

// A worker finds the sagas of a shard beside one that hangs, and learns the error.
func TestDueTimers_ShardHangs_SagasOfOthersRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st, a, onB := newFrozen(t)
		g, err := semel.New(st, nil)
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithTimeout(t.Context(), time.Minute)
		defer stop()
		start, ran := time.Now(), time.Duration(0)
		s, err := saga.New(g, saga.Definition[string, string]{Name: "trip", Steps: []string{"book"}, Run: func(_ context.Context, _ *saga.Run, in string) (string, error) {
			ran = time.Since(start)
			stop()
			return in, nil
		}})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Start(t.Context(), "ann", onB("trip##saga"), "x"); err != nil {
			t.Fatal(err)
		}
		a.hangs.Store(true)
		var failed error
		if err := s.Work(ctx, &saga.WorkOptions{OnError: func(_ context.Context, err error) { failed = err }}); err != nil {
			t.Fatal(err)
		}
		if ran != 2500*time.Millisecond { // half of the time that package saga gives
			t.Errorf("the saga of the shard that answers runs after %v, want 2.5s", ran)
		}
		if !errors.Is(failed, context.DeadlineExceeded) || !strings.Contains(failed.Error(), `"a"`) {
			t.Errorf("the worker gets error %v, want that of a", failed)
		}
	})
}

// readOnly is a store that refuses changes of timers while refuses is set.
type readOnly struct {
	*memstore.Store
	refuses atomic.Bool
}

func (r *readOnly) SetTimer(ctx context.Context, k store.Key, seen, next store.Owner, wait time.Duration) (bool, error) {
	if r.refuses.Load() {
		return false, errDown
	}
	return r.Store.SetTimer(ctx, k, seen, next, wait)
}

// hangingSet is a store whose SetTimer hangs until its context ends, while hangs is set.
type hangingSet struct {
	*memstore.Store
	hangs atomic.Bool
}

func (h *hangingSet) SetTimer(ctx context.Context, k store.Key, seen, next store.Owner, wait time.Duration) (bool, error) {
	if h.hangs.Load() {
		<-ctx.Done()
		return false, ctx.Err()
	}
	return h.Store.SetTimer(ctx, k, seen, next, wait)
}

// workBeside starts sagas of the shard a, then one of the shard b, and works until that one
// runs. It returns how long that takes, or 0 if it does not run within an hour.
func workBeside(t *testing.T, a store.Store, sagas int, fail func(), o *saga.WorkOptions) (ran time.Duration) {
	t.Helper()
	st := newStore(t, shardstore.Shard{Name: "a", Store: a}, shardstore.Shard{Name: "b", Store: memstore.New(nil)})
	g, err := semel.New(st, nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithTimeout(t.Context(), time.Hour)
	defer stop()
	start := time.Now()
	s, err := saga.New(g, saga.Definition[string, string]{Name: "trip", Steps: []string{"book"}, Run: func(_ context.Context, _ *saga.Run, in string) (string, error) {
		ran = max(time.Since(start), 1)
		stop()
		return in, nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	for i, onA, onB := 0, 0, 0; onB == 0; i++ {
		switch shard := st.On(saga.Key("trip", "ann", fmt.Sprint(i))); {
		case shard == "a" && onA < sagas:
			onA++
		case shard == "b" && onA == sagas:
			onB++
		default:
			continue
		}
		if err := s.Start(t.Context(), "ann", fmt.Sprint(i), "x"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Microsecond) // the sagas of a are due first
	}
	fail()
	if err := s.Work(ctx, o); err != nil {
		t.Fatal(err)
	}
	return ran
}

// A shard that shows its timers, and lets no worker have one, delays its own sagas only,
// also if it has more of them than run at the same time.
func TestSetTimer_ShardRefuses_SagasOfOthersRun(t *testing.T) {
	for _, sagas := range []int{1, 16, 200} {
		t.Run(fmt.Sprint(sagas), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := &readOnly{Store: memstore.New(nil)}
				var failed error
				ran := workBeside(t, a, sagas, func() { a.refuses.Store(true) }, &saga.WorkOptions{OnError: func(_ context.Context, err error) { failed = err }})
				if ran == 0 || ran > 10*time.Second || !errors.Is(failed, errDown) {
					t.Errorf("the saga of b runs after %v, and the error is %v; want at most 10s, and the error of a", ran, failed)
				}
			})
		})
	}
}

// The worker waits for all timers of a shard that hangs together.
func TestSetTimer_ShardHangs_SagasOfOthersRun(t *testing.T) {
	for sagas, limit := range map[int]time.Duration{15: 5 * time.Second, 16: 10 * time.Second} {
		t.Run(fmt.Sprint(sagas), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := &hangingSet{Store: memstore.New(nil)}
				if ran := workBeside(t, a, sagas, func() { a.hangs.Store(true) }, nil); ran == 0 || ran > limit+time.Second {
					t.Errorf("the saga of b runs after %v, want about %v", ran, limit)
				}
			})
		})
	}
}

// deafTimers is a store whose DueTimers hangs, whatever becomes of its context.
type deafTimers struct {
	*memstore.Store
	wake chan struct{}
}

func (d deafTimers) DueTimers(context.Context, string, time.Duration, int) ([]store.Timer, time.Time, error) {
	<-d.wake
	return nil, time.Time{}, nil
}

func TestDueTimers_ShardIgnoresContext_ReturnsAfterHalfOfTheTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		deaf := deafTimers{memstore.New(nil), make(chan struct{})}
		defer close(deaf.wake)
		timers, _ := store.As[store.Timers](newStore(t, shardstore.Shard{Name: "a", Store: deaf}, shardstore.Shard{Name: "b", Store: memstore.New(nil)}))
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		start := time.Now()
		_, now, err := timers.DueTimers(ctx, "op", 0, 10)
		if took := time.Since(start); took != 5*time.Second || now.IsZero() || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("DueTimers returns the time %v and error %v after %v, want the clock of b and the error of a after 5s", now, err, took)
		}
	})
}

func TestUnwrap_OneShardKeepsNoTimers_NoneAreKept(t *testing.T) {
	s := newStore(t, shardstore.Shard{Name: "a", Store: bare{memstore.New(nil)}}, shardstore.Shard{Name: "b", Store: memstore.New(nil)})
	if _, ok := store.As[store.Timers](s); ok {
		t.Error("the store keeps timers")
	}
}
