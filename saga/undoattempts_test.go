package saga_test

import (
	"context"
	"testing"
	"time"

	"github.com/semel-go/semel/saga"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/memstore"
)

// Rule 4: the attempts before a saga turned back do not count for UndoAttempts.
func TestRule4_TurnedBackAfterManyAttempts_CompensationIsTriedAgain(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, st *memstore.Store, w *world) {
		p := newProcess(st)
		tries, dies := 0, once("undo hold", errBoom)
		w.before = func(name string) error {
			if name == "charge" {
				if tries++; tries <= 12 {
					return errBoom
				}
				return errRefused
			}
			err := dies(name)
			if err != nil {
				p.kill()
			}
			return err
		}
		if err := newSaga(t, p, w.three()).Start(t.Context(), "ann", "1", book); err != nil {
			t.Fatal(err)
		}
		work(t, time.Hour, newSaga(t, p, w.three()))
		work(t, 10*time.Minute, newSaga(t, st, w.three()))
		if r := record(t, st, "1"); r.State != store.Failed {
			t.Errorf("the saga is %v: %s", r.State, r.LastError)
		}
		w.done(t, "hold", "undo hold")
	})
}

// Rule 4: a compensation that always fails has its attempts, however many there were
// before the saga turned back, and again after an operator's decision.
func TestRule4_TurnedBackAfterSomeAttempts_CompensationHasItsAttempts(t *testing.T) {
	t.Parallel()
	for _, before := range []int{0, 2, 12} {
		bubble(t, func(t *testing.T, st *memstore.Store, w *world) {
			tries, undone := 0, 0
			w.before = func(name string) error {
				switch name {
				case "charge":
					if tries++; tries > before {
						return errRefused
					}
					return errBoom
				case "undo hold":
					undone++
					return errBoom
				}
				return nil
			}
			s := newSaga(t, st, w.three())
			if err := s.Start(t.Context(), "ann", "1", book); err != nil {
				t.Fatal(err)
			}
			for decisions := range 3 {
				work(t, time.Hour, s)
				if r := record(t, st, "1"); r.State != store.Unknown || undone != 10*(decisions+1) {
					t.Fatalf("after %d attempts and %d decisions the saga is %v, and was undone %d times: %s", before, decisions, r.State, undone, r.LastError)
				}
				decide(t, st, saga.Intervention{})
			}
		})
	}
}

// noBack is a store that does not answer for a while when a saga is to turn back.
type noBack struct {
	*memstore.Store
	refuse error
	times  int
}

func (n *noBack) RecordStep(ctx context.Context, l store.Lease, s store.Step) error {
	if s.Name == "saga:back" && n.times > 0 {
		n.times--
		return n.refuse
	}
	return n.Store.RecordStep(ctx, l, s)
}

// Rule 4: as long as it is not recorded that a saga has turned back, no attempt to undo it
// counts. If the record has no room for it, an operator must know.
func TestRule4_TurningBackIsNotRecorded_CountsNoAttempt(t *testing.T) {
	t.Parallel()
	for want, refuse := range map[store.State]error{store.Failed: errBoom, store.Unknown: store.ErrTooLarge} {
		bubble(t, func(t *testing.T, st *memstore.Store, w *world) {
			n := &noBack{Store: st, refuse: refuse, times: 1000}
			tries := 0
			w.before = func(name string) error {
				if name != "charge" {
					return nil
				}
				if tries++; tries > 12 {
					return errRefused
				}
				return errBoom
			}
			s := newSaga(t, n, w.three())
			if err := s.Start(t.Context(), "ann", "1", book); err != nil {
				t.Fatal(err)
			}
			work(t, 3*time.Hour, s)
			if r := record(t, st, "1"); r.State != want {
				t.Errorf("after %v the saga is %v, want %v: %s", refuse, r.State, want, r.LastError)
			}
		})
	}
}
