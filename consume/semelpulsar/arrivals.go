package semelpulsar

import (
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

// read forgets a message that Next returns. The client has dropped the messages of its
// partition that came earlier and are still here, because it has connected again.
func (a *arrivals) read(id pulsar.MessageID) {
	a.mu.Lock()
	defer a.mu.Unlock()
	ids := a.unread[id.PartitionIdx()]
	for i := range ids {
		if ids[i] == id {
			clear(ids[:i+1])
			a.unread[id.PartitionIdx()] = ids[i+1:]
			return
		}
	}
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
