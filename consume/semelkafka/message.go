package semelkafka

import (
	"strconv"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consume"
	"github.com/twmb/franz-go/pkg/kgo"
)

// topicID is the id of the topic that records were fetched from: a topic that
// is made anew under the same name counts its offsets from zero again, but has
// another id.
func (s *Source) topicID(t *kgo.FetchTopic) string {
	id := t.TopicID
	if id == ([16]byte{}) { // brokers before 3.1 do not send it
		s.mu.Lock()
		id = s.ids[t.Topic]
		s.mu.Unlock()
	}
	if id == ([16]byte{}) {
		return t.Topic
	}
	return topicIDText(id)
}

// message is a record as package consume sees it.
func (s *Source) message(r *kgo.Record, topicID string) *consume.Message {
	m := &consume.Message{
		Origin:    consume.Origin{Topic: r.Topic, Partition: r.Partition, Offset: r.Offset, ID: messageID(topicID, r)},
		Headers:   make([]semel.Header, len(r.Headers)),
		Body:      r.Value,
		Published: r.Timestamp,
	}
	if r.Timestamp.UnixMilli() <= 0 { // Kafka's -1: it has none
		m.Published = time.Time{}
	}
	for i, h := range r.Headers {
		m.Headers[i] = semel.Header{Name: h.Key, Value: string(h.Value)}
	}
	m.OrderKey = s.opt.OrderKey(m, r.Key)
	return m
}

func messageID(topicID string, r *kgo.Record) string {
	var room [96]byte
	b := append(append(room[:0], topicID...), '/')
	b = append(strconv.AppendInt(b, int64(r.Partition), 10), '/')
	return string(strconv.AppendInt(b, r.Offset, 10))
}

// letter is a copy of a record. Its key is the record's, so that letters of one
// key stay in order, and a tombstone stays one.
func letter(topic string, r *kgo.Record, headers []semel.Header) *kgo.Record {
	l := &kgo.Record{Topic: topic, Key: r.Key, Value: r.Value, Headers: make([]kgo.RecordHeader, len(headers))}
	for i, h := range headers {
		l.Headers[i] = kgo.RecordHeader{Key: h.Name, Value: []byte(h.Value)}
	}
	return l
}
