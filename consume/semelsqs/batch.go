package semelsqs

import (
	"context"
	"sync"
	"time"
)

const (
	maxBatch   = 10 // of SQS
	maxFlights = 8
	// requestLimit ends a request that gets no answer. Entries wait for a running request for
	// slowRequest only, because a message is visible again if its extension is late.
	requestLimit = 10 * time.Second
	slowRequest  = time.Second
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
// otherwise after that request, or when that request is slow. Otherwise only full requests run
// beside others.
type batcher struct {
	// send sets the errors of the entries that failed.
	send func(ctx context.Context, es []*entry)

	mu      sync.Mutex
	waiting []*entry
	flights int
	slow    int // of the flights, those whose request is slow
}

// start begins an entry. Its done is closed after the answer.
func (b *batcher) start(handle string, seconds int32) *entry {
	e := &entry{handle: handle, seconds: seconds, done: make(chan struct{})}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.waiting = append(b.waiting, e)
	b.launch()
	return e
}

// launch begins a request if one is due. The caller holds mu.
func (b *batcher) launch() {
	n := len(b.waiting)
	if n > 0 && b.flights < maxFlights && (b.flights == b.slow || n >= maxBatch) {
		b.flights++
		go b.fly()
	}
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
		if n == 0 || n < maxBatch && b.flights-b.slow > 1 {
			b.flights--
			b.mu.Unlock()
			return
		}
		es := append([]*entry(nil), b.waiting[:n]...)
		clear(b.waiting[:n])
		b.waiting = b.waiting[n:]
		b.mu.Unlock()
		b.request(es)
		for _, e := range es {
			close(e.done)
		}
	}
}

// request sends a batch. If the answer takes long, entries that wait need not wait for it.
func (b *batcher) request(es []*entry) {
	ctx, cancel := context.WithTimeout(context.Background(), requestLimit)
	defer cancel()
	isSlow := make(chan struct{})
	timer := time.AfterFunc(slowRequest, func() {
		defer close(isSlow)
		b.mu.Lock()
		defer b.mu.Unlock()
		b.slow++
		b.launch()
	})
	b.send(ctx, es)
	if !timer.Stop() {
		<-isSlow
		b.mu.Lock()
		defer b.mu.Unlock()
		b.slow--
	}
}
