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

// messages makes some at a time, for one goroutine: to make each alone costs as
// much again. Whoever keeps one keeps those beside it, as it is with the client's
// records, but not as many.
type messages struct {
	room    []consume.Message
	headers []semel.Header
}

const together = 32

func (ms *messages) next(headers int) *consume.Message {
	if len(ms.room) == 0 {
		ms.room = make([]consume.Message, together)
	}
	m := &ms.room[0]
	ms.room = ms.room[1:]
	if headers > len(ms.headers) {
		ms.headers = make([]semel.Header, max(headers, together))
	}
	m.Headers, ms.headers = ms.headers[:headers:headers], ms.headers[headers:]
	return m
}

// message is a record as package consume sees it, one of ms.
func (s *Source) message(ms *messages, r *kgo.Record, topicID string) *consume.Message {
	m := ms.next(len(r.Headers))
	*m = consume.Message{
		Origin:    consume.Origin{Topic: r.Topic, Partition: r.Partition, Offset: r.Offset, ID: messageID(topicID, r)},
		Headers:   m.Headers,
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
