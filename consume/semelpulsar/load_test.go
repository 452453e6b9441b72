package semelpulsar_test

import (
	"context"
	"iter"
	"os"
	"sync/atomic"
	"testing"

	"github.com/apache/pulsar-client-go/pulsar"
	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/consume/consumetest"
	"github.com/semel-go/semel/consume/semelpulsar/pulsartest"
)

// publish sends messages in batches.
func publish(ctx context.Context, to consumetest.Broker, messages iter.Seq[consume.Message]) error {
	b := to.(*broker)
	p, err := b.client.CreateProducer(pulsar.ProducerOptions{Topic: b.topic, BatcherBuilderType: pulsar.KeyBasedBatchBuilder, BatchingMaxMessages: 50})
	if err != nil {
		return err
	}
	defer p.Close()
	var failed atomic.Pointer[error]
	for m := range messages {
		p.SendAsync(ctx, producerMessage(&m), func(_ pulsar.MessageID, _ *pulsar.ProducerMessage, err error) {
			if err != nil {
				failed.Store(&err)
			}
		})
	}
	if err := p.FlushWithCtx(ctx); err != nil {
		return err
	}
	if err := failed.Load(); err != nil {
		return *err
	}
	return nil
}

// loaded is the harness of a load. A shared subscription has no order.
func loaded(t *testing.T, server *pulsartest.Server, kind pulsar.SubscriptionType) consumetest.Harness {
	t.Helper()
	h := harness(kind)
	h.Open = func(t testing.TB) consumetest.Broker {
		b := openOn(t, server, kind)
		if kind == pulsar.Shared {
			b.opt.OrderKey = nil
		}
		return b
	}
	return h
}

// Members lose their connections; in examples/internal/campaign they are processes, which are
// killed. The order of each key is kept in an exclusive subscription. In the others the broker itself
// may send messages out of order after a death: see docs/decisions/0110.
func TestCampaign_MembersDie_EachKeyHasOneOutcome(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds of both cores")
	}
	messages, kills := consumetest.LoadSize(1000, 4)
	for name, kind := range kinds {
		t.Run(name, func(t *testing.T) {
			consumetest.ReportLoad(t, "Pulsar, "+name+" subscription", loaded(t, pulsartest.Shared(t), kind), consumetest.Load{
				Messages: messages, Kills: kills, Publish: publish, Ordered: kind == pulsar.Exclusive,
			})
		})
	}
}

// The broker is killed, too, and comes back.
func TestCampaign_BrokerKilled_EachKeyHasOneOutcome(t *testing.T) {
	if testing.Short() || os.Getenv("SEMEL_EVIDENCE") != "1" {
		t.Skip("starts brokers of its own, which takes a minute: SEMEL_EVIDENCE=1")
	}
	server := pulsartest.Private(t)
	for name, kind := range kinds {
		t.Run(name, func(t *testing.T) {
			consumetest.ReportLoad(t, "Pulsar, "+name+" subscription, and the broker is killed, too", loaded(t, server, kind), consumetest.Load{
				Messages: 10_000, Kills: 3, Publish: publish, Ordered: kind == pulsar.Exclusive,
				Disturb: func() {
					server.Kill()
					if err := server.Start(); err != nil {
						t.Fatal(err)
					}
				},
			})
		})
	}
}

func TestCampaign_ControlNoDeduplication_DuplicatesTakeEffect(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds of both cores")
	}
	messages, _ := consumetest.LoadSize(10_000, 10)
	consumetest.ReportLoad(t, "Pulsar", loaded(t, pulsartest.Shared(t), pulsar.Shared), consumetest.Load{Messages: messages / 10, Publish: publish, Unprotected: true})
}

// Consumers come and go while handlers fail and are slow.
func TestCampaign_Restarts_LoseNothing(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds of both cores")
	}
	consumetest.ReportRestarts(t, "Pulsar, key-shared subscription", harness(pulsar.KeyShared), 6, nil)
}

func TestOneStuck_OthersGoOn(t *testing.T) {
	for _, name := range []string{"key-shared", "failover"} {
		t.Run(name, func(t *testing.T) {
			consumetest.ReportStuck(t, "Pulsar, "+name+" subscription", harness(kinds[name]))
		})
	}
}
