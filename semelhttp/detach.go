package semelhttp

import "context"

// clientContext is a context that ends with the client's context until detach: a
// detached handler goes on without its client, a waiting duplicate does not.
type clientContext struct {
	cancel context.CancelCauseFunc
	stop   func() bool
}

func newClientContext(client context.Context) (*clientContext, context.Context) {
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(client))
	stop := context.AfterFunc(client, func() { cancel(context.Cause(client)) })
	return &clientContext{cancel, stop}, ctx
}

// detach reports whether the client was still connected.
func (c *clientContext) detach() (connected bool) { return c.stop() }

func (c *clientContext) end() {
	c.stop()
	c.cancel(nil)
}
