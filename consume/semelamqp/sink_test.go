package semelamqp_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/semel-go/semel/consume/semelamqp"
	"github.com/semel-go/semel/consume/semelamqp/amqptest"
	"github.com/semel-go/semel/outbox"
	"github.com/semel-go/semel/outbox/outboxtest"
	"github.com/semel-go/semel/store"
)

func sinkTo(t *testing.T, o *semelamqp.SinkOptions) *semelamqp.Sink {
	t.Helper()
	sink, err := semelamqp.NewSink(amqptest.Shared(t).URL(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = sink.Close() })
	return sink
}

func TestSink_Messages_ArriveInOrderForEachKey(t *testing.T) {
	b := open(t, semelamqp.Quorum)
	outboxtest.RunSink(t, outboxtest.Destination{Sink: sinkTo(t, nil), Topic: b.name, Arrived: func(t testing.TB, _ int) (all []outboxtest.Arrived) {
		for _, d := range drain(t, b.ch, b.name) {
			a := outboxtest.Arrived{Body: d.Body}
			for name, v := range d.Headers {
				a.Headers = append(a.Headers, store.Header{Name: name, Value: fmt.Sprint(v)})
				if name == semelamqp.OrderKeyHeader {
					a.OrderKey = fmt.Sprint(v)
				}
			}
			if d.MessageId != a.ID() || d.DeliveryMode != 2 {
				t.Errorf("message-id %q, delivery mode %d", d.MessageId, d.DeliveryMode)
			}
			all = append(all, a)
		}
		return all
	}})
}

func TestSink_Exchange_RoutesByTopic(t *testing.T) {
	b := open(t, semelamqp.Quorum)
	exchange := b.name + ".exchange"
	if err := b.ch.ExchangeDeclare(exchange, "topic", true, true, false, false, nil); err != nil {
		t.Fatal(err)
	}
	if err := b.ch.QueueBind(b.name, "orders.*", exchange, false, nil); err != nil {
		t.Fatal(err)
	}
	sink := sinkTo(t, &semelamqp.SinkOptions{Exchange: exchange})
	sink.Publish(t.Context(), []outbox.Message{{Topic: "orders.new", ID: "1"}, {Topic: "mails", ID: "2"}}, func(i int, err error) {
		if (i == 0) != (err == nil) || outbox.IsPoison(err) {
			t.Errorf("message %d: %v; no queue takes the second", i, err)
		}
	})
	if ds := drain(t, b.ch, b.name); len(ds) != 1 || ds[0].MessageId != "1" {
		t.Errorf("arrived: %v", ds)
	}
}

// thawed is the context of a publisher that freezes after it has begun to publish, past
// the end of its lease: no timer has run, so Done is not closed.
type thawed struct {
	context.Context
	looks atomic.Int64
}

func (c *thawed) Err() error {
	if c.looks.Add(1) > 1 {
		return context.DeadlineExceeded
	}
	return nil
}

func TestSink_LeaseIsOverBeforeTransmission_SendsNothing(t *testing.T) {
	b := open(t, semelamqp.Quorum)
	sink := sinkTo(t, nil)
	for i, id := range []string{"in time", "late"} { // the first makes the connection
		ctx := t.Context()
		if i == 1 {
			ctx = &thawed{Context: ctx}
		}
		sink.Publish(ctx, []outbox.Message{{Topic: b.name, ID: id}}, func(_ int, err error) {
			if (err == nil) != (i == 0) {
				t.Errorf("%s: %v", id, err)
			}
		})
	}
	if ds := drain(t, b.ch, b.name); len(ds) != 1 || ds[0].MessageId != "in time" {
		t.Errorf("arrived: %v", ds)
	}
}

func TestSink_BrokerIsAway_IsLater(t *testing.T) {
	sink, err := semelamqp.NewSink("amqp://guest:guest@127.0.0.1:1/", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer sink.Close()
	sink.Publish(t.Context(), []outbox.Message{{Topic: "q", ID: "1"}}, func(_ int, err error) {
		if err == nil || outbox.IsPoison(err) {
			t.Errorf("error %v", err)
		}
	})
}
