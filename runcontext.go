package semel

import (
	"context"
	"sync"
	"sync/atomic"
)

// runContext is a handler's context: it knows the run, and ends with the
// caller's, with the run, or when the lease may be lost. Most handlers never
// ask for its end, so what it takes to tell them is made only when one does.
// It is a part of the Execution, which spares an allocation for each call.
type runContext struct {
	context.Context //nolint:containedctx // it is one: the caller's
	x               *Execution

	state atomic.Uint32
	mu    sync.Mutex   // guards the rest
	inner *cancellable // what tells of the end, once somebody has asked
	over  bool         // it has ended, by cause
	cause error
}

// How a runContext stands. Most go from quiet to ended, which takes no lock.
const (
	quiet uint32 = iota // nobody has asked
	asked               // or it has ended by a cause: see the rest
	ended               // by nothing but the run's end
)

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
	if cause == nil && c.state.CompareAndSwap(quiet, ended) {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.see(); c.over {
		return
	}
	c.over, c.cause = true, cause
	if c.inner != nil {
		c.inner.cancel(cause)
	}
}

// see has the rest say what is so. The caller holds mu.
func (c *runContext) see() {
	if !c.state.CompareAndSwap(quiet, asked) && c.state.CompareAndSwap(ended, asked) {
		c.over = true
	}
}

// told is the context that tells of the end. The caller holds mu.
func (c *runContext) told() context.Context {
	c.see()
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
func (c *runContext) Err() error { return c.current().Err() }

// Value implements context.Context. What package context looks for in its own
// contexts, such as their cause, it finds in the one that tells of the end.
func (c *runContext) Value(key any) any {
	if key == (executionKey{}) {
		return c.x
	}
	return c.current().Value(key)
}

// current is the context that has what this one has: the caller's own, until
// somebody has asked for the end, or it has come.
func (c *runContext) current() context.Context {
	if c.state.Load() == quiet {
		return c.Context
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.told()
}
