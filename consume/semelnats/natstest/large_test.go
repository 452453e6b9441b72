package natstest

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/consume/driver"
	"github.com/semel-go/semel/store"
)

// bulky is a handler that fails with much to say.
func bulky(context.Context, *semel.Execution, *consume.Message) error {
	return semel.Final(errors.New(strings.Repeat("no ", 1000)))
}

// A letter is larger than its message. One that would be too large for the
// server goes without the text of the error.
func TestForward_LargeMessage_OmitsTheErrorText(t *testing.T) {
	b := open(t, nil)
	m := keyed("k")
	m.Body = []byte(strings.Repeat("x", int(b.js.Conn().MaxPayload())-1500))
	b.Publish(t, m)
	serve(t, consumer(t, bulky, nil), b.Connect(t))
	until(t, "settled", func() bool { return b.Unsettled(t) == 0 })
	l := b.Copies(t, driver.DeadLetter)
	if len(l) != 1 || len(l[0].Body) != len(m.Body) {
		t.Fatalf("%d letters", len(l))
	}
	if text, ok := l[0].Header(driver.LetterError); ok {
		t.Errorf("it has the text %.20q", text)
	}
	if why, _ := l[0].Header(driver.LetterReason); why != string(driver.ReasonFailed) {
		t.Errorf("its reason is %q", why)
	}
}

// The stream of the letters has limits, too: of its own, and one of all streams
// on headers. A letter that they refuse goes without the text.
func TestForward_StreamLimit_OmitsTheErrorText(t *testing.T) {
	for name, c := range map[string]struct{ body, header, most int }{
		"of a message":  {body: 5000, most: 6500},
		"of the header": {header: 64000, most: -1},
	} {
		t.Run(name, func(t *testing.T) {
			b := open(t, nil)
			if _, err := b.js.UpdateStream(t.Context(), jetstream.StreamConfig{
				Name: b.name + "-copies", Subjects: []string{b.name + ".dead", b.name + ".quarantine"}, MaxMsgSize: int32(c.most),
			}); err != nil {
				t.Fatal(err)
			}
			m := keyed("k")
			m.Body = []byte(strings.Repeat("x", c.body))
			m.Headers = append(m.Headers, store.Header{Name: "trace", Value: strings.Repeat("x", c.header)})
			b.Publish(t, m)
			var refused atomic.Int64
			serve(t, consumer(t, bulky, &consume.Options{Observe: func(_ context.Context, e consume.Event) {
				if e.Kind == consume.EventSettleFailed {
					refused.Add(1)
					t.Log(e.Err)
				}
			}}), b.Connect(t))
			until(t, "settled, or refused", func() bool { return b.Unsettled(t) == 0 || refused.Load() > 0 })
			if l := b.Copies(t, driver.DeadLetter); len(l) != 1 || len(l[0].Body) != c.body {
				t.Errorf("%d letters", len(l))
			}
		})
	}
}

// A message for whose letter there is no room at all is not acked: it waits,
// without haste and in nobody's way, until the server's limit is raised.
func TestForward_LetterRefused_KeepsTheMessage(t *testing.T) {
	b := open(t, nil)
	m := keyed("k")
	m.Body = []byte(strings.Repeat("x", int(b.js.Conn().MaxPayload())-60))
	m.OrderKey = ""
	b.Publish(t, m)
	var refused, ran atomic.Int64
	serve(t, consumer(t, func(ctx context.Context, x *semel.Execution, m *consume.Message) error {
		if ran.Add(1); m.Key == "k" {
			return bulky(ctx, x, m)
		}
		return nil
	}, &consume.Options{Observe: func(_ context.Context, e consume.Event) {
		if e.Kind == consume.EventSettleFailed && strings.Contains(e.Err.Error(), "payload") {
			refused.Add(1)
		}
	}}), b.Connect(t))
	until(t, "refused", func() bool { return refused.Load() >= 3 })
	b.Publish(t, keyed("next"))
	until(t, "the next run", func() bool { return ran.Load() == 2 })
	<-time.After(time.Second)
	if n := refused.Load(); n > 12 {
		t.Errorf("it was tried %d times", n)
	}
	until(t, "the next settled", func() bool { return b.Unsettled(t) == 1 })
}
