package semelwatermill

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consume/driver"
)

// turnstile is a Guard that takes no message before its turn.
type turnstile struct {
	*semel.Guard
	ready chan struct{} // of all turns

	mu          sync.Mutex
	tries, left int
}

func (t *turnstile) Unwrap() semel.Runner { return t.Guard }

func (t *turnstile) Run(ctx context.Context, call semel.Call, fn semel.Handler) (semel.Result, error) {
	t.mu.Lock()
	t.tries++
	t.mu.Unlock()
	if driver.TurnOf(ctx) == nil {
		return semel.Result{}, &semel.Error{Reason: semel.ErrInProgress, Operation: call.Operation, Cause: turn{t}}
	}
	return t.Guard.Run(ctx, call, fn)
}

type turn struct{ of *turnstile }

func (turn) Error() string            { return "its tenant is busy" }
func (t turn) Ready() <-chan struct{} { return t.of.ready }
func (t turn) Leave() {
	t.of.mu.Lock()
	defer t.of.mu.Unlock()
	t.of.left++
}

func TestHandler_TurnHasNotCome_WaitsForItAndLeavesIt(t *testing.T) {
	for name, comes := range map[string]bool{"the turn comes": true, "the context ends": false} {
		synctest.Test(t, func(t *testing.T) {
			run := &turnstile{Guard: guardOf(t, nil), ready: make(chan struct{})}
			ran := 0
			once := wrap(t, run, func(*message.Message) ([]*message.Message, error) { ran++; return nil, nil }, nil)
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
			defer cancel()
			m := order(t, "k")
			m.SetContext(ctx)
			if comes {
				time.AfterFunc(time.Minute, func() { close(run.ready) })
			}
			_, err := once(m)
			want := 1
			if comes {
				want = 2
			}
			if (err == nil) != comes || ran != want-1 || run.tries != want || run.left != 1 {
				t.Errorf("%s: %v, with %d runs, %d tries and %d turns given up; want %d tries and 1 turn", name, err, ran, run.tries, run.left, want)
			}
		})
	}
}
