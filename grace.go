package semel

import (
	"context"
	"sync"
	"time"
)

// grace is a context that keeps the values of another, not its end, and ends
// by itself at a time: context.WithTimeout(context.WithoutCancel(…)), but it
// makes its channel and timer only for those who ask for them. A store that
// answers at once does not, and each call settles once.
type grace struct {
	context.Context //nolint:containedctx // it is one
	end             time.Time

	mu    sync.Mutex
	done  chan struct{}
	timer *time.Timer
}

func newGrace(ctx context.Context, d time.Duration) *grace {
	// Without it context.Cause would find the caller's, and say why that ended.
	return &grace{Context: context.WithoutCancel(ctx), end: time.Now().Add(d)}
}

// Deadline implements context.Context.
func (c *grace) Deadline() (time.Time, bool) { return c.end, true }

// Err implements context.Context.
func (c *grace) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	select {
	case <-c.done: // nil blocks
		return context.DeadlineExceeded
	default:
	}
	if c.done == nil && !time.Now().Before(c.end) {
		return context.DeadlineExceeded
	}
	return nil
}

// Done implements context.Context.
func (c *grace) Done() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.done == nil {
		done := make(chan struct{})
		c.done = done
		c.timer = time.AfterFunc(time.Until(c.end), func() { close(done) })
	}
	return c.done
}

// stop ends the context early, so that what was derived from it lets go.
func (c *grace) stop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.timer == nil:
		c.done = make(chan struct{})
		close(c.done)
	case c.timer.Stop():
		close(c.done)
	}
}
