package natstest

import (
	"context"
	"iter"
	"testing"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/consume/consumetest"
)

// publish sends messages without a wait for each answer.
func publish(ctx context.Context, to consumetest.Broker, messages iter.Seq[consume.Message]) error {
	b := to.(*broker)
	var sent []jetstream.PubAckFuture
	for m := range messages {
		f, err := b.js.PublishMsgAsync(natsMsg(b, &m), jetstream.WithStallWait(patience))
		if err != nil {
			return err
		}
		sent = append(sent, f)
	}
	for _, f := range sent {
		select {
		case <-f.Ok():
		case err := <-f.Err():
			return err
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

func loaded() consumetest.Harness {
	h := harness()
	h.Open = func(t testing.TB) consumetest.Broker {
		return open(t, func(c *jetstream.ConsumerConfig) { c.MaxAckPending = 10_000 })
	}
	return h
}

func TestCampaign_MembersDie_EachKeyHasOneOutcome(t *testing.T) {
	messages, kills := consumetest.LoadSize(4000, 10)
	consumetest.ReportLoad(t, "NATS JetStream", loaded(), consumetest.Load{Messages: messages, Kills: kills, Publish: publish})
}

func TestCampaign_ControlNoDeduplication_DuplicatesTakeEffect(t *testing.T) {
	messages, _ := consumetest.LoadSize(4000, 10)
	consumetest.ReportLoad(t, "NATS JetStream", loaded(), consumetest.Load{Messages: messages / 10, Publish: publish, Unprotected: true})
}
