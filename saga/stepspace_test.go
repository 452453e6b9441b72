package saga_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/saga"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/memstore"
)

// A saga whose steps use up its record is stuck while there is room to turn it back.
func TestStep_RecordNearlyFull_SagaCanStillBeTurnedBack(t *testing.T) {
	t.Parallel()
	large := strings.Repeat("x", 250<<10)
	for name, run := range map[string]func(w *world) func(ctx context.Context, r *saga.Run, _ order) (string, error){
		"Parked step without effect": func(w *world) func(ctx context.Context, r *saga.Run, _ order) (string, error) {
			return func(ctx context.Context, r *saga.Run, _ order) (string, error) {
				if _, err := w.step(ctx, r, "hold"); err != nil {
					return "", err
				}
				return saga.Step(ctx, r, "charge", func(context.Context, saga.At) (string, error) { return "", semel.NoEffect(errBoom) }, nil, saga.Parked())
			}
		},
		"many steps": func(w *world) func(ctx context.Context, r *saga.Run, _ order) (string, error) {
			return func(ctx context.Context, r *saga.Run, _ order) (string, error) {
				for n := range 1000 {
					if _, err := w.step(ctx, r, fmt.Sprint("mail/", n)); err != nil {
						return "", err
					}
				}
				return "", nil
			}
		},
		"large results": func(w *world) func(ctx context.Context, r *saga.Run, _ order) (string, error) {
			return func(ctx context.Context, r *saga.Run, _ order) (string, error) {
				for n := range 4 { // together more than the record keeps
					_, err := saga.Step(ctx, r, fmt.Sprint("mail/", n), func(_ context.Context, at saga.At) (string, error) {
						return large, w.act("mail", at.Key())
					}, func(_ context.Context, at saga.At, _ string) error { return w.act("undo mail", at.Key()) })
					if err != nil {
						return "", err
					}
				}
				return saga.Step(ctx, r, "charge", func(context.Context, saga.At) (string, error) { return "", errBoom }, nil, saga.Parked())
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T, st *memstore.Store, w *world) {
				d := w.three()
				d.Steps = []string{"hold", "charge", "mail/*"}
				d.Run = run(w)
				s := newSaga(t, st, d)
				var err error
				for range 700 {
					if _, err = s.Do(t.Context(), "ann", "1", book); errors.Is(err, semel.ErrParked) {
						break
					}
				}
				if !errors.Is(err, semel.ErrParked) {
					t.Fatalf("error %v, want the saga stuck while there is room", err)
				}
				if name == "large results" {
					decide(t, st, saga.Intervention{NotHappened: []string{"charge"}, Back: true})
					work(t, time.Minute, s)
					decide(t, st, saga.Intervention{Done: "mail/3", Result: []byte(`""`)}) // its result was not kept
				} else {
					if !contains(err, "turn the saga back") {
						t.Errorf("error %v", err)
					}
					decide(t, st, saga.Intervention{Back: true})
				}
				work(t, time.Minute, s)
				if r := record(t, st, "1"); r.State != store.Failed {
					t.Errorf("the saga is %v: %s", r.State, r.LastError)
				}
				effects, undone := 0, 0
				for _, did := range w.log {
					switch {
					case strings.HasPrefix(did, "undo in doubt "): // of the step that did not start
					case strings.HasPrefix(did, "undo "):
						undone++
					default:
						effects++
					}
				}
				if effects == 0 || effects != undone {
					t.Errorf("%d effects, and %d of them undone", effects, undone)
				}
			})
		})
	}
}

// An event that does not fit into the record is refused.
func TestSend_RecordNearlyFull_IsRefused(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, st *memstore.Store, w *world) {
		large := strings.Repeat("x", 200<<10)
		d := w.waiting(func(ctx context.Context, r *saga.Run) error {
			for n := range 4 {
				if _, err := saga.Step(ctx, r, fmt.Sprint("mail/", n), func(context.Context, saga.At) (string, error) { return large, nil }, nil); err != nil {
					return err
				}
			}
			_, err := saga.Await[string](ctx, r, "wait", 0)
			return err
		})
		s := newSaga(t, st, d)
		if err := s.Start(t.Context(), "ann", "1", book); err != nil {
			t.Fatal(err)
		}
		work(t, time.Minute, s)
		if err := s.Send(t.Context(), "ann", "1", "wait", large); !errors.Is(err, semel.ErrInvalid) {
			t.Errorf("error %v, want ErrInvalid", err)
		}
		if err := s.Send(t.Context(), "ann", "1", "wait", "come"); err != nil {
			t.Error(err)
		}
		work(t, time.Minute, s)
		w.done(t, "hold", "book")
	})
}

// If the results of steps leave no room for an event, the saga is stuck before it waits, so that an
// operator sees it.
func TestAwait_RecordNearlyFull_IsStuck(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, st *memstore.Store, w *world) {
		large := strings.Repeat("x", 229000)
		s := newSaga(t, st, w.waiting(func(ctx context.Context, r *saga.Run) error {
			for n := range 4 {
				if _, err := saga.Step(ctx, r, fmt.Sprint("mail/", n), func(context.Context, saga.At) (string, error) { return large, nil }, nil); err != nil {
					return err
				}
			}
			_, err := saga.Await[string](ctx, r, "wait", 0)
			return err
		}))
		if _, err := s.Do(t.Context(), "ann", "1", book); !errors.Is(err, semel.ErrParked) || !contains(err, "event") {
			t.Errorf("error %v, want ErrParked", err)
		}
		if err := s.Send(t.Context(), "ann", "1", "wait", "come"); err == nil || contains(err, "keep large") {
			t.Errorf("error %v, want that the saga is stuck", err)
		}
	})
}

// An Await whose event is recorded needs no room in later runs.
func TestAwait_EventIsRecordedAndRecordNearlyFull_GoesOn(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, st *memstore.Store, w *world) {
		given := once("mail/897", errBoom)
		d := w.three()
		d.Steps = []string{"wait", "mail/*"}
		d.Run = func(ctx context.Context, r *saga.Run, _ order) (string, error) {
			if _, err := saga.Await[string](ctx, r, "wait", 0); err != nil {
				return "", err
			}
			for n := range 898 { // with the input and the event 900
				name := fmt.Sprint("mail/", n)
				if _, err := saga.Step(ctx, r, name, func(context.Context, saga.At) (string, error) { return "", given(name) }, nil); err != nil {
					return "", err
				}
			}
			return "", nil
		}
		s := newSaga(t, st, d)
		if err := s.Start(t.Context(), "ann", "1", book); err != nil {
			t.Fatal(err)
		}
		if err := s.Send(t.Context(), "ann", "1", "wait", "come"); err != nil {
			t.Fatal(err)
		}
		work(t, time.Minute, s)
		if r := record(t, st, "1"); r.State != store.Completed {
			t.Errorf("the saga is %v: %s", r.State, r.LastError)
		}
	})
}

// A group of many steps without results does not use up the record.
func TestGroup_ManyStepsRun_AllResultsAreKept(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, st *memstore.Store, w *world) {
		d := w.three()
		d.Steps = []string{"mail/*"}
		d.Run = func(ctx context.Context, r *saga.Run, _ order) (string, error) {
			g := r.Group(1000)
			for n := range 470 {
				g.Go(func() error {
					_, err := saga.Step(ctx, r, fmt.Sprint("mail/", n), func(context.Context, saga.At) (string, error) {
						sleep(time.Second)
						return "sent", nil
					}, nil)
					return err
				})
			}
			return "", g.Wait()
		}
		if _, err := newSaga(t, st, d).Do(t.Context(), "ann", "1", book); err != nil {
			t.Error(err)
		}
	})
}

// All steps of a group that begin at the same time have room for their compensations.
func TestGroup_ManyStepsBeginAtOnce_SagaCanBeTurnedBack(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, st *memstore.Store, w *world) {
		d := w.three()
		d.Steps = []string{"mail/*"}
		d.Run = func(ctx context.Context, r *saga.Run, _ order) (string, error) {
			g := r.Group(1000)
			for n := range 480 {
				g.Go(func() error {
					_, err := w.step(ctx, r, fmt.Sprint("mail/", n))
					return err
				})
			}
			return "", g.Wait()
		}
		s := newSaga(t, st, d)
		if _, err := s.Do(t.Context(), "ann", "1", book); !errors.Is(err, semel.ErrParked) {
			t.Errorf("error %v, want the saga stuck", err)
		}
		effects := len(w.log)
		decide(t, st, saga.Intervention{Back: true})
		work(t, time.Minute, s)
		if r := record(t, st, "1"); r.State != store.Failed || effects == 0 || effects > 450 {
			t.Errorf("after %d effects the saga is %v: %s", effects, r.State, r.LastError)
		}
	})
}
