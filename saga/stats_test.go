package saga_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/saga"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/memstore"
)

func statsAre(t *testing.T, st store.Store, want saga.Stats) {
	t.Helper()
	if got, err := saga.ReadStats(t.Context(), st, "order"); err != nil || got != want {
		t.Errorf("stats %+v, %v; want %+v", got, err, want)
	}
}

// A saga that no worker takes up is due, and its age grows; a worker clears that. A stuck
// saga stays in the count until an operator decides.
func TestReadStats_DueAndStuck_CountedUntilHandled(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, st *memstore.Store, w *world) {
		statsAre(t, st, saga.Stats{})
		w.before = once("book", errBoom)
		d := w.three()
		d.MaxAttempts = 1
		s := newSaga(t, st, d)
		for _, id := range []string{"1", "2"} {
			if err := s.Start(t.Context(), "ann", id, book); err != nil {
				t.Fatal(err)
			}
			time.Sleep(30 * time.Second)
		}
		statsAre(t, st, saga.Stats{Due: 2, OldestDue: time.Minute})
		if got, err := saga.ReadStats(t.Context(), st, "other"); err != nil || got != (saga.Stats{}) {
			t.Errorf("another definition: %+v, %v", got, err)
		}
		w.before = func(name string) error {
			if name == "book" {
				return errBoom
			}
			return nil
		}
		work(t, time.Minute, s)
		statsAre(t, st, saga.Stats{Stuck: 2})
		w.before = nil
		f, err := st.Get(t.Context(), saga.Key("order", "ann", "1"))
		if err != nil {
			t.Fatal(err)
		}
		if err := saga.Intervene(t.Context(), st, f.Record, saga.Intervention{Why: "test: the shop is up"}); err != nil {
			t.Fatal(err)
		}
		work(t, 5*time.Second, s)
		statsAre(t, st, saga.Stats{Stuck: 1})
	})
}

// An ordinary call in doubt is not a stuck saga.
func TestReadStats_OtherCallsInDoubt_NotCounted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st := memstore.New(nil)
		guard, err := semel.New(st, &semel.Options{OnDoubt: semel.Park})
		if err != nil {
			t.Fatal(err)
		}
		call := semel.Call{Operation: "order", Tenant: "ann", Key: "1", Payload: semel.NoPayload()}
		_, err = semel.Do(t.Context(), guard, call, func(context.Context, *semel.Execution) (int, error) { return 0, errBoom })
		if !errors.Is(err, semel.ErrParked) && !errors.Is(err, errBoom) {
			t.Fatalf("the call ends with %v", err)
		}
		statsAre(t, st, saga.Stats{})
	})
}

func TestReadStats_ManyDue_CountEndsAtMax(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st := memstore.New(nil)
		for i := range saga.MaxStats + 1 {
			if _, err := st.SetTimer(t.Context(), saga.Key("order", "ann", fmt.Sprint(i)), store.Owner{}, store.Owner{1}, 0); err != nil {
				t.Fatal(err)
			}
		}
		statsAre(t, st, saga.Stats{Due: saga.MaxStats})
	})
}

func TestReadStats_StoreWithoutTimers_IsInvalid(t *testing.T) {
	t.Parallel()
	if _, err := saga.ReadStats(t.Context(), struct{ store.Store }{}, "order"); !errors.Is(err, semel.ErrInvalid) {
		t.Errorf("error %v, want ErrInvalid", err)
	}
}

// oneUnreadable is a store that has one more timer, which cannot be read.
type oneUnreadable struct{ *memstore.Store }

func (o oneUnreadable) DueTimers(ctx context.Context, operation string, within time.Duration, limit int) ([]store.Timer, time.Time, error) {
	due, now, err := o.Store.DueTimers(ctx, operation, within, limit)
	return due, now, errors.Join(err, store.ErrCorrupt)
}

func TestReadStats_TimerUnreadable_OthersCount(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, st *memstore.Store, w *world) {
		if err := newSaga(t, st, w.three()).Start(t.Context(), "ann", "1", book); err != nil {
			t.Fatal(err)
		}
		if s, err := saga.ReadStats(t.Context(), oneUnreadable{st}, "order"); s.Due != 1 || !errors.Is(err, store.ErrCorrupt) {
			t.Errorf("stats %+v, error %v; want 1 due and ErrCorrupt", s, err)
		}
	})
}
