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
	caller context.Context //nolint:containedctx // it is one, and has the caller's values
	d      time.Duration

	mu      sync.Mutex
	begun   bool // somebody has asked, so the time counts
	end     instant
	stopped bool
	done    chan struct{} // nil: nobody has asked
	timer   *time.Timer
}

// closed is the channel of those who ask after the end.
var closed = func() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

func newGrace(ctx context.Context, d time.Duration) *grace {
	c := &grace{}
	c.begin(ctx, d)
	return c
}

func (c *grace) begin(ctx context.Context, d time.Duration) {
	c.caller, c.d = ctx, d
}

// Deadline implements context.Context.
func (c *grace) Deadline() (time.Time, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.start()
	return time.Now().Add(c.end.since(now())), true
}

// start begins the time when somebody asks for the first time: a store asks
// before it does anything, so the clock is read once for most settlements. It reports whether this was the first time. The caller
// holds mu.
func (c *grace) start() bool {
	if c.begun {
		return false
	}
	c.begun, c.end = true, now().add(c.d)
	return true
}

// Err implements context.Context.
func (c *grace) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	select {
	case <-c.done: // nil blocks
		return context.DeadlineExceeded
	default:
	}
	if c.stopped || c.done == nil && !c.start() && now() >= c.end {
		return context.DeadlineExceeded
	}
	return nil
}

// Done implements context.Context.
func (c *grace) Done() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stopped {
		return closed
	}
	if c.done == nil {
		c.start()
		done := make(chan struct{})
		c.done = done
		c.timer = time.AfterFunc(c.end.since(now()), func() { close(done) })
	}
	return c.done
}

// Value implements context.Context. Through the caller's own, context.Cause
// would find why that one ended.
func (c *grace) Value(key any) any { return context.WithoutCancel(c.caller).Value(key) }

// stop ends the context early, so that what was derived from it lets go.
func (c *grace) stop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stopped = true
	if c.timer != nil && c.timer.Stop() {
		close(c.done)
	}
}
