package saga_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/saga"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/memstore"
)

func TestGroup_StepsRunAtTheSameTime_AtMostLimit(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, st *memstore.Store, w *world) {
		var running, most atomic.Int32
		s := newSaga(t, st, w.waiting(func(ctx context.Context, r *saga.Run) error {
			g := r.Group(3)
			for i := range 7 {
				g.Go(func() error {
					_, err := saga.Step(ctx, r, fmt.Sprint("mail/", i), func(context.Context, saga.At) (int, error) {
						n := running.Add(1)
						for old := most.Load(); n > old && !most.CompareAndSwap(old, n); old = most.Load() {
						}
						sleep(time.Minute)
						running.Add(-1)
						return i, nil
					}, nil)
					return err
				})
			}
			return g.Wait()
		}))
		begin := time.Now()
		if _, err := s.Do(t.Context(), "ann", "1", book); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(begin); most.Load() != 3 || took != 3*time.Minute {
			t.Errorf("%d ran at the same time, in %v; want 3, in 3 min", most.Load(), took)
		}
	})
}

// A saga turns back only after each step of a group has a known end, so that no
// compensation is in doubt.
func TestGroup_OneRefusedOneInDoubt_DoubtIsSettledFirst(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, st *memstore.Store, w *world) {
		lost := once("mail/a", errBoom)
		w.after = lost
		w.before = func(name string) error {
			if name == "mail/b" {
				return errRefused
			}
			return nil
		}
		s := newSaga(t, st, w.waiting(func(ctx context.Context, r *saga.Run) error {
			g := r.Group(2)
			for _, name := range []string{"mail/a", "mail/b"} {
				g.Go(func() error {
					_, err := w.step(ctx, r, name)
					return err
				})
			}
			return g.Wait()
		}))
		if err := s.Start(t.Context(), "ann", "1", book); err != nil {
			t.Fatal(err)
		}
		work(t, time.Minute, s)
		if _, err := s.Do(t.Context(), "ann", "1", book); !errors.Is(err, errRefused) {
			t.Errorf("error %v, want the failure", err)
		}
		w.done(t, "hold", "mail/a", "mail/a", "undo mail/a", "undo hold")
	})
}

// Panics do not end a worker's process.
func TestRun_Panics_IsTriedAgain(t *testing.T) {
	t.Parallel()
	for _, where := range []string{"definition", "step", "group", "compensation"} {
		bubble(t, func(t *testing.T, st *memstore.Store, w *world) {
			var panicked sync.Once
			boom := func(here string) {
				if here == where {
					panicked.Do(func() { panic("boom") })
				}
			}
			w.before = func(name string) error {
				switch name {
				case "hold":
					boom("step")
				case "undo hold":
					boom("compensation")
				case "book":
					return errRefused
				}
				return nil
			}
			s := newSaga(t, st, w.waiting(func(_ context.Context, r *saga.Run) error {
				boom("definition")
				g := r.Group(1)
				g.Go(func() error {
					boom("group")
					return nil
				})
				return g.Wait()
			}))
			if err := s.Start(t.Context(), "ann", "1", book); err != nil {
				t.Fatal(err)
			}
			work(t, time.Minute, s)
			if r := record(t, st, "1"); r.State != store.Failed {
				t.Errorf("after a panic in the %s the saga is %v: %s", where, r.State, r.LastError)
			}
			w.done(t, "hold", "undo hold")
		})
	}
}

// A result that a new version cannot read parks the saga.
func TestStep_ResultHasAnotherType_ParksAndNamesIt(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, st *memstore.Store, w *world) {
		w.before = once("book", errBoom)
		_, _ = newSaga(t, st, w.three()).Do(t.Context(), "ann", "1", book)
		d := w.three()
		d.Run = func(ctx context.Context, r *saga.Run, in order) (string, error) {
			_, err := saga.Step(ctx, r, "hold", func(context.Context, saga.At) (int, error) { return 1, w.act("hold", "") }, nil)
			return "", err
		}
		if _, err := newSaga(t, st, d).Do(t.Context(), "ann", "1", book); !errors.Is(err, semel.ErrParked) {
			t.Errorf("error %v, want ErrParked", err)
		}
		w.done(t, "hold", "charge")
	})
}

func TestStep_UnknownOrUsedTwice_ParksAndNamesIt(t *testing.T) {
	t.Parallel()
	for _, names := range [][]string{{"hold", "hold"}, {"hold", "other"}} {
		bubble(t, func(t *testing.T, st *memstore.Store, w *world) {
			d := w.three()
			d.Run = func(ctx context.Context, r *saga.Run, in order) (string, error) {
				for _, name := range names {
					_, _ = w.step(ctx, r, name) // it ignores the error
				}
				return "done", nil
			}
			_, err := newSaga(t, st, d).Do(t.Context(), "ann", "1", book)
			if !errors.Is(err, semel.ErrParked) {
				t.Errorf("%q: error %v, want ErrParked", names, err)
			}
			w.done(t, "hold")
		})
	}
}

func TestDo_SameIDOtherInput_IsMismatch(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, st *memstore.Store, w *world) {
		s := newSaga(t, st, w.three())
		if _, err := s.Do(t.Context(), "ann", "1", book); err != nil {
			t.Fatal(err)
		}
		other := order{"book", 1}
		if _, err := s.Do(t.Context(), "ann", "1", other); !errors.Is(err, semel.ErrMismatch) {
			t.Errorf("Do: %v, want ErrMismatch", err)
		}
		if err := s.Start(t.Context(), "ann", "1", other); !errors.Is(err, semel.ErrMismatch) {
			t.Errorf("Start: %v, want ErrMismatch", err)
		}
	})
}

func TestNew_WrongDefinitionOrStore_EachIsNamed(t *testing.T) {
	t.Parallel()
	st := memstore.New(nil)
	good := (&world{}).three()
	for name, c := range map[string]struct {
		st     store.Store
		o      semel.Options
		change func(d *saga.Definition[order, string])
	}{
		"does not implement store.Timers":  {st: struct{ journalOnly }{journalOnly{st, st}}},
		"does not implement store.Journal": {st: struct{ store.Store }{st}},
		"OnDoubt Park":                     {o: semel.Options{OnDoubt: semel.Park}},
		"MaxAttempts":                      {o: semel.Options{MaxAttempts: 1}},
		"steps: is empty":                  {change: func(d *saga.Definition[order, string]) { d.Steps = nil }},
		`the name "a:b" of a step`:         {change: func(d *saga.Definition[order, string]) { d.Steps = []string{"a:b"} }},
		"run: is nil":                      {change: func(d *saga.Definition[order, string]) { d.Run = nil }},
		"must not contain '#'":             {change: func(d *saga.Definition[order, string]) { d.Name = "a#b" }},
		"must not be negative":             {change: func(d *saga.Definition[order, string]) { d.Deadline = -1 }},
	} {
		d := good
		if c.change != nil {
			c.change(&d)
		}
		if c.st == nil {
			c.st = st
		}
		guard, err := semel.New(c.st, &c.o)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := saga.New(guard, d); !errors.Is(err, semel.ErrInvalid) || !contains(err, name) {
			t.Errorf("error %v, want ErrInvalid with %q", err, name)
		}
	}
}

// journalOnly is a store that keeps steps and no timers.
type journalOnly struct {
	store.Store
	store.Journal
}

// A step costs one write to the store, and a saga five more. A new saga reads nothing.
func TestDo_ThreeSteps_CostOneWriteEachAndFiveMore(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, st *memstore.Store, w *world) {
		p := newProcess(st)
		if _, err := newSaga(t, p, w.three()).Do(t.Context(), "ann", "1", book); err != nil {
			t.Fatal(err)
		}
		want := map[string]int{"Claim": 1, "SetTimer": 1, "RecordStep": 1 + 3, "Settle": 1, "DropTimer": 1}
		if !maps.Equal(p.calls, want) {
			t.Errorf("the store was asked %v, want %v", p.calls, want)
		}
	})
}
