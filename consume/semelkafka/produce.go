package semelkafka

import (
	"crypto/rand"
	"slices"
	"strings"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consume"
	"github.com/twmb/franz-go/pkg/kgo"
)

// Stamp gives a record that a handler produces the headers of consume.Stamp: a
// key derived from the run's, the same for each attempt. Each record that a
// handler produces needs a step of its own. It returns r.
func Stamp(r *kgo.Record, x *semel.Execution, step string) *kgo.Record {
	for _, h := range consume.Stamp(x, step) {
		set(r, h.Name, h.Value)
	}
	return r
}

// Keyed gives a record an idempotency key, in place of one that it has: such as
// the name of the event in the producer's outbox. It returns r.
func Keyed(r *kgo.Record, key string) *kgo.Record {
	set(r, consume.KeyHeader, key)
	return r
}

func set(r *kgo.Record, name, value string) {
	r.Headers = slices.DeleteFunc(r.Headers, func(h kgo.RecordHeader) bool { return strings.EqualFold(h.Key, name) })
	r.Headers = append(r.Headers, kgo.RecordHeader{Key: name, Value: []byte(value)})
}

// Stamper is a hook for a producer's client, by kgo.WithHooks: it gives each
// record that has no idempotency key a new one, when it is produced. The same
// *kgo.Record produced again keeps its key, so that a producer that does not
// know whether its record arrived can send it again.
type Stamper struct{}

var _ kgo.HookProduceRecordBuffered = Stamper{}

// OnProduceRecordBuffered implements kgo.HookProduceRecordBuffered.
func (Stamper) OnProduceRecordBuffered(r *kgo.Record) {
	if !slices.ContainsFunc(r.Headers, func(h kgo.RecordHeader) bool { return strings.EqualFold(h.Key, consume.KeyHeader) }) {
		set(r, consume.KeyHeader, rand.Text())
	}
}
