package saga

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/handlererr"
)

// left is the time until the deadline.
func (r *Run) left() time.Duration {
	return r.driver.Created().Add(r.rules.deadline).Sub(r.driver.Now())
}

// untilDeadline is d, or the time until the deadline if that is shorter.
func (r *Run) untilDeadline(d time.Duration) time.Duration {
	if r.back != nil || r.rules.deadline == 0 {
		return d
	}
	return min(d, max(0, r.left()))
}

// tooLate turns the saga back at its deadline, or parks it.
func (r *Run) tooLate() error {
	if r.rules.park {
		return &handlererr.Stuck{Err: fmt.Errorf("the deadline of %v has passed", r.rules.deadline)}
	}
	r.back = &semel.Failure{Code: CodeDeadline, Message: fmt.Sprintf("the deadline of %v has passed", r.rules.deadline)}
	return nil
}

var errDeadline = errors.New("saga: the deadline has passed")

// forward is the context of the definition. It ends drain after the caller's. If the saga has
// turned back, the definition only gets what is recorded, and nothing cancels that but the
// loss of the lease.
func (r *Run) forward(caller, ctx context.Context, drain time.Duration) (context.Context, context.CancelFunc) {
	if r.back != nil {
		return ctx, func() {}
	}
	forward, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(caller, func() {
		timer := time.NewTimer(drain)
		defer timer.Stop()
		select {
		case <-timer.C:
			cancel(context.Cause(caller))
		case <-forward.Done():
		}
	})
	end := context.CancelFunc(func() { stop(); cancel(nil) })
	if r.rules.deadline == 0 {
		return forward, end
	}
	limited, stopTimer := context.WithTimeoutCause(forward, r.left(), errDeadline)
	return limited, func() { stopTimer(); end() }
}
