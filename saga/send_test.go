package saga_test

import (
	"context"
	"testing"
	"time"

	"github.com/semel-go/semel/saga"
	"github.com/semel-go/semel/store/memstore"
)

// A webhook often comes while the step that has caused it still runs.
func TestSend_RunFailsMeanwhile_EventIsDelivered(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, st *memstore.Store, w *world) {
		fail := once("hold", errBoom)
		w.before = func(name string) error {
			err := fail(name)
			if err != nil {
				sleep(10 * time.Second)
			}
			return err
		}
		s := newSaga(t, st, w.waiting(func(ctx context.Context, r *saga.Run) error {
			_, err := saga.Await[string](ctx, r, "wait", 0)
			return err
		}))
		if err := s.Start(t.Context(), "ann", "1", book); err != nil {
			t.Fatal(err)
		}
		sent := make(chan error, 1)
		go func() {
			sleep(3 * time.Second) // in the step
			sent <- s.Send(t.Context(), "ann", "1", "wait", "come")
		}()
		work(t, time.Minute, s)
		if err := <-sent; err != nil {
			t.Errorf("Send: %v", err)
		}
		w.done(t, "hold", "book")
	})
}
