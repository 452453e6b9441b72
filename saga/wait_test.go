package saga_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/history"
	"github.com/semel-go/semel/saga"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/memstore"
)

// waiting is a saga that holds, waits by the given function, and books.
func (w *world) waiting(wait func(ctx context.Context, r *saga.Run) error) saga.Definition[order, string] {
	d := w.three()
	d.Steps = []string{"hold", "wait", "book", "mail/*"}
	d.Run = func(ctx context.Context, r *saga.Run, in order) (string, error) {
		if _, err := w.step(ctx, r, "hold"); err != nil {
			return "", err
		}
		if err := wait(ctx, r); err != nil {
			return "", err
		}
		if _, err := w.step(ctx, r, "book"); err != nil {
			return "", err
		}
		return "booked " + in.Item, nil
	}
	return d
}

func TestSleep_GoesOnWhenItIsOver_NeverBefore(t *testing.T) {
	t.Parallel()
	for _, way := range []string{"do", "work", "other process"} {
		bubble(t, func(t *testing.T, st *memstore.Store, w *world) {
			var at time.Time
			w.before = func(name string) error {
				if name == "book" {
					at = time.Now()
				}
				return nil
			}
			d := w.waiting(func(ctx context.Context, r *saga.Run) error { return saga.Sleep(ctx, r, "wait", 2*time.Hour) })
			begin, s := time.Now(), newSaga(t, st, d)
			switch way {
			case "do":
				if v, err := s.Do(t.Context(), "ann", "1", book); err != nil || v != "booked book" {
					t.Errorf("%q, %v", v, err)
				}
			default:
				if err := s.Start(t.Context(), "ann", "1", book); err != nil {
					t.Fatal(err)
				}
				work(t, 20*time.Minute, s)
				if way == "other process" {
					s = newSaga(t, st, d)
				}
				work(t, 3*time.Hour, s)
			}
			if slept := at.Sub(begin); slept < 2*time.Hour || slept > 2*time.Hour+5*time.Second {
				t.Errorf("%s: it went on after %v, want 2 h", way, slept)
			}
			w.done(t, "hold", "book")
		})
	}
}

// A sleeping saga takes no worker's slot, and its record is changed by nobody.
func TestSleep_ManySagas_OthersRunMeanwhile(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, st *memstore.Store, w *world) {
		s := newSaga(t, st, w.waiting(func(ctx context.Context, r *saga.Run) error {
			return saga.Sleep(ctx, r, "wait", time.Hour)
		}))
		for i := range 100 {
			if err := s.Start(t.Context(), "ann", fmt.Sprint(i), book); err != nil {
				t.Fatal(err)
			}
		}
		begin := time.Now()
		work(t, 2*time.Hour, s)
		for i := range 100 {
			if r := record(t, st, fmt.Sprint(i)); r.State != store.Completed || r.Completed.Sub(begin) > time.Hour+10*time.Second {
				t.Fatalf("saga %d is %v, completed after %v", i, r.State, r.Completed.Sub(begin))
			}
		}
	})
}

func TestAwait_EventComes_GoesOnWithItsValue(t *testing.T) {
	t.Parallel()
	for _, early := range []bool{false, true} {
		for _, way := range []string{"do", "work"} {
			bubble(t, func(t *testing.T, st *memstore.Store, w *world) {
				var value atomic.Value
				d := w.waiting(func(ctx context.Context, r *saga.Run) error {
					v, err := saga.Await[string](ctx, r, "wait", 0)
					value.Store(v)
					return err
				})
				s := newSaga(t, st, d)
				var all sync.WaitGroup
				ctx, cancel := context.WithCancel(t.Context())
				if err := s.Start(t.Context(), "ann", "1", book); err != nil {
					t.Fatal(err)
				}
				run := func() {
					all.Go(func() {
						if way == "work" {
							_ = s.Work(ctx, nil)
							return
						}
						if v, err := s.Do(ctx, "ann", "1", book); err != nil || v != "booked book" {
							t.Errorf("%q, %v", v, err)
						}
					})
				}
				if !early {
					run()
					sleep(20 * time.Minute)
				}
				for i := range 2 { // the second is a duplicate
					if err := s.Send(t.Context(), "ann", "1", "wait", fmt.Sprint("value ", i)); err != nil {
						t.Errorf("Send: %v", err)
					}
				}
				if early {
					run()
				}
				sleep(5 * time.Second)
				cancel()
				all.Wait()
				w.done(t, "hold", "book")
				if v := value.Load(); v != "value 0" {
					t.Errorf("the event is %q, want the first", v)
				}
				if err := s.Send(t.Context(), "ann", "1", "wait", "late"); !errors.Is(err, saga.ErrEnded) {
					t.Errorf("Send to a saga that has ended: %v, want ErrEnded", err)
				}
			})
		}
	}
}

func TestAwait_EventDoesNotCome_TurnsBackAndRefusesIt(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, st *memstore.Store, w *world) {
		s := newSaga(t, st, w.waiting(func(ctx context.Context, r *saga.Run) error {
			_, err := saga.Await[string](ctx, r, "wait", time.Hour)
			return err
		}))
		begin := time.Now()
		_, err := s.Do(t.Context(), "ann", "1", book)
		if f, ok := errors.AsType[*semel.Failure](err); !ok || f.Code != saga.CodeNoEvent {
			t.Errorf("error %v, want the failure of a missing event", err)
		}
		if took := time.Since(begin); took < time.Hour || took > time.Hour+2*time.Second {
			t.Errorf("it took %v, want 1 h", took)
		}
		w.done(t, "hold", "undo hold")
		if err := s.Send(t.Context(), "ann", "1", "wait", "late"); !errors.Is(err, saga.ErrEnded) {
			t.Errorf("Send: %v, want ErrEnded", err)
		}
	})
}

// An event that comes after a saga has turned back would let a later run reach a step
// that no earlier one has reached, and undo it out of order.
func TestSend_SagaHasTurnedBack_IsRefused(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, st *memstore.Store, w *world) {
		d := w.waiting(func(ctx context.Context, r *saga.Run) error {
			_, err := saga.Await[string](ctx, r, "wait", 0)
			return err
		})
		d.Deadline = time.Hour
		s := newSaga(t, st, d)
		if err := s.Start(t.Context(), "ann", "1", book); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		var working sync.WaitGroup
		undoing := make(chan struct{})
		fail := once("undo hold", errBoom)
		w.before = func(name string) error {
			err := fail(name)
			if err != nil {
				close(undoing)
			}
			return err
		}
		working.Go(func() { _ = s.Work(ctx, nil) })
		<-undoing
		cancel() // the compensation has failed once, and nobody goes on now
		working.Wait()
		if err := s.Send(t.Context(), "ann", "1", "wait", "late"); !errors.Is(err, saga.ErrEnded) {
			t.Errorf("Send: %v, want ErrEnded", err)
		}
		work(t, time.Minute, s)
		w.done(t, "hold", "undo hold")
	})
}

func TestSend_NoSuchSagaOrEvent_IsRefused(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, st *memstore.Store, w *world) {
		s := newSaga(t, st, w.three())
		if err := s.Send(t.Context(), "ann", "1", "hold", 1); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("error %v, want ErrNotFound", err)
		}
		if err := s.Send(t.Context(), "ann", "1", "other", 1); !errors.Is(err, semel.ErrInvalid) {
			t.Errorf("error %v, want ErrInvalid", err)
		}
		if n := timersOf(t, st); n != 0 {
			t.Errorf("%d timers are left", n)
		}
	})
}

// A deadline ends a wait.
func TestDeadline_DuringSleep_TurnsBackThen(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, st *memstore.Store, w *world) {
		d := w.waiting(func(ctx context.Context, r *saga.Run) error { return saga.Sleep(ctx, r, "wait", 100*time.Hour) })
		d.Deadline = time.Hour
		s := newSaga(t, st, d)
		if err := s.Start(t.Context(), "ann", "1", book); err != nil {
			t.Fatal(err)
		}
		work(t, time.Hour+10*time.Second, s)
		w.done(t, "hold", "undo hold")
		if r := record(t, st, "1"); r.State != store.Failed {
			t.Errorf("the saga is %v", r.State)
		}
	})
}

// A saga that has its event is stuck at the step after it, and not at the event.
func TestStuck_EventReceived_IsNotOffered(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, st *memstore.Store, w *world) {
		d := w.waiting(func(ctx context.Context, r *saga.Run) error {
			_, err := saga.Await[string](ctx, r, "wait", 0)
			return err
		})
		d.MaxAttempts = 1
		w.after = once("book", errBoom)
		s := newSaga(t, st, d)
		if err := s.Start(t.Context(), "ann", "1", book); err != nil {
			t.Fatal(err)
		}
		if err := s.Send(t.Context(), "ann", "1", "wait", "approved by bob"); err != nil {
			t.Fatal(err)
		}
		work(t, time.Minute, s)
		r := record(t, st, "1")
		if stuck := history.DescribeStuck(&r, nil); r.State != store.Unknown || fmt.Sprint(stuck.Steps) != "[book]" {
			t.Errorf("the saga is %v at %q: %s", r.State, stuck.Steps, r.LastError)
		}
	})
}

// A sleep cannot be skipped, also not by what looks like the end of it.
func TestSleep_SkippedByNumber_IsStuck(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, st *memstore.Store, w *world) {
		d := w.waiting(func(ctx context.Context, r *saga.Run) error { return saga.Sleep(ctx, r, "wait", time.Hour) })
		d.MaxAttempts = 1
		w.after = once("hold", errBoom)
		s := newSaga(t, st, d)
		_, _ = s.Do(t.Context(), "ann", "1", book)
		forgetError(t, st, "1")
		decide(t, st, saga.Intervention{Done: "wait", Result: []byte("4102444800000000")})
		work(t, time.Hour, s)
		if r := record(t, st, "1"); r.State != store.Unknown || !strings.Contains(r.LastError, "which cannot be skipped") {
			t.Errorf("the saga is %v: %s", r.State, r.LastError)
		}
		decide(t, st, saga.Intervention{NotHappened: []string{"wait"}})
		work(t, 2*time.Hour, s)
		if r := record(t, st, "1"); r.State != store.Completed {
			t.Errorf("the saga is %v: %s", r.State, r.LastError)
		}
	})
}
