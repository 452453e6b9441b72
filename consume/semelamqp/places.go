package semelamqp

import (
	"context"
	"sync"
)

// places limits for each queue how much is on its way to it at once, so that a queue that
// does not answer, such as a quorum queue without a majority, delays no other.
type places struct {
	limit int

	mu     sync.Mutex
	queues map[string]*queuePlaces // by name; only queues in use
}

// queuePlaces are the places of one queue.
type queuePlaces struct {
	taken chan struct{}
	users int // goroutines that have a place or wait for one; places.mu guards it
}

// take waits for a place of a queue, and returns the function that frees it.
func (p *places) take(ctx context.Context, name string) (free func(), _ error) {
	p.mu.Lock()
	q := p.queues[name]
	if q == nil {
		q = &queuePlaces{taken: make(chan struct{}, p.limit)}
		if p.queues == nil {
			p.queues = map[string]*queuePlaces{}
		}
		p.queues[name] = q
	}
	q.users++
	p.mu.Unlock()
	leave := func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if q.users--; q.users == 0 {
			delete(p.queues, name)
		}
	}
	select {
	case q.taken <- struct{}{}:
		return func() {
			<-q.taken
			leave()
		}, nil
	case <-ctx.Done():
		leave()
		return nil, ctx.Err()
	}
}
