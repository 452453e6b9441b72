package semel

import (
	"context"
	"sync"
)

// runContext is a handler's context: it knows the run, and ends with the
// caller's, with the run, or when the lease may be lost. Most handlers never
// ask for its end, so what it takes to tell them is made only when one does.
// It is a part of the Execution, which spares an allocation for each call.
type runContext struct {
	context.Context //nolint:containedctx // it is one: the caller's
	x               *Execution

	mu    sync.Mutex
	inner *cancellable // what tells of the end, once somebody has asked
	over  bool         // it has ended, by cause
	cause error
}

type cancellable struct {
	context.Context //nolint:containedctx // it is one
	cancel          context.CancelCauseFunc
}

type executionKey struct{}

// within is the context that the handler gets.
func (x *Execution) within(ctx context.Context) context.Context {
	x.ctx.Context, x.ctx.x = ctx, x
	return &x.ctx
}

// end ends the context. Only the first cause counts; nil: context.Canceled.
func (c *runContext) end(cause error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over {
		return
	}
	c.over, c.cause = true, cause
	if c.inner != nil {
		c.inner.cancel(cause)
	}
}

// told is the context that tells of the end. The caller holds mu.
func (c *runContext) told() context.Context {
	if c.inner == nil {
		ctx, cancel := context.WithCancelCause(c.Context)
		c.inner = &cancellable{ctx, cancel}
		if c.over {
			cancel(c.cause)
		}
	}
	return c.inner.Context
}

// Done implements context.Context.
func (c *runContext) Done() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.told().Done()
}

// Err implements context.Context.
func (c *runContext) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over || c.inner != nil {
		return c.told().Err()
	}
	return c.Context.Err()
}

// Value implements context.Context. What package context looks for in its own
// contexts, such as their cause, it finds in the one that tells of the end.
func (c *runContext) Value(key any) any {
	if key == (executionKey{}) {
		return c.x
	}
	c.mu.Lock()
	from := c.Context
	if c.over || c.inner != nil {
		from = c.told()
	}
	c.mu.Unlock()
	return from.Value(key)
}
