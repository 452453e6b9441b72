package semelnats

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/consume/driver"
	"github.com/semel-go/semel/store"
)

// fakeMsg is a message without a server.
type fakeMsg struct {
	jetstream.Msg
	meta *jetstream.MsgMetadata
	msg  *nats.Msg
}

func (m *fakeMsg) Data() []byte         { return m.msg.Data }
func (m *fakeMsg) Headers() nats.Header { return m.msg.Header }
func (m *fakeMsg) Subject() string      { return m.msg.Subject }

func (m *fakeMsg) Metadata() (*jetstream.MsgMetadata, error) {
	if m.meta == nil {
		return nil, jetstream.ErrNotJSMessage
	}
	return m.meta, nil
}

func TestMessage_HasItsOrigin(t *testing.T) {
	at := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	in := &fakeMsg{
		meta: &jetstream.MsgMetadata{Stream: "ORDERS", Sequence: jetstream.SequencePair{Stream: 42, Consumer: 99}, NumDelivered: 3, Timestamp: at},
		msg:  &nats.Msg{Subject: "orders.new", Data: []byte("b"), Header: nats.Header{"B": {"2", "3"}, "A": {"1"}}},
	}
	m, err := message(in)
	if err != nil {
		t.Fatal(err)
	}
	want := []store.Header{{Name: "A", Value: "1"}, {Name: "B", Value: "2"}, {Name: "B", Value: "3"}}
	if m.Origin != (consume.Origin{Topic: "orders.new", Offset: 42, ID: fmt.Sprintf("ORDERS/42@%d", at.UnixNano())}) || m.Deliveries != 3 || !m.Published.Equal(at) ||
		string(m.Body) != "b" || !slices.Equal(m.Headers, want) {
		t.Errorf("it is %+v", m)
	}
	if _, err := message(&fakeMsg{}); err == nil {
		t.Error("a message that is none of JetStream's is taken")
	}
}

// The headers that tell the server what to do with the message are the
// original's: a copy with its Nats-Msg-Id would be dropped as a duplicate, one
// with its Nats-Expected-Stream refused. The Nats-Msg-Id is packed: see headers.
func TestLetter_ControlHeaders_AreDropped(t *testing.T) {
	l := letter("dead", "group", []store.Header{
		{Name: "Nats-Msg-Id", Value: "original"}, {Name: "nats-expected-stream", Value: "ORDERS"}, {Name: "Nats-TTL", Value: "1s"},
		{Name: "trace", Value: "1"}, {Name: "trace", Value: "2"}, {Name: driver.LetterID, Value: "letter"},
	}, []byte("b"))
	packed := driver.PackHeaders([]store.Header{{Name: "Nats-Msg-Id", Value: "original"}})
	want := nats.Header{"trace": {"1", "2"}, driver.LetterID: {"letter"}, "Nats-Msg-Id": {"group/letter"}, driver.PackedHeaders: {packed}}
	if fmt.Sprint(l.Header) != fmt.Sprint(want) || l.Subject != "dead" || string(l.Data) != "b" {
		t.Errorf("the letter is %v to %q, want %v", l.Header, l.Subject, want)
	}
}

// The client takes a message without a body and with the header Status for a notice of the
// server, so nobody could read such a copy.
func TestLetter_StatusWithoutBody_IsDropped(t *testing.T) {
	status := []store.Header{{Name: "Status", Value: "404"}, {Name: "trace", Value: "1"}}
	for body, want := range map[string]nats.Header{"": {"trace": {"1"}}, "b": {"trace": {"1"}, "Status": {"404"}}} {
		if l := letter("dead", "group", status, []byte(body)); fmt.Sprint(l.Header) != fmt.Sprint(want) {
			t.Errorf("body %q: the headers are %v, want %v", body, l.Header, want)
		}
	}
}

// The client refuses the names, and changes the values. A damaged header of the same name
// is a header as any other.
func TestLetter_HeadersThatClientRefuses_ComeBack(t *testing.T) {
	hs := []store.Header{
		{Name: "a b", Value: "1"}, {Name: "trace/id", Value: "7"}, {Name: "trace/id", Value: "8"}, {Name: "caf\u00e9", Value: "c"},
		{Name: driver.PackedHeaders, Value: "damaged"}, {Name: "ends", Value: " in spaces "}, {Name: "plain", Value: "p"},
	}
	l := letter("dead", "group", hs, nil)
	if l.Header.Get("plain") != "p" || len(l.Header) != 2 {
		t.Errorf("the letter is %v", l.Header)
	}
	got := headers(l.Header)
	for _, all := range [][]store.Header{got, hs} {
		slices.SortStableFunc(all, func(a, b store.Header) int { return strings.Compare(a.Name, b.Name) })
	}
	if !slices.Equal(got, hs) {
		t.Errorf("%q came back as %q", hs, got)
	}
	if got := headers(nats.Header{driver.PackedHeaders: {"damaged"}}); len(got) != 1 || got[0].Value != "damaged" {
		t.Errorf("a damaged header is read as %q", got)
	}
}

func TestNew_InvalidOptionsOrConsumer_IsRefused(t *testing.T) {
	good := jetstream.ConsumerConfig{AckPolicy: jetstream.AckExplicitPolicy, MaxDeliver: -1}
	for name, c := range map[string]struct {
		o      Options
		change func(c *jetstream.ConsumerConfig)
		want   string
	}{
		"nothing":              {},
		"a short wait":         {o: Options{PollWait: time.Millisecond}, want: "PollWait"},
		"a long wait":          {o: Options{PollWait: time.Minute}, want: "PollWait"},
		"acks of all":          {change: func(c *jetstream.ConsumerConfig) { c.AckPolicy = jetstream.AckAllPolicy }, want: "AckPolicy"},
		"no acks":              {change: func(c *jetstream.ConsumerConfig) { c.AckPolicy = jetstream.AckNonePolicy }, want: "AckPolicy"},
		"a limit":              {change: func(c *jetstream.ConsumerConfig) { c.MaxDeliver = 5 }, want: "MaxDeliver"},
		"a limit, as accepted": {o: Options{MaxDeliver: true}, change: func(c *jetstream.ConsumerConfig) { c.MaxDeliver = 5 }},
		"a group by priority":  {change: func(c *jetstream.ConsumerConfig) { c.PriorityPolicy = jetstream.PriorityPolicyPinned }, want: "PriorityPolicy"},
		"headers only":         {change: func(c *jetstream.ConsumerConfig) { c.HeadersOnly = true }, want: "HeadersOnly"},
	} {
		cfg := good
		if c.change != nil {
			c.change(&cfg)
		}
		o := c.o.withDefaults("group")
		err := o.check(&cfg)
		if (err != nil) != (c.want != "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want an error of %q", name, err, c.want)
		}
	}
	o := (*Options)(nil).withDefaults("group")
	if o.DeadLetters != "dead-letters.group" || o.Quarantine != "quarantine.group" || o.PollWait != time.Second {
		t.Errorf("the defaults are %+v", o)
	}
	if _, err := New(nil, nil, nil); err == nil {
		t.Error("New takes nil")
	}
}

func TestAckWait_Backoffs_TakesTheShortest(t *testing.T) {
	for want, c := range map[time.Duration]jetstream.ConsumerConfig{
		30 * time.Second: {AckWait: 30 * time.Second},
		time.Second:      {AckWait: 30 * time.Second, BackOff: []time.Duration{time.Minute, time.Second}},
	} {
		if got := ackWait(&c); got != want {
			t.Errorf("%+v: %v, want %v", c, got, want)
		}
	}
}

func TestIsDeleted_EachError_OnlyDeletionsCount(t *testing.T) {
	for _, err := range []error{jetstream.ErrConsumerDeleted, jetstream.ErrConsumerNotFound, jetstream.ErrStreamNotFound} {
		if !isDeleted(err) {
			t.Errorf("%v: does not count", err)
		}
	}
	for _, err := range []error{nil, nats.ErrTimeout, nats.ErrNoResponders} {
		if isDeleted(err) {
			t.Errorf("%v: counts", err)
		}
	}
}
