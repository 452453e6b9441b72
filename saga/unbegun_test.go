package saga_test

import (
	"context"
	"testing"
	"time"

	"github.com/semel-go/semel/saga"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/memstore"
	"github.com/semel-go/semel/sweep"
)

// cutOff is a process that dies before it has made a timer.
type cutOff struct{ *process }

func (c cutOff) SetTimer(context.Context, store.Key, store.Owner, store.Owner, time.Duration) (bool, error) {
	c.kill()
	return false, errDead
}

// Rule 7: a saga that never began does not keep its id, although no timer was made.
func TestRule7_ProcessDiesBeforeTimer_SweepAndWorkerFreeID(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, st *memstore.Store, w *world) {
		if err := newSaga(t, cutOff{newProcess(st)}, w.three()).Start(t.Context(), "ann", "1", book); err == nil {
			t.Fatal("the saga has started")
		}
		sleep(2 * time.Minute)
		if _, err := sweep.Once(t.Context(), st, nil); err != nil {
			t.Fatal(err)
		}
		s := newSaga(t, st, w.three())
		work(t, time.Minute, s)
		if err := s.Start(t.Context(), "ann", "1", order{"pen", 1}); err != nil {
			t.Errorf("%v, want the id free", err)
		}
		work(t, time.Minute, s)
		w.done(t, "hold", "charge", "book")
	})
}

// Start waits no longer for a store that does not answer than other requests do.
func TestStart_StoreDoesNotAnswerWhetherSagaHasBegun_Ends(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, st *memstore.Store, w *world) {
		d := w.three()
		d.Run = func(context.Context, *saga.Run, order) (string, error) {
			sleep(time.Minute)
			return "", nil
		}
		go func() { _, _ = newSaga(t, st, d).Do(context.Background(), "ann", "1", book) }()
		sleep(time.Second)
		begin := time.Now()
		err := newSaga(t, &frozen{Store: st, method: "Steps"}, d).Start(t.Context(), "ann", "1", book)
		if took := time.Since(begin); err == nil || took > 10*time.Second {
			t.Errorf("after %v: %v; want an error within 10 s", took, err)
		}
		sleep(2 * time.Minute)
	})
}
