package semelamqp

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
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
	users int       // goroutines that have a place or wait for one; places.mu guards it
	freed time.Time // when a place became free; places.mu guards it
}

// take waits for a place of a queue, and returns the function that frees it.
func (p *places) take(ctx context.Context, name string) (free func(), err error) {
	return p.takeSoon(ctx, name, 0)
}

var errNoPlace = errors.New("no place became free")

// takeSoon is take with a limit: it fails if no place of the queue has become free for that
// time. With limit 0 it waits until ctx ends.
func (p *places) takeSoon(ctx context.Context, name string, limit time.Duration) (free func(), err error) {
	q := p.enter(name)
	began := time.Now()
	for {
		var over <-chan time.Time
		if limit > 0 {
			over = time.After(time.Until(p.progress(q, began).Add(limit)))
		}
		select {
		case q.taken <- struct{}{}:
			return func() {
				<-q.taken
				p.leave(name, q, true)
			}, nil
		case <-ctx.Done():
			p.leave(name, q, false)
			return nil, ctx.Err()
		case <-over:
			if time.Since(p.progress(q, began)) >= limit {
				p.leave(name, q, false)
				return nil, fmt.Errorf("%w within %v", errNoPlace, limit)
			}
		}
	}
}

// enter returns the places of a queue, for one more user.
func (p *places) enter(name string) *queuePlaces {
	p.mu.Lock()
	defer p.mu.Unlock()
	q := p.queues[name]
	if q == nil {
		q = &queuePlaces{taken: make(chan struct{}, p.limit)}
		if p.queues == nil {
			p.queues = map[string]*queuePlaces{}
		}
		p.queues[name] = q
	}
	q.users++
	return q
}

// leave ends the use of a queue's places.
func (p *places) leave(name string, q *queuePlaces, freed bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if freed {
		q.freed = time.Now()
	}
	if q.users--; q.users == 0 {
		delete(p.queues, name)
	}
}

// progress is when a place of a queue became free, or began, if that is later.
func (p *places) progress(q *queuePlaces, began time.Time) time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	if q.freed.After(began) {
		return q.freed
	}
	return began
}
