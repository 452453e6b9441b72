package semelamqp

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/store"
)

// Headers that handlers, key sources and copies see beside the message's own:
// where it was published to, and AMQP's properties. The content type is
// "content-type", the encoding "content-encoding". A header of the message with
// one of these names wins.
const (
	Exchange      = "amqp-exchange"
	RoutingKey    = "amqp-routing-key"
	MessageID     = "amqp-message-id"
	CorrelationID = "amqp-correlation-id"
	ReplyTo       = "amqp-reply-to"
	Type          = "amqp-type"
	AppID         = "amqp-app-id"
)

// deliveriesHeader counts the deliveries before a retry by the broker.
const deliveriesHeader = "semel-retry-deliveries"

// properties are the properties that copies keep.
func properties(d *amqp.Delivery) []store.Header {
	return []store.Header{
		{Name: "content-type", Value: d.ContentType}, {Name: "content-encoding", Value: d.ContentEncoding},
		{Name: MessageID, Value: d.MessageId}, {Name: CorrelationID, Value: d.CorrelationId}, {Name: ReplyTo, Value: d.ReplyTo},
		{Name: Type, Value: d.Type}, {Name: AppID, Value: d.AppId},
	}
}

// address is where the message was published to. A copy has it as headers.
func address(d *amqp.Delivery) []store.Header {
	return []store.Header{{Name: Exchange, Value: d.Exchange}, {Name: RoutingKey, Value: d.RoutingKey}}
}

// message converts a message for package consume.
func message(d *amqp.Delivery, queue string) *consume.Message {
	m := &consume.Message{
		Origin: consume.Origin{Topic: queue}, Headers: headers(d), Body: d.Body,
		Published: published(d), Deliveries: deliveries(d),
	}
	exchange, _ := m.Header(Exchange)
	key, _ := m.Header(RoutingKey)
	m.Origin.Address = exchange + "/" + key
	return m
}

// headers returns the headers in the order of their names, because AMQP keeps
// no order.
func headers(d *amqp.Delivery) (hs []store.Header) {
	for _, name := range slices.Sorted(maps.Keys(d.Headers)) {
		value, ok := text(d.Headers[name])
		switch {
		case !ok, name == deliveriesHeader:
		case value == "" && (name == Exchange || name == RoutingKey): // of a copy; as if absent
		default:
			hs = append(hs, store.Header{Name: name, Value: value})
		}
	}
	for _, h := range slices.Concat(address(d), properties(d)) {
		if _, has := d.Headers[h.Name]; !has && h.Value != "" {
			hs = append(hs, h)
		}
	}
	return hs
}

// text returns a header's value as text; false if it is a table, an array or
// the like.
func text(v any) (string, bool) {
	switch v := v.(type) {
	case string:
		return v, true
	case []byte:
		return string(v), true
	case bool:
		return strconv.FormatBool(v), true
	case float32:
		return strconv.FormatFloat(float64(v), 'g', -1, 32), true
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64), true
	case time.Time:
		return v.UTC().Format(time.RFC3339), true
	}
	n, ok := integer(v)
	return strconv.FormatInt(n, 10), ok
}

func integer(v any) (int64, bool) {
	switch v := v.(type) {
	case int8:
		return int64(v), true
	case byte:
		return int64(v), true
	case int16:
		return int64(v), true
	case uint16:
		return int64(v), true
	case int32:
		return int64(v), true
	case uint32:
		return int64(v), true
	case int:
		return int64(v), true
	case int64:
		return v, true
	}
	return 0, false
}

// published returns the broker's time, if its message interceptor sets one,
// otherwise the producer's timestamp.
func published(d *amqp.Delivery) time.Time {
	if ms, ok := integer(d.Headers["timestamp_in_ms"]); ok && ms > 0 {
		return time.UnixMilli(ms)
	}
	if d.Timestamp.Unix() > 0 {
		return d.Timestamp
	}
	return time.Time{}
}

// deliveries returns the number of deliveries, or a lower bound: quorum queues
// count, classic ones only tell that there was an earlier delivery.
func deliveries(d *amqp.Delivery) int {
	before, _ := integer(d.Headers[deliveriesHeader])
	again, counted := integer(d.Headers["x-delivery-count"])
	if !counted && d.Redelivered {
		again = 1
	}
	return int(min(min(max(before, 0), maxDeliveries)+min(max(again, 0), maxDeliveries)+1, maxDeliveries))
}

// maxDeliveries limits the count, because producers can set headers, too.
const maxDeliveries = 1 << 30

// instructions reports whether a header tells the broker how to treat a
// message, or is the broker's record of the past. A copy must not repeat these;
// CC, for instance, would send it to more queues.
func instructions(name string) bool {
	switch name {
	case "CC", "BCC", "x-delivery-count", "x-acquired-count", "x-delay", "x-death", deliveriesHeader:
		return true
	}
	return strings.HasPrefix(name, "x-first-death-") || strings.HasPrefix(name, "x-last-death-")
}

// copyOf makes a copy that the broker keeps: without an expiry, which would
// drop it, and without the user, who must be the publisher.
func copyOf(d *amqp.Delivery) amqp.Publishing {
	p := amqp.Publishing{
		ContentType: d.ContentType, ContentEncoding: d.ContentEncoding, DeliveryMode: amqp.Persistent, Priority: d.Priority,
		CorrelationId: d.CorrelationId, ReplyTo: d.ReplyTo, MessageId: d.MessageId, Timestamp: d.Timestamp, Type: d.Type, AppId: d.AppId,
		Headers: amqp.Table{}, Body: d.Body,
	}
	for name, value := range d.Headers {
		if !instructions(name) {
			p.Headers[name] = value
		}
	}
	for _, h := range address(d) {
		if _, has := p.Headers[h.Name]; !has {
			p.Headers[h.Name] = h.Value
		}
	}
	return p
}

// retryOf makes the copy that waits for the next delivery.
func retryOf(d *amqp.Delivery) amqp.Publishing {
	p := copyOf(d)
	p.Headers[deliveriesHeader] = int64(deliveries(d))
	return p
}

// letterOf makes a copy with these headers. The message's own keep their types.
func letterOf(d *amqp.Delivery, hs []store.Header) amqp.Publishing {
	p := copyOf(d)
	own := p.Headers
	p.Headers = amqp.Table{}
	for name, value := range own {
		if _, ok := text(value); !ok { // hs holds text only
			p.Headers[name] = value
		}
	}
	for _, h := range hs {
		value, has := own[h.Name]
		switch was, _ := text(value); {
		case has && was == h.Value:
			p.Headers[h.Name] = value
		case instructions(h.Name):
		case !has && slices.Contains(properties(d), h):
		default:
			p.Headers[h.Name] = h.Value
		}
	}
	return p
}
