package semellambda

import (
	"context"
	"time"

	"github.com/semel-go/semel/driver"
)

// longestReserve is the most time that is kept free at the end of an invocation to
// store the outcome.
const longestReserve = 500 * time.Millisecond

// withinInvocation returns the context for the calls of an invocation. Their leases
// end with the invocation, and the context ends shortly before. Without a deadline,
// as in a test, ctx stays as it is.
func withinInvocation(ctx context.Context) (context.Context, context.CancelFunc) {
	end, ok := ctx.Deadline()
	if !ok {
		return ctx, func() {}
	}
	ctx, stop := driver.LeaseUntil(ctx, end)
	reserve := min(max(0, time.Until(end)/10), longestReserve)
	ctx, cancel := context.WithDeadline(ctx, end.Add(-reserve))
	return ctx, func() { cancel(); stop() }
}
