package semelotel_test

import (
	"context"
	"errors"
	"maps"
	"testing"
	"time"

	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/consume/driver"
	"github.com/semel-go/semel/semelotel"
	"github.com/semel-go/semel/store"
)

// queue is a source that delivers its messages and then waits. settled is called after
// each message.
type queue struct {
	messages []*consume.Message
	settled  func()
}

func (q *queue) Info(context.Context) (driver.Info, error) { return driver.Info{}, nil }

func (q *queue) Next(ctx context.Context, _ int) ([]driver.Delivery, error) {
	if len(q.messages) == 0 {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	m := q.messages[0]
	q.messages = q.messages[1:]
	return []driver.Delivery{&delivery{q, m}}, nil
}

func (q *queue) Stop(context.Context) error { return nil }

type delivery struct {
	queue   *queue
	message *consume.Message
}

func (d *delivery) Message() *consume.Message                                    { return d.message }
func (d *delivery) Ack(context.Context) error                                    { d.queue.settled(); return nil }
func (d *delivery) Nak(context.Context, time.Duration) error                     { d.queue.settled(); return nil }
func (d *delivery) Forward(context.Context, driver.Action, []store.Header) error { return nil }
func (d *delivery) Extend(context.Context) error                                 { return nil }
func (d *delivery) Revoked() <-chan struct{}                                     { return nil }

func TestConsumer_Messages_CountedAndLinked(t *testing.T) {
	w := newWorld(t, semelotel.Options{})
	run := w.guard(t, nil, semel.Options{Retention: consume.DefaultRetention})
	var logged []string
	c, err := consume.New(run, consume.Keyed("billing", consume.FromHeader(consume.KeyHeader)),
		func(_ context.Context, _ *semel.Execution, m *consume.Message) error {
			if string(m.Body) == "wrong" {
				return semel.Final(errors.New("no such account"))
			}
			return nil
		},
		&consume.Options{Concurrency: 1, MaxDeliveries: 3, Observe: w.tel.ObserveMessages(func(_ context.Context, e consume.Event) {
			logged = append(logged, e.Kind.String())
		})})
	if err != nil {
		t.Fatal(err) // MaxDeliveries needs no Starts, because the Runner wraps a Guard
	}
	message := func(key, body string) *consume.Message {
		return &consume.Message{Body: []byte(body), Headers: []store.Header{{Name: consume.KeyHeader, Value: key}}, Origin: consume.Origin{Topic: "orders", ID: key}}
	}
	ctx, stop := context.WithCancel(t.Context())
	left := 3
	q := &queue{messages: []*consume.Message{message("canary-1", "b"), message("canary-1", "b"), message("canary-2", "wrong")}}
	q.settled = func() {
		if left--; left == 0 {
			stop()
		}
	}
	if err := c.Serve(ctx, q); err != nil {
		t.Fatal(err)
	}
	spans := w.take()
	if len(spans) != 3 {
		t.Fatalf("%d spans of 3 messages", len(spans))
	}
	byOutcome := map[string]tracetest.SpanStub{}
	for _, s := range spans {
		byOutcome[value(s.Attributes, "semel.outcome")] = s
	}
	first, duplicate := byOutcome["executed"], byOutcome["replayed"]
	if l := duplicate.Links; duplicate.Name != "semel billing" || len(l) != 1 || l[0].SpanContext.SpanID() != first.SpanContext.SpanID() {
		t.Errorf("the duplicate's span is %q with the links %+v, want one to %v", duplicate.Name, l, first.SpanContext)
	}
	want := map[string]float64{"ack done": 1, "ack duplicate": 1, "dead-letter failed": 1}
	for _, name := range []string{"semel.messages", "semel.message.duration"} {
		if got := w.metric(t, name, "semel.message.action", "semel.message.reason"); !maps.Equal(got, want) {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
	if got := w.metric(t, "semel.message.events", "semel.message.event"); got["settled"] != 3 {
		t.Errorf("semel.message.events is %v, want 3 settled", got)
	}
	if len(logged) < 6 {
		t.Errorf("the next observer got %q, want each event", logged)
	}
}
