package saga_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/semel-go/semel/saga"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/memstore"
)

// A client repeats Start or Send while the saga waits for its next attempt. The repeats are no
// attempts, do not shorten the wait, and do not replace the error of the last attempt.
func TestRepeat_SagaWaitsForNextAttempt_WaitsOn(t *testing.T) {
	t.Parallel()
	type orders = saga.Saga[order, string]
	for name, repeat := range map[string]func(t *testing.T, s *orders) error{
		"nothing": func(*testing.T, *orders) error { return nil },
		"Start":   func(t *testing.T, s *orders) error { return s.Start(t.Context(), "ann", "1", book) },
		"Send of a recorded event": func(t *testing.T, s *orders) error {
			return s.Send(t.Context(), "ann", "1", "mail/1", "again")
		},
		"Send of an event that is over": func(t *testing.T, s *orders) error {
			if err := s.Send(t.Context(), "ann", "1", "mail/2", "late"); !errors.Is(err, saga.ErrEnded) {
				t.Errorf("error %v, want ErrEnded", err)
			}
			return nil
		},
	} {
		bubble(t, func(t *testing.T, st *memstore.Store, w *world) {
			var undone atomic.Int64
			w.before = func(step string) error {
				switch step {
				case "book":
					return errRefused
				case "undo hold":
					undone.Add(1)
					return errBoom
				}
				return nil
			}
			s := newSaga(t, st, w.waiting(func(ctx context.Context, r *saga.Run) error {
				_, err := saga.Await[string](ctx, r, "wait", 0)
				return err
			}))
			if err := s.Start(t.Context(), "ann", "1", book); err != nil {
				t.Fatal(err)
			}
			for _, event := range []string{"wait", "mail/1"} {
				if err := s.Send(t.Context(), "ann", "1", event, "come"); err != nil {
					t.Fatal(err)
				}
			}
			done := make(chan struct{})
			go func() {
				defer close(done)
				for range 12 {
					sleep(1100 * time.Millisecond)
					if err := repeat(t, s); err != nil {
						t.Errorf("%s: %v", name, err)
					}
					if r := record(t, st, "1"); undone.Load() > 0 && r.State == store.Released && !strings.Contains(r.LastError, errBoom.Error()) {
						t.Errorf("%s: the error of the record is %q, want that of the last attempt", name, r.LastError)
					}
				}
			}()
			work(t, 13*time.Second, s)
			<-done
			if r := record(t, st, "1"); r.State != store.Released || undone.Load() != 4 {
				t.Errorf("%s: the saga is %v after %d attempts, want released after the 4 that its pauses of 1, 2, 4 and 8 s leave: %s", name, r.State, undone.Load(), r.LastError)
			}
		})
	}
}

// slowSteps is a store as a process sees it whose requests for steps take long.
type slowSteps struct {
	*process
	pause time.Duration
}

func (s slowSteps) Steps(ctx context.Context, l store.Lease) ([]store.Step, error) {
	sleep(s.pause)
	return s.process.Steps(ctx, l)
}

// A saga becomes due while a repeated Start looks at it. The next attempt does not wait for the
// end of the lease.
func TestRepeat_SagaBecomesDueMeanwhile_GoesOnAfterwards(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, st *memstore.Store, w *world) {
		w.before = once("hold", errBoom)
		s := newSaga(t, st, w.three())
		if err := s.Start(t.Context(), "ann", "1", book); err != nil {
			t.Fatal(err)
		}
		work(t, 500*time.Millisecond, s) // the first attempt fails
		go func() {
			if err := newSaga(t, slowSteps{newProcess(st), 3 * time.Second}, w.three()).Start(t.Context(), "ann", "1", book); err != nil {
				t.Error(err)
			}
		}()
		work(t, 8*time.Second, s)
		w.done(t, "hold", "charge", "book")
	})
}
