package semelsqs_test

import (
	"context"
	"fmt"
	"iter"
	"strconv"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/consume/consumetest"
)

// publish sends messages in batches of ten, the most that SQS takes.
func publish(ctx context.Context, to consumetest.Broker, messages iter.Seq[consume.Message]) error {
	b := to.(*broker)
	var batch []types.SendMessageBatchRequestEntry
	flush := func() error {
		if len(batch) == 0 {
			return nil
		}
		out, err := b.client.SendMessageBatch(ctx, &sqs.SendMessageBatchInput{QueueUrl: &b.queue, Entries: batch})
		if err != nil {
			return err
		}
		if len(out.Failed) > 0 {
			return fmt.Errorf("SendMessageBatch: refused %d of %d messages", len(out.Failed), len(batch))
		}
		batch = nil
		return nil
	}
	for m := range messages {
		in, id := b.sending(&m), strconv.Itoa(len(batch))
		batch = append(batch, types.SendMessageBatchRequestEntry{
			Id: &id, MessageBody: in.MessageBody, MessageAttributes: in.MessageAttributes, MessageGroupId: in.MessageGroupId, MessageDeduplicationId: in.MessageDeduplicationId,
		})
		if len(batch) == 10 {
			if err := flush(); err != nil {
				return err
			}
		}
	}
	return flush()
}

// loaded is the harness of a load. Messages of a standard queue have no order.
func loaded(fifo bool) consumetest.Harness {
	h := harness(fifo)
	h.Open = func(t testing.TB) consumetest.Broker {
		b := open(t, fifo)
		if !fifo {
			b.opt.OrderKey = nil
		}
		return b
	}
	return h
}

// Members lose their connections. In examples/internal/campaign they are processes, which are
// killed.
func TestCampaign_MembersDie_EachKeyHasOneOutcome(t *testing.T) {
	for name, fifo := range kinds {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			messages, kills := consumetest.LoadSize(1000, 4)
			consumetest.ReportLoad(t, "SQS (ElasticMQ), "+name+" queue", loaded(fifo), consumetest.Load{Messages: messages, Kills: kills, Publish: publish, Ordered: fifo})
		})
	}
}

func TestCampaign_ControlNoDeduplication_DuplicatesTakeEffect(t *testing.T) {
	t.Parallel()
	messages, _ := consumetest.LoadSize(10_000, 10)
	consumetest.ReportLoad(t, "SQS (ElasticMQ)", loaded(false), consumetest.Load{Messages: messages / 10, Publish: publish, Unprotected: true})
}

// Consumers come and go while handlers fail and are slow.
func TestCampaign_Restarts_LoseNothing(t *testing.T) {
	t.Parallel()
	rounds := 8
	if testing.Short() {
		rounds = 2
	}
	consumetest.ReportRestarts(t, "SQS (ElasticMQ), FIFO queue", harness(true), rounds, nil)
}
