package semelwatermill

import (
	"bytes"
	"context"
	"encoding/gob"
	"fmt"
	"maps"
	"slices"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/store"
)

// RecordKeyMetadata is the name in the metadata of a message that has the key of its Kafka record.
// An Unmarshaler sets it: watermill-kafka passes the key on in the message's context only. Two
// messages with different record keys are two messages, although their bodies are equal.
const RecordKeyMetadata = "semel-record-key"

// messageOf is a message as package consume sees it. Its address is the topic that the
// router subscribed to.
func messageOf(msg *message.Message) *consume.Message {
	m := &consume.Message{
		Origin:    consume.Origin{Topic: message.SubscribeTopicFromCtx(msg.Context()), ID: msg.UUID},
		Body:      msg.Payload,
		RecordKey: []byte(msg.Metadata.Get(RecordKeyMetadata)),
	}
	// In the order of their names: if a name comes in two spellings, the same one counts in
	// each delivery.
	for _, name := range slices.Sorted(maps.Keys(msg.Metadata)) {
		m.Headers = append(m.Headers, store.Header{Name: name, Value: msg.Metadata[name]})
	}
	return m
}

// recorder is a runner that keeps the messages of a handler as the outcome of its call.
type recorder struct{ runner semel.Runner }

// Unwrap is for package consume, which asks the runner for its Retention.
func (r recorder) Unwrap() semel.Runner { return r.runner }

// Run implements semel.Runner.
func (r recorder) Run(ctx context.Context, call semel.Call, fn semel.Handler) (semel.Result, error) {
	d := ctx.Value(deliveryKey{}).(*delivery) //nolint:forcetypeassert // of take
	res, err := r.runner.Run(ctx, call, func(ctx context.Context, x *semel.Execution) (store.Outcome, error) {
		if o, err := fn(ctx, x); err != nil {
			return o, err
		}
		return encode(d.produced), nil
	})
	d.kept = res.Outcome
	return res, err
}

// codec names the encoding of kept messages: gob of []sent, because metadata and UUIDs
// may have any bytes.
const codec = "watermill-gob"

// sent is a message that a handler returned.
type sent struct {
	UUID     string
	Metadata map[string]string
	Payload  []byte
}

func encode(produced []*message.Message) store.Outcome {
	if len(produced) == 0 {
		return store.Outcome{}
	}
	all := make([]sent, len(produced))
	for i, m := range produced {
		all[i] = sent{m.UUID, m.Metadata, m.Payload}
	}
	var body bytes.Buffer
	if err := gob.NewEncoder(&body).Encode(all); err != nil { // the handler has had its effect
		return store.Outcome{Gone: true}
	}
	return store.Outcome{Body: body.Bytes(), Codec: codec}
}

func decode(o store.Outcome) ([]*message.Message, error) {
	if o.Codec == "" && !o.Gone {
		return nil, nil
	}
	if o.Codec != codec || o.Gone {
		return nil, fmt.Errorf("the messages of the first run are not kept; the codec is %q: %w", o.Codec, semel.ErrNotKept)
	}
	var all []sent
	if err := gob.NewDecoder(bytes.NewReader(o.Body)).Decode(&all); err != nil {
		return nil, fmt.Errorf("the kept messages: %w: %w", err, store.ErrCorrupt)
	}
	produced := make([]*message.Message, len(all))
	for i, s := range all {
		produced[i] = message.NewMessage(s.UUID, s.Payload)
		for name, value := range s.Metadata {
			produced[i].Metadata.Set(name, value)
		}
	}
	return produced, nil
}
