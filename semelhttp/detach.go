package semelhttp

import "context"

// leash is a context that ends with the client's until it is released: a
// detached handler outlives its client, a waiting duplicate does not.
type leash struct {
	cancel context.CancelCauseFunc
	stop   func() bool
}

func newLeash(client context.Context) (*leash, context.Context) {
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(client))
	stop := context.AfterFunc(client, func() { cancel(context.Cause(client)) })
	return &leash{cancel, stop}, ctx
}

// release reports whether the client was still there.
func (l *leash) release() bool { return l.stop() }

func (l *leash) end() {
	l.stop()
	l.cancel(nil)
}
