package sqlitestore

import "context"

// gate lets one transaction of this process at a time ask for SQLite's write
// lock. That lock is not fair; the gate lets the writer, which renews leases, and
// the transactions of handlers take turns.
type gate struct {
	handlers chan struct{} // full while a handler's transaction has, or is next for, the lock
	lock     chan struct{} // full while a transaction has the lock; waiters are served in order
}

func newGate() *gate {
	return &gate{handlers: make(chan struct{}, 1), lock: make(chan struct{}, 1)}
}

// enter waits for the writer's turn, which comes after at most one handler's
// transaction.
func (g *gate) enter(ctx context.Context) error { return put(ctx, g.lock) }

// handlerInside reports whether a handler's transaction has, or is next for, the lock.
func (g *gate) handlerInside() bool { return len(g.handlers) > 0 }

func (g *gate) leave() { <-g.lock }

// enterHandler waits for the turn of a handler's transaction.
func (g *gate) enterHandler(ctx context.Context) error {
	if err := put(ctx, g.handlers); err != nil {
		return err
	}
	if err := put(ctx, g.lock); err != nil {
		<-g.handlers
		return err
	}
	return nil
}

func (g *gate) leaveHandler() {
	<-g.lock
	<-g.handlers
}

func put(ctx context.Context, c chan<- struct{}) error {
	select {
	case c <- struct{}{}:
		return nil
	default:
	}
	select {
	case c <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
