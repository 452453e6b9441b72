package semelkafka

import (
	"crypto/rand"
	"slices"
	"strings"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consume"
	"github.com/twmb/franz-go/pkg/kgo"
)

// Stamp sets the headers of consume.Stamp on a record that a handler produces:
// a key derived from the run's, the same for each attempt. Use a different step
// for each record that a handler produces. It returns r.
func Stamp(r *kgo.Record, x *semel.Execution, step string) *kgo.Record {
	for _, h := range consume.Stamp(x, step) {
		set(r, h.Name, h.Value)
	}
	return r
}

// Keyed sets the idempotency key of a record, such as the id of an event in the
// producer's outbox. It returns r.
func Keyed(r *kgo.Record, key string) *kgo.Record {
	set(r, consume.KeyHeader, key)
	return r
}

func set(r *kgo.Record, name, value string) {
	r.Headers = slices.DeleteFunc(r.Headers, func(h kgo.RecordHeader) bool { return strings.EqualFold(h.Key, name) })
	r.Headers = append(r.Headers, kgo.RecordHeader{Key: name, Value: []byte(value)})
}

// Stamper is a hook for a producer's client (kgo.WithHooks): it sets a new key
// on each produced record that has none. The same *kgo.Record produced again
// keeps its key, so that a producer can send it again if it does not know
// whether the record arrived.
type Stamper struct{}

var _ kgo.HookProduceRecordBuffered = Stamper{}

// OnProduceRecordBuffered implements kgo.HookProduceRecordBuffered.
func (Stamper) OnProduceRecordBuffered(r *kgo.Record) {
	if !slices.ContainsFunc(r.Headers, func(h kgo.RecordHeader) bool { return strings.EqualFold(h.Key, consume.KeyHeader) }) {
		set(r, consume.KeyHeader, rand.Text())
	}
}
