package semelamqp

import (
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/consume/driver"
	"github.com/semel-go/semel/store"
)

func full() *amqp.Delivery {
	return &amqp.Delivery{
		Headers: amqp.Table{
			"b": "2", "a": int32(1), "bytes": []byte("x"), "yes": true, "deep": amqp.Table{"k": "v"}, "CC": []any{"other"}, "x-death": []any{amqp.Table{}},
			"x-first-death-queue": "q", "x-delivery-count": int64(2), deliveriesHeader: int64(3), driver.LetterReason: "old",
		},
		ContentType: "application/json", ContentEncoding: "utf8", DeliveryMode: amqp.Transient, Priority: 5, CorrelationId: "c", ReplyTo: "r", Expiration: "1",
		MessageId: "m", Timestamp: time.Unix(1000, 0), Type: "t", UserId: "guest", AppId: "app", Redelivered: true, Exchange: "ex", RoutingKey: "rk", Body: []byte("body"),
	}
}

func TestMessage_HasAMQPProperties(t *testing.T) {
	m := message(full(), "orders")
	want := []store.Header{
		{Name: "a", Value: "1"}, {Name: "b", Value: "2"}, {Name: "bytes", Value: "x"}, {Name: driver.LetterReason, Value: "old"}, {Name: "x-delivery-count", Value: "2"},
		{Name: "x-first-death-queue", Value: "q"}, {Name: "yes", Value: "true"}, {Name: Exchange, Value: "ex"}, {Name: RoutingKey, Value: "rk"},
		{Name: "content-type", Value: "application/json"}, {Name: "content-encoding", Value: "utf8"}, {Name: MessageID, Value: "m"},
		{Name: CorrelationID, Value: "c"}, {Name: ReplyTo, Value: "r"}, {Name: Type, Value: "t"}, {Name: AppID, Value: "app"},
	}
	if !slices.Equal(m.Headers, want) {
		t.Errorf("the headers are %v\nwant %v", m.Headers, want)
	}
	if m.Origin != (consume.Origin{Topic: "orders", Address: "ex/rk"}) || string(m.Body) != "body" || !m.Published.Equal(time.Unix(1000, 0)) || m.Deliveries != 3+2+1 {
		t.Errorf("it is %+v", m)
	}
}

func TestDeliveries_IsALowerBound(t *testing.T) {
	for want, d := range map[int]amqp.Delivery{
		1: {}, 2: {Redelivered: true}, 5: {Redelivered: true, Headers: amqp.Table{"x-delivery-count": int64(4)}},
		8: {Redelivered: true, Headers: amqp.Table{deliveriesHeader: int64(6)}},
		// A producer may write what it likes, and must not get past a limit by it.
		maxDeliveries: {Redelivered: true, Headers: amqp.Table{deliveriesHeader: int64(math.MaxInt64)}},
	} {
		if got := deliveries(&d); got != want {
			t.Errorf("%+v: %d, want %d", d, got, want)
		}
	}
}

func TestPublished_BrokersTimeWins(t *testing.T) {
	at := time.UnixMilli(1_700_000_000_123)
	for name, c := range map[string]struct {
		d    amqp.Delivery
		want time.Time
	}{
		"unknown":    {},
		"the epoch":  {d: amqp.Delivery{Timestamp: time.Unix(0, 0)}},
		"producer's": {d: amqp.Delivery{Timestamp: time.Unix(5, 0)}, want: time.Unix(5, 0)},
		"broker's":   {d: amqp.Delivery{Timestamp: time.Unix(5, 0), Headers: amqp.Table{"timestamp_in_ms": at.UnixMilli()}}, want: at},
	} {
		if got := published(&c.d); !got.Equal(c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// A copy must not repeat the headers that tell the broker how to treat a
// message.
func TestCopy_Instructions_AreDropped(t *testing.T) {
	p := retryOf(full())
	if p.Expiration != "" || p.UserId != "" || p.DeliveryMode != amqp.Persistent {
		t.Errorf("it has the expiration %q, the user %q and the mode %d", p.Expiration, p.UserId, p.DeliveryMode)
	}
	if want := []string{"a", Exchange, RoutingKey, "b", "bytes", "deep", driver.LetterReason, deliveriesHeader, "yes"}; !slices.Equal(slices.Sorted(maps.Keys(p.Headers)), slices.Sorted(slices.Values(want))) {
		t.Errorf("it has the headers %v", p.Headers)
	}
	if p.ContentType != "application/json" || p.ContentEncoding != "utf8" || p.Priority != 5 || p.CorrelationId != "c" || p.ReplyTo != "r" || p.MessageId != "m" ||
		!p.Timestamp.Equal(time.Unix(1000, 0)) || p.Type != "t" || p.AppId != "app" || string(p.Body) != "body" {
		t.Errorf("it is %+v", p)
	}
}

// After a retry the handler sees what it saw before, but for the count.
func TestRetry_KeepsMessageAndCount(t *testing.T) {
	first := full()
	delete(first.Headers, "x-delivery-count")
	delete(first.Headers, "x-first-death-queue")
	first.Redelivered = false
	was := message(first, "orders")
	for range 3 {
		p := retryOf(first)
		p.Headers["x-death"], p.Headers["x-first-death-reason"] = []any{}, "expired"
		first = &amqp.Delivery{
			Headers: p.Headers, ContentType: p.ContentType, ContentEncoding: p.ContentEncoding, CorrelationId: p.CorrelationId, ReplyTo: p.ReplyTo, MessageId: p.MessageId,
			Timestamp: p.Timestamp, Type: p.Type, AppId: p.AppId, RoutingKey: "orders", Body: p.Body,
		}
		m := message(first, "orders")
		m.Headers = slices.DeleteFunc(m.Headers, func(h store.Header) bool { return strings.HasPrefix(h.Name, "x-first-") })
		if m.Deliveries != was.Deliveries+1 {
			t.Errorf("it was delivered %d times, then %d times", was.Deliveries, m.Deliveries)
		}
		for _, h := range was.Headers {
			if got, _ := m.Header(h.Name); got != h.Value {
				t.Errorf("header %s is %q, and was %q", h.Name, got, h.Value)
			}
		}
		was.Deliveries = m.Deliveries
	}
}

func TestLetter_Headers_KeepTheirTypes(t *testing.T) {
	d := full()
	m := message(d, "orders")
	p := letterOf(d, driver.Letter(m, driver.Disposition{Action: driver.DeadLetter, Reason: driver.ReasonFailed}, "billing"))
	want := amqp.Table{
		"a": int32(1), "b": "2", "bytes": []byte("x"), "yes": true, "deep": amqp.Table{"k": "v"}, Exchange: "ex", RoutingKey: "rk",
		driver.LetterReason: "failed", driver.LetterGroup: "billing", driver.LetterTopic: "orders", driver.LetterAddress: "ex/rk", driver.LetterDeliveries: "6", driver.LetterAttempts: "0",
		driver.LetterPartition: "0", driver.LetterOffset: "0", driver.LetterPublished: "1970-01-01T00:16:40Z", driver.LetterID: p.Headers[driver.LetterID],
	}
	if !reflect.DeepEqual(p.Headers, want) {
		t.Errorf("the headers are\n%v, want\n%v", p.Headers, want)
	}
}

func TestFit_TooManyHeaders_OmitsTheErrorText(t *testing.T) {
	const frame = 4096
	p := amqp.Publishing{Headers: amqp.Table{"k": strings.Repeat("v", 3000), driver.LetterError: strings.Repeat("e", 900)}}
	if err := fit(&p, frame); err != nil || p.Headers[driver.LetterError] == nil {
		t.Errorf("what fits: %v, %d headers", err, len(p.Headers))
	}
	p.Headers["more"] = []any{strings.Repeat("v", 200), amqp.Table{"a": []byte("b")}, 7}
	if err := fit(&p, frame); err != nil || p.Headers[driver.LetterError] != nil || len(p.Headers) != 2 {
		t.Errorf("what fits without the text: %v, %d headers", err, len(p.Headers))
	}
	p.Headers["more"] = strings.Repeat("v", 1100)
	if err := fit(&p, frame); err == nil || !strings.Contains(err.Error(), "frame_max") {
		t.Errorf("what does not fit: %v", err)
	}
	if err := fit(&p, 0); err != nil {
		t.Errorf("without a limit: %v", err)
	}
}

func TestKeySources_Properties_AreKeys(t *testing.T) {
	m := message(full(), "orders")
	long := message(&amqp.Delivery{MessageId: strings.Repeat("m", 255), RoutingKey: strings.Repeat("k", 255)}, "orders")
	for name, c := range map[string]struct {
		from consume.KeySource
		m    *consume.Message
		want string
	}{
		"message-id": {FromMessageID(), m, "semel-message-id:m"}, "routing key": {FromRoutingKey(), m, "semel-routing-key:rk"},
		"long message-id": {FromMessageID(), long, "semel-message-id:sha256:"}, "long routing key": {FromRoutingKey(), long, "semel-routing-key:sha256:"},
	} {
		if got, err := c.from(c.m); err != nil || !strings.HasPrefix(got, c.want) || len(got) > 255 {
			t.Errorf("%s: %q, %v; want %q", name, got, err, c.want)
		}
	}
	for _, from := range []consume.KeySource{FromMessageID(), FromRoutingKey()} {
		if got, err := from(&consume.Message{}); err != consume.ErrNoKey {
			t.Errorf("none: %q, %v", got, err)
		}
	}
	if ByRoutingKey(m) != "rk" || ByHeader("b")(m) != "2" || ByHeader("none")(m) != "" {
		t.Errorf("the order keys are %q, %q and %q", ByRoutingKey(m), ByHeader("b")(m), ByHeader("none")(m))
	}
}

// The client would end the connection of all copies.
func TestFit_NameTooLong_IsRefused(t *testing.T) {
	for n, want := range map[int]string{255: "", 256: "has 256 bytes, and AMQP takes 255"} {
		err := fit(&amqp.Publishing{Headers: amqp.Table{strings.Repeat("n", n): "v"}}, 0)
		if (err != nil) != (want != "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("a name of %d bytes: %v, want an error of %q", n, err, want)
		}
	}
}
