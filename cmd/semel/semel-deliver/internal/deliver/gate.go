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
	longest time.Duration // the longest pause
	notify  func(open bool, reason string)

	mu       sync.Mutex
	until    time.Time // zero: open
	began    time.Time // of the last pause
	failures int       // pauses since the gate was open
	probing  bool      // a message tries
	changed  chan struct{}
}

func newGate(longest time.Duration, notify func(open bool, reason string)) *gate {
	return &gate{longest: longest, notify: notify, changed: make(chan struct{})}
}

// firstPause is the pause after the first failure. Each further one takes twice as long.
const firstPause = 100 * time.Millisecond

// enter waits until a message may try, and reports false if stop is closed or ctx ends
// first. The caller calls leave after the try, and passes entered to answered or pause.
func (g *gate) enter(ctx context.Context, stop <-chan struct{}) (entered time.Time, leave func(), ok bool) {
	for {
		g.mu.Lock()
		entered = time.Now()
		wait := g.until.Sub(entered)
		switch {
		case g.until.IsZero():
			g.mu.Unlock()
			return entered, func() {}, true
		case !g.probing && wait <= 0:
			g.probing = true
			g.mu.Unlock()
			return entered, g.leave, true
		}
		changed, timer := g.changed, (<-chan time.Time)(nil)
		if !g.probing {
			timer = time.After(wait)
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
	g.probing = false
	g.wake()
}

// wake lets those that wait look again. The caller holds mu.
func (g *gate) wake() {
	close(g.changed)
	g.changed = make(chan struct{})
}

// answered opens the gate after an answer to a message that entered after the last pause
// began. An answer to an earlier message does nothing: a service with too much to do still
// answers the requests that it has taken.
func (g *gate) answered(entered time.Time) {
	g.mu.Lock()
	if entered.Before(g.began) {
		g.mu.Unlock()
		return
	}
	wasClosed := !g.until.IsZero()
	g.until, g.failures = time.Time{}, 0
	if wasClosed {
		g.wake()
	}
	g.mu.Unlock()
	if wasClosed {
		g.notify(true, "")
	}
}

// pause closes the gate after the failure of a message; after zero: for a time that grows with each
// pause. The failure of a message that entered before the last pause began is not counted again,
// because it tells nothing new of the service. It only makes the pause longer if the service has
// named a time.
func (g *gate) pause(entered time.Time, after time.Duration, reason string) {
	g.mu.Lock()
	now := time.Now()
	wasOpen, older := g.until.IsZero(), entered.Before(g.began)
	if older && (wasOpen || after <= 0) {
		g.mu.Unlock()
		return
	}
	if !older && (wasOpen || !now.Before(g.until)) {
		g.failures++
		g.began = now
	}
	if after <= 0 {
		after = firstPause << min(g.failures-1, 20)
	}
	if until := now.Add(min(after, g.longest)); until.After(g.until) {
		g.until = until
	}
	g.mu.Unlock()
	if wasOpen {
		g.notify(false, reason)
	}
}

// paused reports whether messages wait.
func (g *gate) paused() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return !g.until.IsZero()
}
