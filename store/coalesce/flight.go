package coalesce

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"time"
)

// PanicError is the error of a flush that panicked or ended its goroutine.
type PanicError struct {
	Value any // the panic's value; nil: the flush called runtime.Goexit
	Stack []byte
}

// Error implements error.
func (e *PanicError) Error() string {
	if e.Value == nil {
		return "coalesce: the flush ended its goroutine (runtime.Goexit)"
	}
	return fmt.Sprintf("coalesce: the flush panicked: %v", e.Value)
}

// Unwrap returns the panic's value if that is an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// flight is one flush of queued requests.
type flight[Req, Res any] struct {
	items   []*Item[Req, Res]
	number  uint64 // from pace.count; 0: none yet
	callers int    // that still wait
	cancel  context.CancelFunc
}

// leave removes a caller. The last one cancels the flush.
func (t *flight[Req, Res]) leave() {
	if t.callers--; t.callers == 0 {
		t.cancel()
	}
}

// alone flushes it on its caller's goroutine, and starts another for the requests
// that were queued meanwhile.
func (b *Batcher[Req, Res]) alone(ctx context.Context, it *Item[Req, Res]) {
	start := time.Now()
	defer func() {
		b.mu.Lock()
		b.pace.took(time.Since(start))
		b.answer(it)
		more := b.more()
		b.mu.Unlock()
		if more {
			go b.drain()
		}
	}()
	b.run(ctx, []*Item[Req, Res]{it})
}

// drain flushes batches until nothing is queued.
func (b *Batcher[Req, Res]) drain() {
	ended := false
	defer func() {
		if !ended { // a flush ended this goroutine
			go b.drain()
		}
	}()
	var t flight[Req, Res]
	for {
		// Callers that were just answered may queue their next request first,
		// so that the batch is fuller.
		runtime.Gosched()
		ctx, ok := b.takeBatch(&t)
		if !ok {
			ended = true
			return
		}
		b.runBatch(ctx, &t)
	}
}

// takeBatch moves a batch from the queue into t, the flight that has just ended.
// It reports false if this flusher must stop.
func (b *Batcher[Req, Res]) takeBatch(t *flight[Req, Res]) (context.Context, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.more() {
		return nil, false
	}
	if b.spare(t) {
		b.running--
		b.hold()
		return nil, false
	}
	t.items = t.items[:0]
	for q := range b.queue {
		for len(t.items) < b.max {
			it := b.queue[q].pop()
			if it == nil {
				break
			}
			it.state, it.flight = inFlight, t
			t.items = append(t.items, it)
		}
	}
	t.callers = len(t.items)
	b.waiting -= t.callers
	t.number = b.pace.count(t.callers)
	if b.queued() { // the batch was full
		b.help()
	}
	ctx, cancel := context.WithCancel(context.Background())
	t.cancel = cancel
	return ctx, true
}

// more reports whether this flusher must go on. If not, it no longer counts as
// running.
func (b *Batcher[Req, Res]) more() bool {
	if b.queued() {
		return true
	}
	if b.running--; b.running == 0 && b.idle != nil {
		close(b.idle)
		b.idle = nil
	}
	return false
}

// runBatch flushes t and answers its callers, even if the flush panics.
func (b *Batcher[Req, Res]) runBatch(ctx context.Context, t *flight[Req, Res]) {
	start := time.Now()
	defer func() {
		t.cancel()
		b.mu.Lock()
		defer b.mu.Unlock()
		b.pace.took(time.Since(start))
		for i, it := range t.items {
			b.answer(it)
			it.done <- struct{}{}
			t.items[i] = nil
		}
	}()
	b.run(ctx, t.items)
}

// answer marks it as answered, and queues the next request with its number.
func (b *Batcher[Req, Res]) answer(it *Item[Req, Res]) {
	it.state, it.flight = answered, nil
	b.release(it)
}

func (b *Batcher[Req, Res]) run(ctx context.Context, batch []*Item[Req, Res]) {
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
	b.flush(ctx, batch)
	returned = true
}
