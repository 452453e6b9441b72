package coalesce

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"time"
)

// PanicError is what the callers of a flush get that did not return.
type PanicError struct {
	Value any // what it panicked with; nil: it called runtime.Goexit
	Stack []byte
}

// Error is the panic's value in words.
func (e *PanicError) Error() string {
	if e.Value == nil {
		return "coalesce: the flush ended its goroutine (runtime.Goexit)"
	}
	return fmt.Sprintf("coalesce: the flush panicked: %v", e.Value)
}

// Unwrap is the panic's value, if that is an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// trip is one flush of queued requests.
type trip[Req, Res any] struct {
	items  []*Item[Req, Res]
	number uint64 // as pace counts them; 0: none yet
	here   int    // callers that still wait
	cancel context.CancelFunc
}

// leave counts a caller out. The last one cancels the flush.
func (t *trip[Req, Res]) leave() {
	if t.here--; t.here == 0 {
		t.cancel()
	}
}

// alone flushes it on its caller's goroutine, and has the requests that queued
// meanwhile flushed on another.
func (l *Lane[Req, Res]) alone(ctx context.Context, it *Item[Req, Res]) {
	it.self[0] = it
	start := time.Now()
	defer func() {
		l.mu.Lock()
		l.pace.took(time.Since(start))
		l.answer(it)
		more := l.more()
		l.mu.Unlock()
		if more {
			go l.drain()
		}
	}()
	l.run(ctx, it.self[:])
}

// drain makes trips until nothing is queued.
func (l *Lane[Req, Res]) drain() {
	ended := false
	defer func() {
		if !ended { // a flush ended this goroutine
			go l.drain()
		}
	}()
	var t trip[Req, Res]
	for {
		// The callers that were just answered get to queue again first: a
		// fuller batch for all.
		runtime.Gosched()
		ctx, ok := l.depart(&t)
		if !ok {
			ended = true
			return
		}
		l.travel(ctx, &t)
	}
}

// depart takes a batch off the queue, or reports false and stops running. In t
// is the trip that ended.
func (l *Lane[Req, Res]) depart(t *trip[Req, Res]) (context.Context, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.more() {
		return nil, false
	}
	if l.spare(t) {
		l.running--
		l.hold()
		return nil, false
	}
	t.items = t.items[:0]
	for q := range l.queue {
		for len(t.items) < l.max {
			it := l.queue[q].pop()
			if it == nil {
				break
			}
			it.state, it.trip = inFlight, t
			t.items = append(t.items, it)
		}
	}
	t.here = len(t.items)
	l.waiting -= t.here
	t.number = l.pace.count(t.here)
	if l.queued() { // the batch was full
		l.help()
	}
	ctx, cancel := context.WithCancel(context.Background())
	t.cancel = cancel
	return ctx, true
}

// more reports whether a flusher has to go on; if not, it counts it out.
func (l *Lane[Req, Res]) more() bool {
	if l.queued() {
		return true
	}
	if l.running--; l.running == 0 && l.idle != nil {
		close(l.idle)
		l.idle = nil
	}
	return false
}

// travel flushes t and answers its callers, whatever the flush does.
func (l *Lane[Req, Res]) travel(ctx context.Context, t *trip[Req, Res]) {
	start := time.Now()
	defer func() {
		t.cancel()
		l.mu.Lock()
		defer l.mu.Unlock()
		l.pace.took(time.Since(start))
		for i, it := range t.items {
			l.answer(it)
			it.done <- struct{}{}
			t.items[i] = nil
		}
	}()
	l.run(ctx, t.items)
}

// answer ends it's flight, and lets the next of its number go.
func (l *Lane[Req, Res]) answer(it *Item[Req, Res]) {
	it.state, it.trip = answered, nil
	l.release(it)
}

func (l *Lane[Req, Res]) run(ctx context.Context, batch []*Item[Req, Res]) {
	returned := false
	defer func() {
		if returned {
			return
		}
		var none Res
		err := &PanicError{Value: recover(), Stack: debug.Stack()}
		for _, it := range batch {
			it.Res, it.Err = none, err
		}
	}()
	l.flush(ctx, batch)
	returned = true
}
