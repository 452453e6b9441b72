package consume

import (
	"context"
	"strings"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
)

// Message is a message as its broker delivered it. Handlers and key sources
// read it and change nothing.
type Message struct {
	// Origin is where it comes from, for people and dead letters.
	Origin Origin
	// Key is the idempotency key that was found; empty before a CallFunc that
	// sets it, as Keyed's does, has run. Messages of one Consumer with equal
	// keys are handled in turn.
	Key string
	// OrderKey makes messages wait for each other: a Consumer handles those
	// with equal ones in the order of their delivery, one at a time. Empty: it
	// waits for no other.
	OrderKey string
	// Headers are the message's own, in their order; values may be any bytes.
	Headers []store.Header
	Body    []byte
	// Published is the broker's time of publication; zero: not known.
	Published time.Time
	// Deliveries counts the deliveries of this message, 1 for the first; zero:
	// the broker does not count.
	Deliveries int
}

// Origin is where a message comes from.
type Origin struct {
	Topic     string // the topic, queue or subject
	Partition int32
	Offset    int64 // the offset or sequence number; zero where there is none
	// ID is the broker's own name of the message, the same for each delivery;
	// empty: it has none. Two messages that a producer sent twice have two.
	ID string
}

// Header finds the first header with a name, in upper or lower case.
func (m *Message) Header(name string) (string, bool) {
	for _, h := range m.Headers {
		if strings.EqualFold(h.Name, name) {
			return h.Value, true
		}
	}
	return "", false
}

type messageKey struct{}

// FromContext finds the message that a handler's context belongs to: for code
// below the handler whose signature is not ours. semel.FromContext finds the
// run.
func FromContext(ctx context.Context) (*Message, bool) {
	m, ok := ctx.Value(messageKey{}).(*Message)
	return m, ok
}

// KeyHeader is the header in which producers send the idempotency key.
const KeyHeader = "idempotency-key"

// Stamp is the headers of a message that a handler produces: a key derived
// from the run's, so that each attempt produces the same one and the next
// consumer drops the repeats, and the key of the message that caused it. Each
// message that a handler produces needs a step of its own.
func Stamp(x *semel.Execution, step string) []store.Header {
	return []store.Header{{Name: KeyHeader, Value: x.DownstreamKey(step)}, {Name: "semel-caused-by", Value: x.Key()}}
}
