package deliver

import (
	"context"
	"sync"
	"time"
)

// gate stops all messages while the service takes none: it cannot be reached, or says
// that it has too much to do. After the pause one message tries, and the others wait
// for its answer. A message that waits has no claim, so that a crash leaves no doubt.
type gate struct {
	notify func(open bool, reason string)

	mu      sync.Mutex
	pauses  pauses
	changed chan struct{}
}

func newGate(longest time.Duration, notify func(open bool, reason string)) *gate {
	return &gate{notify: notify, pauses: pauses{longest: longest}, changed: make(chan struct{})}
}

// enter waits until a message may try, and reports false if stop is closed or ctx ends
// first. The caller calls leave after the try, and passes entered to answered or pause.
func (g *gate) enter(ctx context.Context, stop <-chan struct{}) (entered time.Time, leave func(), ok bool) {
	for {
		g.mu.Lock()
		entered = time.Now()
		rest, ok := g.pauses.admit(entered)
		if ok {
			leave = func() {}
			if !g.pauses.until.IsZero() {
				leave = g.leave
			}
			g.mu.Unlock()
			return entered, leave, true
		}
		changed, timer := g.changed, (<-chan time.Time)(nil)
		if !g.pauses.probing {
			timer = time.After(rest)
		}
		g.mu.Unlock()
		select {
		case <-timer:
		case <-changed:
		case <-stop:
			return entered, nil, false
		case <-ctx.Done():
			return entered, nil, false
		}
	}
}

// leave ends a try. If there was no answer to it, because it sent nothing, the next
// message tries.
func (g *gate) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.pauses.probing = false
	g.wake()
}

// wake lets those that wait look again. The caller holds mu.
func (g *gate) wake() {
	close(g.changed)
	g.changed = make(chan struct{})
}

// answered opens the gate after an answer: see pauses.answered.
func (g *gate) answered(entered time.Time) {
	g.mu.Lock()
	opened := g.pauses.answered(entered)
	if opened {
		g.wake()
	}
	g.mu.Unlock()
	if opened {
		g.notify(true, "")
	}
}

// pause closes the gate after the failure of a message: see pauses.pause.
func (g *gate) pause(entered time.Time, after time.Duration, reason string) {
	g.mu.Lock()
	closed := g.pauses.pause(time.Now(), entered, after)
	g.mu.Unlock()
	if closed {
		g.notify(false, reason)
	}
}

// paused reports whether messages wait.
func (g *gate) paused() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return !g.pauses.until.IsZero()
}
