package saga_test

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/saga"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/memstore"
)

// outlives is a definition that returns end while its step "charge", in a goroutine, runs
// for another minute.
func (w *world) outlives(end error, options ...saga.StepOption) saga.Definition[order, string] {
	d := w.three()
	d.Run = func(ctx context.Context, r *saga.Run, _ order) (string, error) {
		if _, err := w.step(ctx, r, "hold"); err != nil {
			return "", err
		}
		begun := make(chan struct{})
		w.before = func(name string) error {
			if name == "charge" {
				close(begun)
				sleep(time.Minute)
			}
			return nil
		}
		go func() {
			defer func() { _ = recover() }()
			_, _ = w.step(ctx, r, "charge", options...)
		}()
		<-begun
		return "booked", end
	}
	return d
}

// Rule 3: a Parked step that still runs when the definition has failed holds the
// compensations, too, if it ends in doubt.
func TestRule3_ParkedStepOutlivesDefinition_InDoubt_NothingIsUndone(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, st *memstore.Store, w *world) {
		w.after = func(name string) error {
			if name == "charge" {
				return errBoom
			}
			return nil
		}
		_, err := newSaga(t, st, w.outlives(errRefused, saga.Parked())).Do(t.Context(), "ann", "1", book)
		sleep(time.Hour)
		if !errors.Is(err, semel.ErrParked) || !strings.Contains(err.Error(), `step "charge"`) {
			t.Errorf("error %v, want ErrParked that names charge", err)
		}
		w.done(t, "hold", "charge")
	})
}

// Rule 3: as above, and the step does not return, but its goroutine goes on or ends.
func TestRule3_ParkedStepPanics_NothingIsUndone(t *testing.T) {
	t.Parallel()
	for how, end := range map[string]func(){"panic": func() { panic("boom") }, "Goexit": runtime.Goexit} {
		bubble(t, func(t *testing.T, st *memstore.Store, w *world) {
			d := w.outlives(errRefused, saga.Parked())
			w.after = func(name string) error {
				if name == "charge" {
					end()
				}
				return nil
			}
			_, err := newSaga(t, st, d).Do(t.Context(), "ann", "1", book)
			if !errors.Is(err, semel.ErrParked) || !strings.Contains(err.Error(), `step "charge"`) {
				t.Errorf("%s: error %v, want ErrParked that names charge", how, err)
			}
			w.done(t, "hold", "charge")
		})
	}
}

// A definition that panics waits for its running steps, too.
func TestStep_OutlivesDefinitionThatPanics_IsRecorded(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, st *memstore.Store, w *world) {
		d := w.outlives(nil)
		run := d.Run
		d.Run = func(ctx context.Context, r *saga.Run, o order) (string, error) {
			_, _ = run(ctx, r, o)
			panic("boom")
		}
		began := time.Now()
		_, err := newSaga(t, st, d).Do(t.Context(), "ann", "1", book)
		if waited := time.Since(began); waited < time.Minute {
			t.Errorf("after %v: error %v; want it after the end of the step", waited, err)
		}
		w.done(t, "hold", "charge")
	})
}

// Rule 2: a step that still runs when the definition has failed is undone after its end,
// with its result.
func TestRule2_StepOutlivesDefinition_UndoneAfterItsEnd(t *testing.T) {
	t.Parallel()
	for _, options := range [][]saga.StepOption{nil, {saga.Parked()}} {
		bubble(t, func(t *testing.T, st *memstore.Store, w *world) {
			_, err := newSaga(t, st, w.outlives(errRefused, options...)).Do(t.Context(), "ann", "1", book)
			sleep(time.Hour)
			if !errors.Is(err, errRefused) {
				t.Errorf("error %v, want the failure", err)
			}
			w.done(t, "hold", "charge", "undo charge", "undo hold")
		})
	}
}

// A step that still runs when the definition has succeeded is recorded with the saga.
func TestStep_OutlivesDefinition_IsRecorded(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, st *memstore.Store, w *world) {
		if _, err := newSaga(t, st, w.outlives(nil)).Do(t.Context(), "ann", "1", book); err != nil {
			t.Error(err)
		}
		sleep(time.Hour)
		w.done(t, "hold", "charge")
		r := record(t, st, "1")
		steps, err := st.Steps(t.Context(), r.Lease())
		if err != nil || !slices.ContainsFunc(steps, func(s store.Step) bool { return s.Name == "charge" }) {
			t.Errorf("the recorded steps are %v, error %v; want charge among them", steps, err)
		}
	})
}
