package semel

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// grace is a context that keeps the values of another, not its end, and ends
// by itself at a time: context.WithTimeout(context.WithoutCancel(…)), but it
// makes its channel and timer only for those who ask for them. A store that
// answers at once looks at it once, which takes neither a lock nor the clock,
// and each call settles once.
type grace struct {
	caller context.Context //nolint:containedctx // it is one, and has the caller's values
	d      time.Duration

	state atomic.Uint32
	mu    sync.Mutex // guards the rest
	begun bool       // the time counts
	end   instant
	done  chan struct{} // nil: nobody has asked
	timer *time.Timer
}

// What a grace knows of those who ask.
const (
	unasked uint32 = iota
	looked         // once, at Err
	counting
	stopped
)

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

// count begins the time, if nobody has asked before; a first look alone does
// not count. It reports whether the context goes on. The caller holds mu.
func (c *grace) count() bool {
	for {
		was := c.state.Load()
		if was == stopped {
			return false
		}
		if was == counting || c.state.CompareAndSwap(was, counting) {
			break
		}
	}
	if !c.begun {
		c.begun, c.end = true, now().add(c.d)
	}
	return now() < c.end
}

// Deadline implements context.Context.
func (c *grace) Deadline() (time.Time, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.count()
	return time.Now().Add(c.end.since(now())), true
}

// Err implements context.Context.
func (c *grace) Err() error {
	if c.state.Load() == unasked && c.state.CompareAndSwap(unasked, looked) {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	select {
	case <-c.done: // nil blocks
		return context.DeadlineExceeded
	default:
	}
	if goesOn := c.count(); !goesOn && (c.done == nil || c.state.Load() == stopped) {
		return context.DeadlineExceeded
	}
	return nil
}

// Done implements context.Context.
func (c *grace) Done() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.count()
	if c.state.Load() == stopped && c.done == nil {
		return closed
	}
	if c.done == nil {
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
	if c.state.Swap(stopped) != counting {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.timer != nil && c.timer.Stop() {
		close(c.done)
	}
}
