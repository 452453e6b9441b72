package consume

import (
	"context"

	"github.com/semel-go/semel/consume/driver"
)

// RedriveHeader is the header that an operator adds to a dead letter when it sends it
// back to be run again: see Options.Reopen. Its value says who sends it and why, and must
// not be empty. Keep the other headers of the dead letter: driver.LetterFence says which
// failure to reopen, so that a letter which is sent twice reopens it once.
const RedriveHeader = driver.RedriveHeader

// reopen reopens the key of a redriven message. If ok is true, the store did not answer, or
// the key must not be reopened.
func (c *Consumer) reopen(ctx context.Context, t *task) (d driver.Disposition, ok bool) {
	err := driver.Reopen(ctx, c.opt.Reopen, t.call, t.m)
	if err == nil {
		return d, false
	}
	d = driver.Decide(driver.Result{Err: err, Tries: t.tries}, driver.Policy{Backoff: c.opt.Backoff})
	t.tries++
	return d, true
}
