package semelnats

import (
	"fmt"
	"maps"
	"net/textproto"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/consume/driver"
	"github.com/semel-go/semel/store"
)

// messageID includes the time of the message, because a stream that was deleted
// and created again counts from 1 again.
func messageID(stream string, seq uint64, stored time.Time) string {
	return fmt.Sprintf("%s/%d@%d", stream, seq, stored.UnixNano())
}

// message converts a message for package consume.
func message(m jetstream.Msg) (*consume.Message, error) {
	meta, err := m.Metadata()
	if err != nil {
		return nil, err
	}
	out := &consume.Message{
		Origin:  consume.Origin{Topic: m.Subject(), Offset: int64(meta.Sequence.Stream)},
		Headers: headers(m.Headers()), Body: m.Data(), Published: meta.Timestamp, Deliveries: int(meta.NumDelivered),
	}
	out.Origin.ID = messageID(meta.Stream, meta.Sequence.Stream, meta.Timestamp)
	return out, nil
}

// headers returns the headers in the order of their names, because NATS keeps
// no order. It unpacks those that newMsg has packed. The Nats-Msg-Id of a letter is
// left out: the one of its message is packed.
func headers(h nats.Header) (hs []store.Header) {
	for _, name := range slices.Sorted(maps.Keys(h)) {
		if name == jetstream.MsgIDHeader && h.Get(driver.LetterID) != "" {
			continue
		}
		for _, value := range h[name] {
			if name == driver.PackedHeaders {
				if packed, err := driver.UnpackHeaders(value); err == nil {
					hs = append(hs, packed...)
					continue
				}
			}
			hs = append(hs, store.Header{Name: name, Value: value})
		}
	}
	return hs
}

// isControl reports whether a header must not be sent with a body: the server takes headers
// that begin with "Nats-" for orders how to treat the message, and the client takes a message
// without a body and with the header Status for a notice of the server.
func isControl(name string, body []byte) bool {
	return strings.HasPrefix(strings.ToLower(name), "nats-") || len(body) == 0 && name == "Status"
}

// newMsg makes a message. Headers that the client refuses or changes are packed into one,
// after those of packed.
func newMsg(subject string, hs []store.Header, body []byte, packed ...store.Header) *nats.Msg {
	m := nats.NewMsg(subject)
	m.Data = body
	for _, h := range hs {
		switch {
		case isControl(h.Name, body):
		case !sendable(h):
			packed = append(packed, h)
		default:
			m.Header[h.Name] = append(m.Header[h.Name], h.Value)
		}
	}
	if len(packed) > 0 {
		m.Header.Set(driver.PackedHeaders, driver.PackHeaders(packed))
	}
	return m
}

// letter makes a copy of a message. The server drops a copy with an ID that its
// stream has, so that a copy sent twice is stored once. The durable's name is
// part of the ID, because several consumers may copy into one stream. The message's
// own Nats-Msg-Id is packed, so that a copy that comes back has the same key.
func letter(subject, durable string, hs []store.Header, body []byte) *nats.Msg {
	var ids []store.Header
	for _, h := range hs {
		if strings.EqualFold(h.Name, jetstream.MsgIDHeader) {
			ids = append(ids, h)
		}
	}
	m := newMsg(subject, hs, body, ids...)
	if id := m.Header.Get(driver.LetterID); id != "" {
		m.Header.Set(jetstream.MsgIDHeader, durable+"/"+id)
	}
	return m
}

// sendable reports whether the client sends a header as it is. The client refuses some
// names that NATS allows and other clients send, such as trace/id. Of a value it drops
// spaces at the ends, and replaces line breaks.
func sendable(h store.Header) bool {
	refused := func(r rune) bool { return r <= ' ' || r > '~' || strings.ContainsRune("\"()/,:;<=>?@[\\]{}", r) }
	return h.Name != "" && h.Name != driver.PackedHeaders && !strings.ContainsFunc(h.Name, refused) &&
		textproto.TrimString(h.Value) == h.Value && !strings.ContainsAny(h.Value, "\r\n")
}
