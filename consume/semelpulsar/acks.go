package semelpulsar

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/apache/pulsar-client-go/pulsar"
)

// acks sends acks in batches: while a request of a partition runs, the partition's new acks
// wait, and share the next request. Each partition has its own requests, because the client
// does not return while it has no connection to the partition's broker.
type acks struct {
	send func(ids []pulsar.MessageID) error // returns after the broker has answered
	over <-chan struct{}                    // closed when no answer will come

	mu         sync.Mutex
	partitions map[int32]*partitionAcks
}

// partitionAcks are the acks of one partition.
type partitionAcks struct {
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
	p := a.partitions[id.PartitionIdx()]
	if p == nil {
		p = &partitionAcks{}
		a.partitions[id.PartitionIdx()] = p
	}
	p.waiting = append(p.waiting, c)
	if !p.sending {
		p.sending = true
		go a.sendAll(p)
	}
	a.mu.Unlock()
	select {
	case <-c.done:
		return c.err
	case <-a.over:
		return errAbandoned
	case <-ctx.Done():
		a.forget(p, c)
		return ctx.Err()
	}
}

// forget removes a call that nobody waits for.
func (a *acks) forget(p *partitionAcks, c *ackCall) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if i := slices.Index(p.waiting, c); i >= 0 {
		p.waiting = slices.Delete(p.waiting, i, i+1)
	}
}

// sendAll sends requests until no ack of a partition waits.
func (a *acks) sendAll(p *partitionAcks) {
	for {
		a.mu.Lock()
		n := min(len(p.waiting), maxAcks)
		if n == 0 {
			p.sending = false
			a.mu.Unlock()
			return
		}
		calls := slices.Clone(p.waiting[:n])
		p.waiting = slices.Delete(p.waiting, 0, n)
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
