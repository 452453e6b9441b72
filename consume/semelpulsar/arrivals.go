package semelpulsar

import (
	"slices"
	"sync"

	"github.com/apache/pulsar-client-go/pulsar"
)

// arrivals are the messages that the client has received and that no Next has returned.
// It is an interceptor of the client. A client cannot ask for no more messages: after Stop
// it refuses those that the broker still sends.
type arrivals struct {
	refuse func(id pulsar.MessageID) // after Stop; nil: they go back when the link is closed

	mu      sync.Mutex
	unread  map[int32][]pulsar.MessageID // by the partition, in the order of arrival
	stopped bool
}

// BeforeConsume implements pulsar.ConsumerInterceptor.
func (a *arrivals) BeforeConsume(m pulsar.ConsumerMessage) {
	a.mu.Lock()
	defer a.mu.Unlock()
	id := m.Message.ID()
	switch {
	case !a.stopped:
		a.unread[id.PartitionIdx()] = append(a.unread[id.PartitionIdx()], id)
	case a.refuse != nil:
		a.refuse(id)
	}
}

// OnAcknowledge implements pulsar.ConsumerInterceptor.
func (a *arrivals) OnAcknowledge(pulsar.Consumer, pulsar.MessageID) {}

// OnNegativeAcksSend implements pulsar.ConsumerInterceptor.
func (a *arrivals) OnNegativeAcksSend(pulsar.Consumer, []pulsar.MessageID) {}

// read forgets a message that Next reads, and returns deliver's answer. The client has
// dropped the messages of its partition that came earlier and are still here, because it
// has connected again. If the message was revoked, read reports false.
func (a *arrivals) read(id pulsar.MessageID, deliver func() bool) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	ids := a.unread[id.PartitionIdx()]
	i := slices.Index(ids, id)
	if i < 0 {
		return false
	}
	clear(ids[:i+1])
	a.unread[id.PartitionIdx()] = ids[i+1:]
	return deliver()
}

// revoke drops the messages of a partition that no Next has returned, because the broker
// sends them to another member, and calls revokeDeliveries.
func (a *arrivals) revoke(partition int32, revokeDeliveries func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.unread, partition)
	revokeDeliveries()
}

// stop gives back what no Next has returned.
func (a *arrivals) stop() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.stopped = true
	for _, ids := range a.unread {
		for _, id := range ids {
			if a.refuse != nil {
				a.refuse(id)
			}
		}
	}
	clear(a.unread)
}

func (a *arrivals) isStopped() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.stopped
}
