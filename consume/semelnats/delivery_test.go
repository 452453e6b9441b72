package semelnats

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/semel-go/semel/consume"
)

// spoken is a message that notes what the server is told of it.
type spoken struct {
	jetstream.Msg
	words []string
	err   error // of each word
}

func (m *spoken) say(word string) error {
	m.words = append(m.words, word)
	return m.err
}

func (m *spoken) Ack() error                         { return m.say("ack, unanswered") }
func (m *spoken) DoubleAck(context.Context) error    { return m.say("ack") }
func (m *spoken) Nak() error                         { return m.say("nak, unanswered") }
func (m *spoken) NakWithDelay(d time.Duration) error { return m.say(fmt.Sprint("nak, unanswered ", d)) }
func (m *spoken) Reply() string                      { return "reply" }
func (m *spoken) InProgress() error                  { return m.say("in progress") }
func (m *spoken) Term() error                        { return m.say("term") }
func (m *spoken) TermWithReason(why string) error    { return m.say("term " + why) }

// The server answers an ack and a nak. A retry comes again after its delay.
// InProgress keeps a message from other members.
func TestDelivery_EachMethod_SendsItsCommand(t *testing.T) {
	for name, c := range map[string]struct {
		do   func(d *delivery) error
		want string
	}{
		"done":       {do: func(d *delivery) error { return d.Ack(t.Context()) }, want: "ack"},
		"a retry":    {do: func(d *delivery) error { return d.Nak(t.Context(), 5*time.Second) }, want: `-NAK {"delay": 5000000000} to reply`},
		"given back": {do: func(d *delivery) error { return d.Nak(t.Context(), 0) }, want: "-NAK to reply"},
		"in work":    {do: func(d *delivery) error { return d.Extend(t.Context()) }, want: "in progress"},
	} {
		m := &spoken{}
		s := &Source{request: func(_ context.Context, subject, text string) error { return m.say(text + " to " + subject) }}
		d := &delivery{s: s, m: m, own: &consume.Message{}}
		if err := c.do(d); err != nil || !slices.Equal(m.words, []string{c.want}) {
			t.Errorf("%s: the server is told %q, %v; want %q", name, m.words, err, c.want)
		}
		m.err = errors.New("no server")
		if err := c.do(d); !errors.Is(err, m.err) {
			t.Errorf("%s that the server does not hear: %v", name, err)
		}
	}
}

// A message that was settled before may be acked again, and extended by a
// goroutine that does not know of it.
func TestDelivery_SettledBefore_IsNoError(t *testing.T) {
	d := &delivery{s: &Source{}, m: &spoken{err: jetstream.ErrMsgAlreadyAckd}, own: &consume.Message{}}
	if err := d.Ack(t.Context()); err != nil {
		t.Errorf("Ack: %v", err)
	}
	if err := d.Extend(t.Context()); err != nil {
		t.Errorf("Extend: %v", err)
	}
}
