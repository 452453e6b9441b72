package saga_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/saga"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/memstore"
)

// smallSaga makes a saga whose Guard keeps outcomes of at most 1 KiB.
func smallSaga(t *testing.T, st store.Store, d saga.Definition[order, string]) *saga.Saga[order, string] {
	t.Helper()
	guard, err := semel.New(st, &semel.Options{MaxOutcome: 1 << 10})
	if err != nil {
		t.Fatal(err)
	}
	s, err := saga.New(guard, d)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Rule 5: the compensations go on if the failure of the saga, or its code alone, is too
// large to keep.
func TestRule5_FailureTooLargeToKeep_CompensationsGoOn(t *testing.T) {
	t.Parallel()
	for want, failure := range map[string]*semel.Failure{
		"refused":          {Code: "refused", Message: strings.Repeat("x", 2<<10)},
		"failure_not_kept": {Code: strings.Repeat("x", 2<<10)},
	} {
		bubble(t, func(t *testing.T, st *memstore.Store, w *world) {
			fail := once("undo charge", errBoom)
			w.before = func(name string) error {
				if name == "book" {
					return failure
				}
				return fail(name)
			}
			s := smallSaga(t, st, w.three())
			if err := s.Start(t.Context(), "ann", "1", book); err != nil {
				t.Fatal(err)
			}
			work(t, 10*time.Minute, s)
			if r := record(t, st, "1"); r.State != store.Failed || !strings.Contains(r.LastError+string(r.Outcome.Body), want) {
				t.Errorf("the saga is %v: %s, %s", r.State, r.LastError, r.Outcome.Body)
			}
			w.done(t, "hold", "charge", "undo charge", "undo hold")
		})
	}
}

// fullRecord is a store that keeps compensations and events without their outcome only, as
// DynamoDB does with a record that is nearly full.
type fullRecord struct{ *memstore.Store }

func (f fullRecord) RecordStep(ctx context.Context, l store.Lease, s store.Step) error {
	if (strings.HasSuffix(s.Name, ":undo") || strings.HasSuffix(s.Name, ":event")) && !s.Outcome.Gone {
		return store.ErrTooLarge
	}
	return f.Store.RecordStep(ctx, l, s)
}

// Rule 4: a compensation is done if its record says no more than that it ended.
func TestRule4_CompensationWithoutOutcome_CountsAsDone(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, st *memstore.Store, w *world) {
		fail, refuse := once("undo hold", errBoom), once("book", errRefused)
		w.before = func(name string) error {
			if err := refuse(name); err != nil {
				return err
			}
			return fail(name)
		}
		s := newSaga(t, fullRecord{st}, w.three())
		if err := s.Start(t.Context(), "ann", "1", book); err != nil {
			t.Fatal(err)
		}
		work(t, 10*time.Minute, s)
		if r := record(t, st, "1"); r.State != store.Failed {
			t.Errorf("the saga is %v: %s", r.State, r.LastError)
		}
		w.done(t, "hold", "charge", "undo charge", "undo hold")
	})
}
