package consume

import (
	"context"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consume/driver"
	"github.com/semel-go/semel/store"
)

// Message is a message as its broker delivered it. Handlers and key sources must not
// change it.
type Message = driver.Message

// Origin is where a message comes from: topic, partition, offset and the
// broker's own ID.
type Origin = driver.Origin

// Payload returns the payload that Keyed compares, for a CallFunc of your own: the message's
// address (see driver.Address), the type of its event (driver.EventType), its record key
// (driver.RecordKey) and its body.
func Payload(m *Message) semel.Payload {
	return semel.Bytes([]byte(driver.Address(m)), []byte(driver.EventType(m.Headers)), driver.RecordKey(m), m.Body)
}

type messageKey struct{}

// FromContext returns the message of the running handler, for code that gets only the
// handler's context. It reports false outside of a handler. semel.FromContext returns the
// handler's execution.
func FromContext(ctx context.Context) (*Message, bool) {
	m, ok := ctx.Value(messageKey{}).(*Message)
	return m, ok
}

// KeyHeader is the header in which producers send the idempotency key.
const KeyHeader = "idempotency-key"

// Stamp returns two headers for a message that a handler sends: KeyHeader with a key
// for that message, and "semel-caused-by" with the Execution.Key of the handled message.
// Each attempt makes the same key, so that the next consumer recognizes repeats. If a
// handler sends several messages, give each a step name of its own.
func Stamp(x *semel.Execution, step string) []store.Header {
	return []store.Header{{Name: KeyHeader, Value: x.DownstreamKey(step)}, {Name: "semel-caused-by", Value: x.Key()}}
}
