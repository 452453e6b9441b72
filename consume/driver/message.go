package driver

import (
	"strings"
	"time"

	"github.com/semel-go/semel/store"
)

// Message is a message as its broker delivered it. Handlers and key sources
// read it and change nothing.
type Message struct {
	// Origin says where the message comes from, for people and dead letters.
	Origin Origin
	// Key is the idempotency key. It is empty until the consumer's CallFunc
	// has found it. A Consumer handles messages with equal keys one at a time.
	Key string
	// Record names the record of the message's call, for logs: with hashes, if the
	// runner hashes keys. It is zero until the Consumer has found the call, and if the
	// runner has no method StoreKey(semel.Call) store.Key, which a Guard and an Atomic have.
	Record store.Key
	// OrderKey makes messages wait for each other: a Consumer handles messages
	// with equal order keys one at a time, in the order of their delivery. A
	// message with an empty one waits for no other.
	OrderKey string
	// RecordKey is the key that the producer has given the message in its topic: the
	// record's key in Kafka, the message's key in Pulsar. Empty if there is none. A message
	// group of SQS is no record key, because producers choose it for the order only.
	RecordKey []byte
	// Headers are the message's own, in their order; values may be any bytes.
	Headers []store.Header
	Body    []byte
	// Published is the broker's time of publication; zero: unknown.
	Published time.Time
	// Deliveries counts the deliveries of this message, 1 for the first; zero:
	// the broker does not count.
	Deliveries int
	// Invalid says why the adapter cannot read the message as its producer meant it. A
	// Consumer dead-letters such a message as ReasonInvalid, and does not run it.
	Invalid error
}

// Origin is where a message comes from.
type Origin struct {
	Topic     string // the topic, queue or subject
	Partition int32
	Offset    int64 // the offset or sequence number; zero if the broker has none
	// ID is the broker's own name of the message, the same for each delivery;
	// empty if it has none. A producer that sends a message twice makes two IDs.
	ID string
	// Address is where the producer published the message to, if that is not the
	// Topic: RabbitMQ's exchange and routing key. It stays the same in retries.
	Address string
}

// Published is where the producer published the message to: the Address, or else
// the Topic.
func (o *Origin) Published() string {
	if o.Address != "" {
		return o.Address
	}
	return o.Topic
}

// Header finds the first header with a name, in upper or lower case.
func (m *Message) Header(name string) (value string, ok bool) {
	for _, h := range m.Headers {
		if strings.EqualFold(h.Name, name) {
			return h.Value, true
		}
	}
	return "", false
}
