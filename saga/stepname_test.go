package saga_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/saga"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/memstore"
)

// A ':' separates a step's name from Semel's additions, and the longest addition has
// 17 bytes: ":undo:unskip:1000".
func TestStep_NameMadeAtRunTimeIsInvalid_StuckBeforeAnyEffect(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"slot/10:30", "slot/a:undo", "slot/a:skip:1", "slot/" + strings.Repeat("n", 234)} {
		bubble(t, func(t *testing.T, st *memstore.Store, w *world) {
			d := w.three()
			d.Steps = []string{"slot/*"}
			d.Run = func(ctx context.Context, r *saga.Run, _ order) (string, error) { return w.step(ctx, r, name) }
			if _, err := newSaga(t, st, d).Do(t.Context(), "ann", "1", book); !errors.Is(err, semel.ErrParked) || !contains(err, "step") {
				t.Errorf("%s: error %v, want ErrParked", name, err)
			}
			w.done(t)
		})
	}
}

// A step with an invalid name never ran, so that the steps before it can be undone.
func TestStep_NameMadeAtRunTimeIsInvalid_SagaCanBeTurnedBack(t *testing.T) {
	t.Parallel()
	for _, by := range []string{"operator", "deadline"} {
		bubble(t, func(t *testing.T, st *memstore.Store, w *world) {
			d := w.three()
			d.Steps, d.Deadline = []string{"hold", "slot/*"}, time.Hour
			d.Run = func(ctx context.Context, r *saga.Run, _ order) (string, error) {
				if _, err := w.step(ctx, r, "hold"); err != nil {
					return "", err
				}
				return w.step(ctx, r, "slot/10:30")
			}
			s := newSaga(t, st, d)
			if _, err := s.Do(t.Context(), "ann", "1", book); !errors.Is(err, semel.ErrParked) {
				t.Fatalf("error %v, want ErrParked", err)
			}
			if by == "operator" {
				decide(t, st, saga.Intervention{Back: true})
			} else {
				sleep(2 * time.Hour)
				decide(t, st, saga.Intervention{})
			}
			work(t, time.Minute, s)
			if r := record(t, st, "1"); r.State != store.Failed {
				t.Errorf("%s: the saga is %v: %s", by, r.State, r.LastError)
			}
			w.done(t, "hold", "undo hold")
		})
	}
}

// The compensation of a step with a name of the longest length is recorded.
func TestStep_LongestName_IsUndone(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, st *memstore.Store, w *world) {
		name := "slot/" + strings.Repeat("n", 233)
		d := w.three()
		d.Steps = []string{"slot/*", "book"}
		d.Run = func(ctx context.Context, r *saga.Run, _ order) (string, error) {
			if _, err := w.step(ctx, r, name); err != nil {
				return "", err
			}
			return w.step(ctx, r, "book")
		}
		w.before = once("book", errRefused)
		if _, err := newSaga(t, st, d).Do(t.Context(), "ann", "1", book); !errors.Is(err, errRefused) && !contains(err, "refused") {
			t.Errorf("error %v, want the refusal", err)
		}
		w.done(t, name, "undo "+name)
	})
}

func TestNew_StepNameLeavesNoRoomForAdditions_IsRefused(t *testing.T) {
	t.Parallel()
	guard, err := semel.New(memstore.New(nil), nil)
	if err != nil {
		t.Fatal(err)
	}
	d := (&world{}).three()
	d.Steps = []string{strings.Repeat("n", 239)}
	if _, err := saga.New(guard, d); !errors.Is(err, semel.ErrInvalid) || !contains(err, "238") {
		t.Errorf("error %v, want ErrInvalid", err)
	}
}
