package semelnats

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/consume/driver"
)

// messageID names a message by its time as well as its number, for a stream
// that was made anew counts from 1 again.
func messageID(stream string, seq uint64, at time.Time) string {
	return fmt.Sprintf("%s/%d@%d", stream, seq, at.UnixNano())
}

// message is a message as package consume sees it.
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

// headers are in the order of their names: NATS keeps none.
func headers(h nats.Header) (hs []semel.Header) {
	for _, name := range slices.Sorted(maps.Keys(h)) {
		for _, value := range h[name] {
			hs = append(hs, semel.Header{Name: name, Value: value})
		}
	}
	return hs
}

// control is how the headers begin that tell the server what to do with a
// message. A copy must not repeat them.
const control = "nats-"

// letter is a copy of a message. Its id lets the server drop it when it is
// sent again; the durable is in it, for the server compares all of a stream.
func letter(subject, durable string, hs []semel.Header, body []byte) *nats.Msg {
	m := nats.NewMsg(subject)
	m.Data = body
	for _, h := range hs {
		switch {
		case strings.HasPrefix(strings.ToLower(h.Name), control):
		default:
			m.Header[h.Name] = append(m.Header[h.Name], h.Value)
		}
		if h.Name == driver.LetterID {
			m.Header.Set(jetstream.MsgIDHeader, durable+"/"+h.Value)
		}
	}
	return m
}
