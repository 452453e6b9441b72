package consume

import (
	"context"
	"errors"
	"strconv"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consume/driver"
	"github.com/semel-go/semel/store"
)

// RedriveHeader is the header that an operator adds to a dead letter when it sends it
// back to be run again: see Options.Reopen. Its value says who sends it and why, and must
// not be empty. Keep the other headers of the dead letter: driver.LetterFence says which
// failure to reopen, so that a letter which is sent twice reopens it once.
const RedriveHeader = driver.RedriveHeader

// reopen reopens the key of a redriven message. If ok is true, the store did not
// answer.
func (c *Consumer) reopen(ctx context.Context, t *task) (d driver.Disposition, ok bool) {
	why, _ := t.m.Header(RedriveHeader)
	if c.opt.Reopen == nil || t.reopened || why == "" {
		return d, false
	}
	text, _ := t.m.Header(driver.LetterFence)
	fence, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return d, false
	}
	r, err := c.opt.Reopen.Get(ctx, t.call)
	switch {
	case errors.Is(err, store.ErrNotFound), errors.Is(err, semel.ErrInvalid):
		return d, false
	case err == nil && (r.State != store.Failed || r.Fence != fence):
		t.reopened = true
		return d, false
	case err == nil:
		err = c.opt.Reopen.Reopen(ctx, r, "redriven: "+why)
	default:
		err = &semel.Error{Reason: semel.ErrUnavailable, Operation: t.call.Operation, Cause: err}
	}
	if err == nil || errors.Is(err, store.ErrChanged) {
		t.reopened = true
		return d, false
	}
	d = driver.Decide(driver.Result{Err: err, Tries: t.tries}, driver.Policy{Backoff: c.opt.Backoff})
	t.tries++
	return d, true
}

// failureFence is the fence of a failure of an earlier run, for the dead letter.
func (c *Consumer) failureFence(ctx context.Context, t *task, d *driver.Disposition) uint64 {
	failed := d.Reason == driver.ReasonFailed || d.Reason == driver.ReasonExhausted || d.Reason == driver.ReasonDeliveries
	if d.Fence > 0 || d.Action != driver.DeadLetter || !failed || c.opt.Reopen == nil {
		return d.Fence
	}
	r, err := c.opt.Reopen.Get(ctx, t.call)
	if err != nil || r.State != store.Failed { // without a fence only an operator can reopen it
		return 0
	}
	return r.Fence
}
