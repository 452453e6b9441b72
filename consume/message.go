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

type messageKey struct{}

// FromContext returns the message of the handler that was given ctx, for code that the
// handler calls. semel.FromContext returns the run.
func FromContext(ctx context.Context) (*Message, bool) {
	m, ok := ctx.Value(messageKey{}).(*Message)
	return m, ok
}

// KeyHeader is the header in which producers send the idempotency key.
const KeyHeader = "idempotency-key"

// Stamp returns two headers for a message that a handler sends: KeyHeader with a key
// for that message, and "semel-caused-by" with the Execution.Key of the handled message.
// Each attempt makes the same key, so that the next consumer recognizes repeats. Use
// another step for each message that a handler sends.
func Stamp(x *semel.Execution, step string) []store.Header {
	return []store.Header{{Name: KeyHeader, Value: x.DownstreamKey(step)}, {Name: "semel-caused-by", Value: x.Key()}}
}
