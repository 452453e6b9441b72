package semelpulsar

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/apache/pulsar-client-go/pulsar"
	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/store"
)

// message converts a message for package consume.
func (s *Source) message(raw pulsar.Message) *consume.Message {
	id := raw.ID()
	m := &consume.Message{
		Origin: consume.Origin{
			Topic: s.topic, Partition: partitionOf(raw), Offset: id.EntryID(),
			ID: fmt.Sprintf("%d:%d:%d", id.LedgerID(), id.EntryID(), max(0, id.BatchIdx())),
		},
		Headers:   headers(raw.Properties()),
		Body:      raw.Payload(),
		RecordKey: []byte(raw.Key()),
		Published: raw.PublishTime(),
	}
	if t := raw.BrokerPublishTime(); t != nil {
		m.Published = *t
	}
	if !s.inOrder() { // in the other subscriptions Pulsar counts nothing
		m.Deliveries = int(raw.RedeliveryCount()) + 1
	}
	m.OrderKey = s.opt.OrderKey(m, orderingKey(raw))
	return m
}

// partitionOf is the number at the end of the name of the message's topic. The client's
// index is 0 if the source subscribes to one partition only.
func partitionOf(raw pulsar.Message) int32 {
	topic := raw.Topic()
	number, ok := strings.CutPrefix(topic, baseName(topic)+partitionMark)
	n, err := strconv.ParseInt(number, 10, 32)
	if !ok || err != nil {
		return 0
	}
	return int32(n)
}

// orderingKey is the key by which Pulsar orders a message.
func orderingKey(raw pulsar.Message) string {
	if key := raw.OrderingKey(); key != "" {
		return key
	}
	return raw.Key()
}

// headers returns the properties in the order of their names, because the client keeps no
// order.
func headers(properties map[string]string) (hs []store.Header) {
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		hs = append(hs, store.Header{Name: name, Value: properties[name]})
	}
	return hs
}

// letter makes a copy of a message. It has the message's keys, so that the copies of one
// key stay in order, and the same bytes, without a schema.
func letter(raw pulsar.Message, hs []store.Header) *pulsar.ProducerMessage {
	m := &pulsar.ProducerMessage{
		Payload: raw.Payload(), Key: raw.Key(), OrderingKey: raw.OrderingKey(), EventTime: raw.EventTime(),
		Properties: make(map[string]string, len(hs)),
	}
	for _, h := range hs {
		m.Properties[h.Name] = h.Value
	}
	return m
}

// Decode converts a message that was received from a topic, such as the dead letters, for
// programs that read it without a Source.
func Decode(raw pulsar.Message) *consume.Message {
	s := &Source{topic: baseName(fullName(raw.Topic()))}
	s.opt = (&Options{Type: pulsar.Shared, OrderKey: ByKey}).withDefaults(s.topic, "")
	return s.message(raw)
}
