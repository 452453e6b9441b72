package semelpulsar

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"

	"github.com/semel-go/semel/consume/driver"
	"github.com/semel-go/semel/outbox"
	"github.com/semel-go/semel/store"
)

func newSink(t *testing.T, client pulsar.Client) *Sink {
	t.Helper()
	s, err := NewSink(client)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// sendOne publishes one message and returns its answer.
func sendOne(ctx context.Context, s *Sink, m outbox.Message) (answered error) {
	s.Publish(ctx, []outbox.Message{m}, func(_ int, err error) { answered = err })
	return answered
}

func TestNewSink_NoClient_Error(t *testing.T) {
	t.Parallel()
	if _, err := NewSink(nil); err == nil {
		t.Error("NewSink of no client returned no error")
	}
}

// A batch holds messages of several keys, which a key-shared subscription would mix.
func TestSink_Message_HasKeyAndHeadersAndIsInNoBatch(t *testing.T) {
	t.Parallel()
	client := &fakeClient{}
	s := newSink(t, client)
	for range 2 {
		m := outbox.Message{Topic: "orders", OrderKey: "ann", ID: "1", Headers: []store.Header{{Name: "color", Value: "blue"}}, Body: []byte("body")}
		if err := sendOne(t.Context(), s, m); err != nil {
			t.Fatal(err)
		}
	}
	if len(client.producers) != 1 || len(client.producers[0].sent) != 2 {
		t.Fatalf("%d producers, want 1 for both messages", len(client.producers))
	}
	p := client.producers[0]
	if p.opt.Topic != "persistent://public/default/orders" || !p.opt.DisableBatching || p.opt.SendTimeout != sendTimeout {
		t.Errorf("the producer's options are %+v", p.opt)
	}
	if m := p.sent[0]; m.Key != "ann" || string(m.Payload) != "body" || m.Properties[outbox.KeyHeader] != "1" || m.Properties["color"] != "blue" {
		t.Errorf("the message is %+v", m)
	}
}

// The client does not connect a producer again that it has closed.
func TestSink_ProducerClosed_NextMessageGetsAnother(t *testing.T) {
	t.Parallel()
	for _, closed := range []error{pulsar.ErrProducerClosed, errors.Join(pulsar.ErrTopicNotfound, errors.New("TopicNotFound")), pulsar.ErrTopicTerminated, pulsar.ErrProducerFenced} {
		client := &fakeClient{}
		s := newSink(t, client)
		m := outbox.Message{Topic: "orders", ID: "1"}
		if err := sendOne(t.Context(), s, m); err != nil {
			t.Fatal(err)
		}
		client.producers[0].err = closed
		if err := sendOne(t.Context(), s, m); !errors.Is(err, closed) || outbox.IsPoison(err) {
			t.Errorf("error %v, want %v", err, closed)
		}
		if err := sendOne(t.Context(), s, m); err != nil || len(client.producers) != 2 {
			t.Errorf("%d producers, want 2: %v", len(client.producers), err)
		}
	}
}

// The producers of the copies, too.
func TestForward_ProducerClosed_NextTryGetsAnother(t *testing.T) {
	t.Parallel()
	s, client := subscribed(t, Options{Type: pulsar.Shared})
	client.last().send(entryMessage(1, 0))
	d := take(t, s, 1)[0]
	for _, p := range client.producers {
		p.err = pulsar.ErrProducerClosed // those that are made later work
	}
	if err := d.Forward(t.Context(), driver.DeadLetter, nil); !errors.Is(err, pulsar.ErrProducerClosed) {
		t.Errorf("the first try: %v", err)
	}
	if err := d.Forward(t.Context(), driver.DeadLetter, nil); err != nil || len(client.producers) != 3 {
		t.Errorf("the second try: %d producers, want 3: %v", len(client.producers), err)
	}
}

// A copy of a delivery that is over is not tried again: the message has come again.
func TestForward_SubscribedAgain_IsErrGone(t *testing.T) {
	t.Parallel()
	s, client := subscribed(t, Options{Type: pulsar.Exclusive})
	client.last().send(entryMessage(1, 0))
	d := take(t, s, 1)[0]
	s.link.Load().abandon()
	if err := d.Forward(t.Context(), driver.DeadLetter, nil); !errors.Is(err, driver.ErrGone) {
		t.Errorf("got %v, want ErrGone", err)
	}
}

func TestSink_NoAnswerOrBadTopic_IsToldApart(t *testing.T) {
	t.Parallel()
	client := &fakeClient{}
	s := newSink(t, client)
	if err := sendOne(t.Context(), s, outbox.Message{Topic: "orders", ID: "1"}); err != nil {
		t.Fatal(err)
	}
	for err, poison := range map[error]bool{pulsar.ErrMessageTooLarge: true, pulsar.ErrMetaTooLarge: true, pulsar.ErrSendTimeout: false, errors.New("other"): false} {
		client.producers[0].err = err
		if got := sendOne(t.Context(), s, outbox.Message{Topic: "orders", ID: "1"}); !errors.Is(got, err) || outbox.IsPoison(got) != poison {
			t.Errorf("%v: got %v, want poison %v", err, got, poison)
		} else if poison != strings.Contains(got.Error(), "maxMessageSize, which is 5 MiB by default; keep the body elsewhere") {
			t.Errorf("the error is %v", got)
		}
	}
	if len(client.producers) != 1 {
		t.Errorf("%d producers, want 1", len(client.producers))
	}
	for _, topic := range []string{"", "a/b", "non-persistent://public/default/orders"} {
		if err := sendOne(t.Context(), s, outbox.Message{Topic: topic, ID: "1"}); !outbox.IsPoison(err) {
			t.Errorf("topic %q: %v, want poison", topic, err)
		}
	}
}

// A broker that is away gives no answer for the partitions that it has.
func TestSink_OneTopicGivesNoAnswer_OthersAreSent(t *testing.T) {
	t.Parallel()
	client := &fakeClient{}
	s := newSink(t, client)
	if err := sendOne(t.Context(), s, outbox.Message{Topic: "silent", ID: "first"}); err != nil {
		t.Fatal(err)
	}
	client.producers[0].hang = true
	messages := make([]outbox.Message, 200)
	for i := range messages {
		messages[i] = outbox.Message{Topic: "silent", ID: fmt.Sprint(i)}
	}
	messages[len(messages)-1].Topic = "good"
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	s.Publish(ctx, messages, func(i int, err error) {
		if isGood := i == len(messages)-1; isGood != (err == nil) {
			t.Errorf("message %d to %s: %v", i, messages[i].Topic, err)
		} else if isGood {
			cancel()
		}
	})
}

func TestSink_Closed_SendsNothing(t *testing.T) {
	t.Parallel()
	client := &fakeClient{}
	s := newSink(t, client)
	m := outbox.Message{Topic: "orders", ID: "1"}
	if err := errors.Join(sendOne(t.Context(), s, m), s.Close(), s.Close()); err != nil {
		t.Fatal(err)
	}
	if err := sendOne(t.Context(), s, m); err == nil || outbox.IsPoison(err) || len(client.producers[0].sent) != 1 {
		t.Errorf("after Close: %v", err)
	}
}
