package semelamqp_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/consume/driver"
	"github.com/semel-go/semel/consume/semelamqp"
	"github.com/semel-go/semel/consume/semelamqp/amqptest"
	"github.com/semel-go/semel/store"
)

// A setup that cannot work is an error of Serve at its start, with the next
// step.
func TestServe_InvalidSetup_IsRefused(t *testing.T) {
	s := amqptest.Shared(t)
	b := open(t, semelamqp.Classic)
	const nobody = "amqp://guest:guest@127.0.0.1:1/"
	for name, c := range map[string]struct {
		url, queue string
		o          semelamqp.Options
		want       []string
	}{
		"an unknown queue":    {queue: "nowhere", want: []string{`queue "nowhere"`, "does not exist", "Options.Declare"}},
		"wrong credentials":   {url: strings.Replace(s.URL(), "guest:guest", "guest:wrong", 1), want: []string{"username or password"}},
		"an unknown vhost":    {url: s.URL() + "nowhere", want: []string{"vhost"}},
		"nobody there":        {url: nobody, want: []string{"no connection to the broker", "refused"}},
		"no letters":          {o: semelamqp.Options{Declare: semelamqp.DeclareNothing, Quarantine: "nowhere"}, want: []string{`queue "nowhere"`, "does not exist"}},
		"another kind":        {o: semelamqp.Options{Declare: semelamqp.DeclareAll, Kind: semelamqp.Quorum}, want: []string{"exists with other arguments", "Options.Kind"}},
		"another's arguments": {o: semelamqp.Options{Declare: semelamqp.DeclareAll, Kind: semelamqp.Classic, SingleActive: true}, want: []string{"exists with other arguments"}},
	} {
		if c.url == "" {
			c.url = s.URL()
		}
		if c.queue == "" {
			c.queue = b.name
		}
		src, err := semelamqp.New(c.url, c.queue, &c.o)
		if err != nil {
			t.Fatal(err)
		}
		err = (&journal{}).consumer(t, bad, consume.Options{}).Serve(t.Context(), src)
		for _, want := range c.want {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want an error of %q", name, err, want)
			}
		}
		if err != nil && strings.Contains(err.Error(), "wrong@") {
			t.Errorf("%s: the error holds the password: %v", name, err)
		}
		if err := src.Close(); err != nil {
			t.Errorf("%s: Close: %v", name, err)
		}
		if _, err := src.Next(t.Context(), 1); !errors.Is(err, driver.ErrClosed) {
			t.Errorf("%s: Next after Close: %v", name, err)
		}
	}
}

// A broker that takes the connection and says nothing holds up no shutdown.
func TestServe_BrokerSilent_EndsWithItsContext(t *testing.T) {
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	src, err := semelamqp.New(fmt.Sprintf("amqp://guest:guest@%s/", l.Addr()), "q", nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		if c, err := l.Accept(); err == nil {
			defer c.Close()
			cancel()
			<-t.Context().Done()
		}
	}()
	if _, err := src.Info(ctx); err == nil {
		t.Error("there is no error")
	}
	if err := src.Close(); err != nil {
		t.Error(err)
	}
}

func TestServe_InvalidMessages_AreDeadLettered(t *testing.T) {
	b := open(t, semelamqp.Quorum)
	j := &journal{}
	big := keyed("k0")
	big.Body = bytes.Repeat([]byte("0123456789abcdef"), 3<<16) // 3 MiB, in many frames
	event := func(hs ...store.Header) consume.Message { return consume.Message{Body: []byte("{}"), Headers: hs} }
	b.Publish(t,
		big,
		consume.Message{Body: []byte("no key")},
		event(store.Header{Name: "cloudEvents:specversion", Value: "1.0"}, store.Header{Name: "cloudEvents:id", Value: "7"}), // no source
		event(store.Header{Name: "cloudEvents:specversion", Value: "1.0"}, store.Header{Name: "cloudEvents:id", Value: "7"}, store.Header{Name: "cloudEvents:source", Value: "/s"}),
		keyed(strings.Repeat("k", 256)),
	)
	p := amqp.Publishing{ContentType: "application/cloudevents+json", Body: []byte("{nonsense")}
	c, err := b.ch.PublishWithDeferredConfirm("", b.name, true, false, p)
	if err != nil || !c.Wait() {
		t.Fatal(err)
	}
	serve(t, j.consumer(t, func(ctx context.Context, x *semel.Execution, m *consume.Message) error {
		if m.Key == "k0" && !bytes.Equal(m.Body, big.Body) {
			t.Errorf("the big one came with %d bytes", len(m.Body))
		}
		return j.plain(ctx, x, m)
	}, consume.Options{}), b.connect(t))
	settled(t, b)
	if got, want := fmt.Sprint(reasons(t, b, driver.DeadLetter)), "[invalid_call invalid_call invalid_call no_key]"; got != want {
		t.Errorf("the dead letters are for %s, want %s", got, want)
	}
	if j.total() != 2 {
		t.Errorf("%d ran, want the big one and the good event", j.total())
	}
}

// Headers are sent in one frame, and the broker ends the connection of who
// sends more.
func TestForward_ManyHeaders_OmitsTheErrorText(t *testing.T) {
	b := open(t, semelamqp.Classic)
	j := &journal{}
	m := keyed("k0")
	m.Headers = append(m.Headers, store.Header{Name: "long", Value: strings.Repeat("v", 129_700)})
	b.Publish(t, m)
	serve(t, j.consumer(t, func(context.Context, *semel.Execution, *consume.Message) error {
		return semel.Final(errors.New(strings.Repeat("no ", 1000)))
	}, consume.Options{}), b.connect(t))
	settled(t, b)
	l := b.Copies(t, driver.DeadLetter)
	if len(l) != 1 {
		t.Fatalf("%d dead letters", len(l))
	}
	if text, ok := l[0].Header(driver.LetterError); ok {
		t.Errorf("it has the text %.20q", text)
	}
	if why, _ := l[0].Header(driver.LetterReason); why != string(driver.ReasonFailed) {
		t.Errorf("its reason is %q", why)
	}
}

// A message whose letter has no room at all is kept, without haste, and holds
// up no other.
func TestForward_TooManyHeaders_KeepsTheMessage(t *testing.T) {
	b := open(t, semelamqp.Classic)
	j := &journal{}
	m := keyed("k0")
	m.Headers = append(m.Headers, store.Header{Name: "long", Value: strings.Repeat("v", 130_700)})
	b.Publish(t, m)
	serve(t, j.consumer(t, bad, consume.Options{}), b.connect(t))
	refused := func(e consume.Event) bool { return e.Err != nil && strings.Contains(e.Err.Error(), "frame_max") }
	until(t, "refused", func() bool { return j.saw(consume.EventSettleFailed, refused) >= 3 })
	b.Publish(t, keyed("k1"))
	until(t, "the next one is settled", func() bool { return len(b.Copies(t, driver.DeadLetter)) == 1 })
	<-time.After(time.Second)
	if n := j.saw(consume.EventSettleFailed, refused); n > 12 {
		t.Errorf("it was tried %d times", n)
	}
	if n := b.Unsettled(t); n != 1 {
		t.Errorf("%d messages are unsettled, want 1", n)
	}
}

// The client closes the connection when a message comes whose headers are nested deeply, and
// the broker puts the message back. Those before it are handled, and the error says how to
// remove it.
func TestNext_HeadersNestedTooDeeply_EarlierMessagesAreServed(t *testing.T) {
	b := open(t, semelamqp.Quorum)
	b.opt.OrderKey = nil
	b.Publish(t, keyed("a"), keyed("b"))
	deep := amqp.Table{}
	for range 40 {
		deep = amqp.Table{"x": deep}
	}
	c, err := b.ch.PublishWithDeferredConfirm("", b.name, false, false, amqp.Publishing{Headers: deep, Body: []byte("deep")})
	if err != nil || !c.Wait() {
		t.Fatalf("the broker does not take it: %v", err)
	}
	b.Publish(t, keyed("later"))
	j := &journal{}
	serve(t, j.consumer(t, func(context.Context, *semel.Execution, *consume.Message) error { return nil }, consume.Options{}), b.connect(t))
	until(t, "two messages settled", func() bool {
		return j.saw(consume.EventSettled, func(consume.Event) bool { return true }) >= 2
	})
	until(t, "the way out named", func() bool {
		return j.saw(consume.EventReceiveFailed, func(e consume.Event) bool {
			return strings.Contains(e.Err.Error(), "rabbitmqadmin get queue="+b.name+" ")
		}) > 0
	})
}
