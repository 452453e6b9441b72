package saga_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/saga"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/memstore"
)

// stopIn is a saga whose step "charge" heeds its context and takes so long. "book" follows.
func (w *world) stopIn(took time.Duration) saga.Definition[order, string] {
	d := w.three()
	d.Run = func(ctx context.Context, r *saga.Run, _ order) (string, error) {
		_, err := saga.Step(ctx, r, "charge", func(ctx context.Context, at saga.At) (string, error) {
			select {
			case <-time.After(took):
				return "charged", w.act("charge", at.Key())
			case <-ctx.Done():
				return "", ctx.Err()
			}
		}, nil, saga.Parked())
		if err != nil {
			return "", err
		}
		return w.step(ctx, r, "book")
	}
	return d
}

// A worker that stops lets its steps end within Drain, and starts no others.
func TestWork_StopsDuringStepThatHeedsItsContext_StepEnds(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, st *memstore.Store, w *world) {
		s := newSaga(t, st, w.stopIn(20*time.Second))
		if err := s.Start(t.Context(), "ann", "1", book); err != nil {
			t.Fatal(err)
		}
		begin := time.Now()
		work(t, 2*time.Second, s)
		if took := time.Since(begin); took > 25*time.Second {
			t.Errorf("the worker stopped after %v, want 20 s", took)
		}
		if r := record(t, st, "1"); r.State != store.Released || r.Attempt != 0 {
			t.Errorf("the saga is %v in attempt %d: %s", r.State, r.Attempt, r.LastError)
		}
		w.done(t, "charge")
		work(t, time.Second, s) // due at once
		w.done(t, "charge", "book")
	})
}

func TestWork_DrainIsOver_CancelsSteps(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, st *memstore.Store, w *world) {
		s := newSaga(t, st, w.stopIn(time.Hour))
		if err := s.Start(t.Context(), "ann", "1", book); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		begin := time.Now()
		if err := s.Work(ctx, &saga.WorkOptions{Drain: 5 * time.Second}); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(begin); took < 7*time.Second || took > 8*time.Second {
			t.Errorf("the worker stopped after %v, want 7 s", took)
		}
		if r := record(t, st, "1"); r.State != store.Unknown { // the Parked step is in doubt
			t.Errorf("the saga is %v: %s", r.State, r.LastError)
		}
		if err := s.Work(ctx, &saga.WorkOptions{Drain: -1}); !errors.Is(err, semel.ErrInvalid) {
			t.Errorf("a negative Drain: %v", err)
		}
	})
}

// A definition that ignores the error of a step does not end because its worker stops.
func TestWork_StopsBeforeStepWhoseErrorIsIgnored_SagaGoesOn(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, st *memstore.Store, w *world) {
		d := w.stopIn(20 * time.Second)
		run := d.Run
		d.Run = func(ctx context.Context, r *saga.Run, in order) (string, error) {
			_, _ = run(ctx, r, in)
			return "booked", nil
		}
		s := newSaga(t, st, d)
		if err := s.Start(t.Context(), "ann", "1", book); err != nil {
			t.Fatal(err)
		}
		work(t, 2*time.Second, s)
		work(t, time.Second, s)
		w.done(t, "charge", "book")
	})
}
