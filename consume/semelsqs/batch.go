package semelsqs

import (
	"context"
	"sync"
	"time"
)

const (
	maxBatch   = 10 // of SQS
	maxFlights = 8
	// requestLimit ends a request that gets no answer.
	requestLimit = 10 * time.Second
)

// entry is one part of a batch.
type entry struct {
	handle  string
	seconds int32 // of a change of visibility
	err     error // set before done is closed
	done    chan struct{}
}

// batcher collects the entries that come while a request runs, so that most requests
// are full. A lone entry waits for no other: it is sent at once if no request runs, and
// otherwise after that request. Only full requests run beside others.
type batcher struct {
	// send sets the errors of the entries that failed.
	send func(ctx context.Context, es []*entry)

	mu      sync.Mutex
	waiting []*entry
	flights int
}

// start begins an entry. Its done is closed after the answer.
func (b *batcher) start(handle string, seconds int32) *entry {
	e := &entry{handle: handle, seconds: seconds, done: make(chan struct{})}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.waiting = append(b.waiting, e)
	if b.flights == 0 || len(b.waiting) >= maxBatch && b.flights < maxFlights {
		b.flights++
		go b.fly()
	}
	return e
}

// wait returns the result of an entry. If ctx ends first, the result is unknown.
func (e *entry) wait(ctx context.Context) error {
	select {
	case <-e.done:
		return e.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// fly sends batches until no entry waits, or fewer than a batch while another request
// runs, which is followed by theirs.
func (b *batcher) fly() {
	for {
		b.mu.Lock()
		n := min(len(b.waiting), maxBatch)
		if n == 0 || n < maxBatch && b.flights > 1 {
			b.flights--
			b.mu.Unlock()
			return
		}
		es := append([]*entry(nil), b.waiting[:n]...)
		clear(b.waiting[:n])
		b.waiting = b.waiting[n:]
		b.mu.Unlock()
		ctx, cancel := context.WithTimeout(context.Background(), requestLimit)
		b.send(ctx, es)
		cancel()
		for _, e := range es {
			close(e.done)
		}
	}
}
