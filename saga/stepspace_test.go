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
