package consume

import (
	"context"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consume/driver"
	"github.com/semel-go/semel/store"
)

// Message is a message as its broker delivered it. Handlers and key sources
// read it and change nothing.
type Message = driver.Message

// Origin is where a message comes from: topic, partition, offset and the
// broker's own ID.
type Origin = driver.Origin

type messageKey struct{}

// FromContext returns the message that a handler's context belongs to, for code
// that the handler calls. semel.FromContext returns the run.
func FromContext(ctx context.Context) (*Message, bool) {
	m, ok := ctx.Value(messageKey{}).(*Message)
	return m, ok
}

// KeyHeader is the header in which producers send the idempotency key.
const KeyHeader = "idempotency-key"

// Stamp returns the headers of a message that a handler produces: a key derived
// from the run's, and the key of the message that caused it. Each attempt
// derives the same key, so that the next consumer drops the repeats. Use a
// different step for each message that a handler produces.
func Stamp(x *semel.Execution, step string) []store.Header {
	return []store.Header{{Name: KeyHeader, Value: x.DownstreamKey(step)}, {Name: "semel-caused-by", Value: x.Key()}}
}
