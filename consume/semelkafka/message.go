package semelkafka

import (
	"strconv"
	"time"

	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/store"
	"github.com/twmb/franz-go/pkg/kgo"
)

// topicID is the id of a record's topic. A topic that is created again under
// the same name counts its offsets from zero, but has another id.
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

// message converts a record for package consume.
func (s *Source) message(r *kgo.Record, topicID string) *consume.Message {
	m := &consume.Message{
		Origin:    consume.Origin{Topic: r.Topic, Partition: r.Partition, Offset: r.Offset, ID: messageID(topicID, r)},
		Headers:   make([]store.Header, len(r.Headers)),
		Body:      r.Value,
		RecordKey: r.Key,
		Published: r.Timestamp,
	}
	if r.Timestamp.UnixMilli() <= 0 { // Kafka sends -1 for no timestamp
		m.Published = time.Time{}
	}
	for i, h := range r.Headers {
		m.Headers[i] = store.Header{Name: h.Key, Value: string(h.Value)}
	}
	m.OrderKey = s.opt.OrderKey(m, r.Key)
	return m
}

// messageID has the timestamp, because a broker that was restored from an older copy
// may have another message at the same offset.
func messageID(topicID string, r *kgo.Record) string {
	var room [96]byte
	b := append(append(room[:0], topicID...), '/')
	b = append(strconv.AppendInt(b, int64(r.Partition), 10), '/')
	b = strconv.AppendInt(b, r.Offset, 10)
	if ms := r.Timestamp.UnixMilli(); ms > 0 {
		b = strconv.AppendInt(append(b, '/'), ms, 10)
	}
	return string(b)
}

// letter makes a copy of a record. It has the record's key, so that the letters
// of one key stay in order, and a copy of a tombstone is a tombstone.
func letter(topic string, r *kgo.Record, headers []store.Header) *kgo.Record {
	l := &kgo.Record{Topic: topic, Key: r.Key, Value: r.Value, Headers: make([]kgo.RecordHeader, len(headers))}
	for i, h := range headers {
		l.Headers[i] = kgo.RecordHeader{Key: h.Name, Value: []byte(h.Value)}
	}
	return l
}

// LastMessage is the message before a position in a partition, as far as it tells
// the partition's log from another log. An offset alone does not: after an unclean
// leader election, or in a broker that was restored from an older copy, there may be
// new messages at offsets that are done.
type LastMessage struct {
	LeaderEpoch int32     // of the leader that appended it
	Published   time.Time // its timestamp; zero: nothing is known of the message
}

func (l LastMessage) isKnown() bool { return !l.Published.IsZero() }

// Last is the message as the last one before a position.
func (it *Item) Last() LastMessage { return LastMessage{it.LeaderEpoch, it.Published} }

// lastOf is a record as the last one before a position.
func lastOf(r *kgo.Record) LastMessage {
	last := LastMessage{LeaderEpoch: r.LeaderEpoch}
	if r.Timestamp.UnixMilli() > 0 { // Kafka sends -1 for no timestamp
		last.Published = r.Timestamp
	}
	return last
}
