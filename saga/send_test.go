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

// An event that cannot be kept is refused, and a smaller one can take its place.
func TestSend_EventTooLarge_IsRefused(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, st *memstore.Store, w *world) {
		s := smallSaga(t, st, w.waiting(func(ctx context.Context, r *saga.Run) error {
			_, err := saga.Await[string](ctx, r, "wait", 0)
			return err
		}))
		if err := s.Start(t.Context(), "ann", "1", book); err != nil {
			t.Fatal(err)
		}
		if err := s.Send(t.Context(), "ann", "1", "wait", strings.Repeat("x", 2<<10)); !errors.Is(err, semel.ErrInvalid) || !contains(err, "1024") {
			t.Errorf("error %v, want ErrInvalid", err)
		}
		if err := s.Send(t.Context(), "ann", "1", "wait", "come"); err != nil {
			t.Error(err)
		}
		if err := s.Send(t.Context(), "ann", "1", "wait", strings.Repeat("x", 2<<10)); err != nil {
			t.Errorf("after the first value: %v", err)
		}
		work(t, time.Minute, s)
		w.done(t, "hold", "book")
	})
}

// An event that a full record has kept without its value leaves the saga stuck. An
// operator says the value or turns back, and so does the deadline.
func TestAwait_EventWithoutValue_SagaIsStuckUntilDecided(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		do   saga.Intervention
		want []string
	}{
		"value":    {saga.Intervention{Done: "wait", Result: []byte(`"come"`)}, []string{"hold", "book"}},
		"back":     {saga.Intervention{Back: true}, []string{"hold", "undo hold"}},
		"deadline": {saga.Intervention{}, []string{"hold", "undo hold"}},
	} {
		bubble(t, func(t *testing.T, st *memstore.Store, w *world) {
			d := w.waiting(func(ctx context.Context, r *saga.Run) error {
				got, err := saga.Await[string](ctx, r, "wait", 0)
				if err == nil && got != "come" {
					t.Errorf("%s: the event is %q", name, got)
				}
				return err
			})
			d.Deadline = time.Hour
			s := newSaga(t, fullRecord{st}, d)
			if err := s.Start(t.Context(), "ann", "1", book); err != nil {
				t.Fatal(err)
			}
			if err := s.Send(t.Context(), "ann", "1", "wait", "come"); err != nil {
				t.Fatal(err)
			}
			work(t, time.Minute, s)
			if r := record(t, st, "1"); r.State != store.Unknown || !strings.Contains(r.LastError, `step "wait"`) {
				t.Fatalf("%s: the saga is %v: %s", name, r.State, r.LastError)
			}
			if name == "deadline" {
				sleep(time.Hour)
			}
			decide(t, st, c.do)
			work(t, time.Minute, s)
			w.done(t, c.want...)
		})
	}
}
