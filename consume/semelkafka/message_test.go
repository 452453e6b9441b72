package semelkafka

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/memstore"
	"github.com/twmb/franz-go/pkg/kgo"
)

func TestMessage_HasItsOrigin(t *testing.T) {
	s := apart(t, nil)
	at := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	r := &kgo.Record{
		Topic: "t", Partition: 2, Offset: 42, Key: []byte("k"), Value: []byte("b"), Timestamp: at,
		Headers: []kgo.RecordHeader{{Key: "B", Value: []byte("1")}, {Key: "A"}, {Key: "B", Value: []byte("\xff")}},
	}
	id := [16]byte{0xfb, 0xff}
	m := s.message(r, s.topicID(&kgo.FetchTopic{Topic: "t", TopicID: id}))
	want := []store.Header{{Name: "B", Value: "1"}, {Name: "A"}, {Name: "B", Value: "\xff"}}
	if m.Origin != (consume.Origin{Topic: "t", Partition: 2, Offset: 42, ID: fmt.Sprintf("-_8AAAAAAAAAAAAAAAAAAA/2/42/%d", at.UnixMilli())}) || m.OrderKey != "k" || !m.Published.Equal(at) ||
		string(m.Body) != "b" || string(m.RecordKey) != "k" || !slices.Equal(m.Headers, want) || m.Deliveries != 0 {
		t.Errorf("it is %+v", m)
	}
	// A broker that sends no ids has told it in its metadata, or has none.
	if got := s.topicID(&kgo.FetchTopic{Topic: "t"}); got != "t" {
		t.Errorf("without an id it is %q", got)
	}
	s.ids = map[string][16]byte{"t": id}
	if got := s.topicID(&kgo.FetchTopic{Topic: "t"}); got != topicIDText(id) {
		t.Errorf("with the metadata's id it is %q", got)
	}
	s.opt.OrderKey = func(m *consume.Message, key []byte) string { return string(m.Body) + string(key) }
	if m := s.message(r, "t"); m.OrderKey != "bk" {
		t.Errorf("the order key is %q", m.OrderKey)
	}
}

// Kafka's -1 is no time, and not the last day of 1969: such a message would be
// quarantined for its age.
func TestMessage_NoTimestamp_HasNoAge(t *testing.T) {
	s := apart(t, nil)
	for millis, known := range map[int64]bool{-1: false, 0: false, 1: true} {
		m := s.message(&kgo.Record{Topic: "t", Timestamp: time.UnixMilli(millis)}, "t")
		if m.Published.IsZero() == known {
			t.Errorf("%d ms is %v", millis, m.Published)
		}
	}
	if m := s.message(&kgo.Record{Topic: "t"}, "t"); !m.Published.IsZero() {
		t.Errorf("none is %v", m.Published)
	}
}

// A tombstone stays one: an empty value would bring its key back to life.
func TestLetter_OfATombstone_IsATombstone(t *testing.T) {
	for _, value := range [][]byte{nil, {}, []byte("v")} {
		l := letter("dead", &kgo.Record{Topic: "t", Key: []byte("k"), Value: value}, []store.Header{{Name: "a", Value: "1"}, {Name: "a", Value: ""}})
		if l.Topic != "dead" || string(l.Key) != "k" || (l.Value == nil) != (value == nil) || string(l.Value) != string(value) || len(l.Headers) != 2 || string(l.Headers[0].Value) != "1" {
			t.Errorf("the letter of %q is %+v", value, l)
		}
	}
}

func headersOf(r *kgo.Record) string {
	var all []string
	for _, h := range r.Headers {
		all = append(all, h.Key+"="+string(h.Value))
	}
	return strings.Join(all, " ")
}

func TestStamper_RecordWithoutKey_GetsOne(t *testing.T) {
	r := Keyed(&kgo.Record{Headers: []kgo.RecordHeader{{Key: "Idempotency-Key", Value: []byte("old")}, {Key: "trace", Value: []byte("1")}}}, "event-7")
	if got := headersOf(r); got != "trace=1 idempotency-key=event-7" {
		t.Errorf("Keyed: %s", got)
	}
	Stamper{}.OnProduceRecordBuffered(r)
	if got := headersOf(r); got != "trace=1 idempotency-key=event-7" {
		t.Errorf("the Stamper changes a key: %s", got)
	}
	bare := &kgo.Record{}
	Stamper{}.OnProduceRecordBuffered(bare)
	first := headersOf(bare)
	Stamper{}.OnProduceRecordBuffered(bare)
	if other := (&kgo.Record{}); first == "" || headersOf(bare) != first {
		t.Errorf("a record produced twice has the keys %q and %q", first, headersOf(bare))
	} else if (Stamper{}).OnProduceRecordBuffered(other); headersOf(other) == first {
		t.Error("two records have one key")
	}
}

// Each attempt of a handler produces the same key, so that the next consumer
// drops the repeats; each step another.
func TestStamp_NextAttempt_HasTheSameKey(t *testing.T) {
	g, err := semel.New(memstore.New(nil), nil)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]int{}
	for range 3 {
		_ = semel.Once(t.Context(), g, semel.Call{Operation: "o", Tenant: semel.Shared, Key: "k", Payload: semel.NoPayload()}, func(_ context.Context, x *semel.Execution) error {
			seen[headersOf(Stamp(&kgo.Record{}, x, "invoice"))]++
			seen[headersOf(Stamp(&kgo.Record{}, x, "mail"))]++
			return semel.NoEffect(context.Canceled)
		})
	}
	if len(seen) != 2 {
		t.Errorf("three attempts of two steps have stamped %v", seen)
	}
	for h := range seen {
		if !strings.Contains(h, "semel-caused-by=k") || !strings.Contains(h, consume.KeyHeader+"=") {
			t.Errorf("stamped: %s", h)
		}
	}
}
