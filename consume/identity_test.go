package consume_test

import (
	"context"
	"errors"
	"testing"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/consume/driver"
	"github.com/semel-go/semel/store"
)

const sameBody = `{"id":7}`

// ofKind is a message of the topic orders with the same body as all the others.
func ofKind(hs ...string) *consume.Message {
	return &consume.Message{Origin: consume.Origin{Topic: "orders"}, Headers: headers(hs...), Body: []byte(sameBody)}
}

func withRecordKey(m *consume.Message, key string) *consume.Message {
	m.RecordKey = []byte(key)
	return m
}

// keyOf is the key that a source finds in a message.
func keyOf(t *testing.T, source consume.KeySource, m *consume.Message) string {
	t.Helper()
	key, err := source(m)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// handleBoth runs two messages under one key, and returns the reason of the second.
func handleBoth(t *testing.T, a, b *consume.Message) driver.Reason {
	t.Helper()
	c := newConsumer(t, newGuard(t, nil, nil), done, consume.Options{})
	key := store.Header{Name: consume.KeyHeader, Value: "k"}
	a.Headers, b.Headers = append(a.Headers, key), append(b.Headers, key)
	if d := c.Handle(t.Context(), a); d.Reason != driver.ReasonDone {
		t.Errorf("the first: %q: %v", d.Reason, d.Err)
	}
	return c.Handle(t.Context(), b).Reason
}

// The type of an event may stand beside its body.
func TestKey_SameBodyOfTwoTypes_DoesNotCollide(t *testing.T) {
	for name, pair := range map[string]func() (a, b *consume.Message){
		"CloudEvent of Kafka": func() (a, b *consume.Message) { return ofKind("ce_type", "created"), ofKind("ce_type", "cancelled") },
		"CloudEvent of NATS":  func() (a, b *consume.Message) { return ofKind("Ce-Type", "created"), ofKind("Ce-Type", "cancelled") },
		"CloudEvent of AMQP": func() (a, b *consume.Message) {
			return ofKind("cloudEvents:type", "a"), ofKind("cloudEvents:type", "b")
		},
		"CloudEvent of JMS": func() (a, b *consume.Message) {
			return ofKind("cloudEvents_type", "a"), ofKind("cloudEvents_type", "b")
		},
		"subject of a CloudEvent": func() (a, b *consume.Message) { return ofKind("ce_subject", "7"), ofKind("ce_subject", "8") },
		"property of AMQP": func() (a, b *consume.Message) {
			return ofKind("amqp-type", "created"), ofKind("amqp-type", "cancelled")
		},
		"header type": func() (a, b *consume.Message) { return ofKind("type", "created"), ofKind("type", "cancelled") },
		"header eventType": func() (a, b *consume.Message) {
			return ofKind("eventType", "created"), ofKind("eventType", "cancelled")
		},
		"header event_type": func() (a, b *consume.Message) {
			return ofKind("event_type", "created"), ofKind("event_type", "cancelled")
		},
		"header X-Event-Type": func() (a, b *consume.Message) { return ofKind("X-Event-Type", "a"), ofKind("X-Event-Type", "b") },
		"header message-type": func() (a, b *consume.Message) { return ofKind("message-type", "a"), ofKind("message-type", "b") },
		"Spring": func() (a, b *consume.Message) {
			return ofKind("__TypeId__", "Created"), ofKind("__TypeId__", "Cancelled")
		},
		"Watermill":                 func() (a, b *consume.Message) { return ofKind("name", "Created"), ofKind("name", "Cancelled") },
		"one has a type":            func() (a, b *consume.Message) { return ofKind(), ofKind("type", "created") },
		"type and subject exchange": func() (a, b *consume.Message) { return ofKind("ce_type", "x"), ofKind("ce_subject", "x") },
	} {
		for i, source := range []consume.KeySource{consume.JSONField("id"), consume.Hash("id"), consume.Hash()} {
			a, b := pair()
			if keyOf(t, source, a) == keyOf(t, source, b) {
				t.Errorf("%s: source %d: both have the key %q", name, i, keyOf(t, source, a))
			}
		}
		if a, b := pair(); handleBoth(t, a, b) != driver.ReasonMismatch {
			t.Errorf("%s: the same key for the other is no mismatch", name)
		}
	}
}

// A broker, a retry and a trace add headers: they are not the identity of an event.
func TestKey_HeadersOfARedelivery_DoNotCount(t *testing.T) {
	first := func() *consume.Message { return ofKind("ce_type", "created", "content-type", "application/json") }
	again := func() *consume.Message {
		return ofKind("traceparent", "00-1", "ce_time", "2026-11-30T12:00:00Z", "ce_id", "2", "x-death", "1", "kafka_original-topic", "t", "retry-count", "2",
			"content-type", "application/json; charset=utf-8", "ce_datacontenttype", "text/plain", "Nats-Msg-Id", "9", "amqp-message-id", "9",
			"CE-Type", "created", "a-header-with-a-name-that-is-longer-than-each-name-of-a-type", "x", "event-type", "")
	}
	for i, source := range []consume.KeySource{consume.JSONField("id"), consume.Hash("id"), consume.Hash()} {
		if a, b := keyOf(t, source, first()), keyOf(t, source, again()); a != b {
			t.Errorf("source %d: the keys are %q and %q", i, a, b)
		}
	}
	if r := handleBoth(t, first(), again()); r != driver.ReasonDuplicate {
		t.Errorf("the second is %q", r)
	}
	a, b := ofKind("type", "1", "ce_type", "2"), ofKind("ce_type", "2", "type", "1") // a broker may not keep the order
	if driver.EventType(a.Headers) != driver.EventType(b.Headers) {
		t.Errorf("%q in one order, %q in the other", driver.EventType(a.Headers), driver.EventType(b.Headers))
	}
}

// In a compacted topic the record key may be all that tells two messages apart, as it is of
// tombstones. JSONField and Hash with members name what tells them apart.
func TestKey_SameBodyOfTwoRecordKeys_DoesNotCollide(t *testing.T) {
	a, b := withRecordKey(ofKind(), "order-7"), withRecordKey(ofKind(), "order-8")
	if keyOf(t, consume.Hash(), a) == keyOf(t, consume.Hash(), b) {
		t.Error("Hash makes one key of two records")
	}
	if keyOf(t, consume.JSONField("id"), a) != keyOf(t, consume.JSONField("id"), b) {
		t.Error("JSONField makes two keys of one member")
	}
	if handleBoth(t, a, b) != driver.ReasonMismatch {
		t.Error("the same key for another record is no mismatch")
	}
	if a := withRecordKey(ofKind(), ""); keyOf(t, consume.Hash(), a) != keyOf(t, consume.Hash(), ofKind()) {
		t.Error("an empty record key is not as none")
	}
}

// A tool that sends a dead letter again may set no record key.
func TestKey_LetterIsSentBack_KeepsItsIdentity(t *testing.T) {
	for _, key := range []string{"", "order-7", "\x00\xff\n"} {
		first := withRecordKey(ofKind("ce_type", "created"), key)
		back := &consume.Message{Origin: consume.Origin{Topic: "retry"}, Body: first.Body, RecordKey: []byte("another"), Headers: driver.Letter(first, driver.Disposition{Action: driver.DeadLetter}, "g")}
		for i, source := range []consume.KeySource{consume.JSONField("id"), consume.Hash("id"), consume.Hash()} {
			if a, b := keyOf(t, source, first), keyOf(t, source, back); a != b {
				t.Errorf("%q: source %d: the keys are %q and %q", key, i, a, b)
			}
		}
		if got := string(driver.RecordKey(back)); got != key {
			t.Errorf("the record key is %q, want %q", got, key)
		}
		if r := handleBoth(t, first, back); r != driver.ReasonDuplicate {
			t.Errorf("%q: the letter is %q", key, r)
		}
	}
}

// A CallFunc of one's own compares what Keyed compares.
func TestPayload_EachPart_IsComparedAsInKeyed(t *testing.T) {
	event := func(kind, key, body string) *consume.Message {
		m := withRecordKey(ofKind("type", kind), key)
		m.Body = []byte(body)
		return m
	}
	for name, c := range map[string]struct {
		m    *consume.Message
		same bool
	}{
		"the same":             {event("created", "7", sameBody), true},
		"another type":         {event("cancelled", "7", sameBody), false},
		"another record key":   {event("created", "8", sameBody), false},
		"parts that are moved": {event("created", sameBody, "7"), false},
	} {
		g := newGuard(t, nil, nil)
		call, err := consume.Keyed("g", func(*consume.Message) (string, error) { return "k", nil })(event("created", "7", sameBody))
		if err != nil {
			t.Fatal(err)
		}
		nothing := func(context.Context, *semel.Execution) error { return nil }
		if err := semel.Once(t.Context(), g, call, nothing); err != nil {
			t.Fatal(err)
		}
		call.Payload = consume.Payload(c.m)
		if err := semel.Once(t.Context(), g, call, nothing); (err == nil) != c.same || err != nil && !errors.Is(err, semel.ErrMismatch) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
