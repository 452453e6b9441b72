package semelpulsar

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/apache/pulsar-client-go/pulsar"
)

// acks sends acks in batches: those that come while a request runs share the next one.
type acks struct {
	send func(ids []pulsar.MessageID) error // returns after the broker has answered
	over <-chan struct{}                    // closed when no answer will come

	mu      sync.Mutex
	waiting []*ackCall
	sending bool
}

type ackCall struct {
	id   pulsar.MessageID
	err  error // set before done is closed
	done chan struct{}
}

// maxAcks is how many acks one request has.
const maxAcks = 1000

// add acks a message, and returns the broker's answer. While the client is not connected
// there is none.
func (a *acks) add(ctx context.Context, id pulsar.MessageID) error {
	c := &ackCall{id: id, done: make(chan struct{})}
	a.mu.Lock()
	a.waiting = append(a.waiting, c)
	if !a.sending {
		a.sending = true
		go a.sendAll()
	}
	a.mu.Unlock()
	select {
	case <-c.done:
		return c.err
	case <-a.over:
		return errAbandoned
	case <-ctx.Done():
		a.forget(c)
		return ctx.Err()
	}
}

// forget removes a call that nobody waits for.
func (a *acks) forget(c *ackCall) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if i := slices.Index(a.waiting, c); i >= 0 {
		a.waiting = slices.Delete(a.waiting, i, i+1)
	}
}

// sendAll sends requests until no ack waits.
func (a *acks) sendAll() {
	for {
		a.mu.Lock()
		n := min(len(a.waiting), maxAcks)
		if n == 0 {
			a.sending = false
			a.mu.Unlock()
			return
		}
		calls := slices.Clone(a.waiting[:n])
		a.waiting = slices.Delete(a.waiting, 0, n)
		a.mu.Unlock()
		ids := make([]pulsar.MessageID, n)
		for i, c := range calls {
			ids[i] = c.id
		}
		err := a.send(ids)
		failed, isList := errors.AsType[pulsar.AckError](err)
		for _, c := range calls {
			if c.err = err; isList {
				c.err = failed[c.id]
			}
			close(c.done)
		}
	}
}
