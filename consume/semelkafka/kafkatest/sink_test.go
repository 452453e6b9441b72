package kafkatest

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/semel-go/semel/consume/semelkafka"
	"github.com/semel-go/semel/outbox"
	"github.com/semel-go/semel/outbox/outboxtest"
	"github.com/semel-go/semel/store"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

func TestSink_Messages_ArriveInOrderForEachKey(t *testing.T) {
	everywhere(t, func(t *testing.T, seed string) {
		b := open(t, seed)
		sink, err := semelkafka.NewSink(sinkClient(t, seed))
		if err != nil {
			t.Fatal(err)
		}
		outboxtest.RunSink(t, outboxtest.Destination{Sink: sink, Topic: b.name, TooLarge: 2 << 20, Arrived: func(t testing.TB, _ int) (all []outboxtest.Arrived) {
			for _, r := range b.records(t, b.name) {
				a := outboxtest.Arrived{OrderKey: string(r.Key), Body: r.Value}
				for _, h := range r.Headers {
					a.Headers = append(a.Headers, store.Header{Name: h.Key, Value: string(h.Value)})
				}
				all = append(all, a)
			}
			return all
		}})
	})
}

func TestNewSink_ClientIsUnfit_Refused(t *testing.T) {
	for want, opts := range map[string][]kgo.Opt{
		"replicas": {kgo.RequiredAcks(kgo.LeaderAck()), kgo.DisableIdempotentWrite()},
		"add kgo.AllowIdempotentProduceCancellation()": nil,
		"without kgo.ConsumeTopics":                    {kgo.ConsumeTopics("t"), kgo.AllowIdempotentProduceCancellation()},
		"kgo.ConsumePartitions":                        {kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{"t": {0: kgo.NewOffset()}}), kgo.AllowIdempotentProduceCancellation()},
		"kgo.ConsumePartitions and a group":            {kgo.ConsumerGroup("g"), kgo.DisableIdempotentWrite()},
	} {
		if _, err := semelkafka.NewSink(client(t, "127.0.0.1:1", opts...)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one with %q", err, want)
		}
	}
}

// The partition cannot take records. The client tries for ever, and has no time-out of its own:
// the sink must report the failure, so that messages of other topics get a place. After the last
// three the client does not know whether the broker has the record.
func TestCampaignSink_PartitionIsAway_FailsInTime(t *testing.T) {
	if testing.Short() {
		t.Skip("it waits 45 s for the sink's time-out")
	}
	refuses := func(why *kerr.Error) func(c *fakeKafka, topic string) {
		return func(c *fakeKafka, topic string) {
			c.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Topic: topic, Err: why, Count: -1})
		}
	}
	for name, away := range map[string]func(c *fakeKafka, topic string){
		"too few replicas":              refuses(kerr.NotEnoughReplicas),
		"too few replicas after append": refuses(kerr.NotEnoughReplicasAfterAppend),
		"broker's time-out":             refuses(kerr.RequestTimedOut),
		"connection ends": func(c *fakeKafka, _ string) {
			c.ControlKey(kmsg.Produce.Int16(), func(kmsg.Request) (kmsg.Response, error, bool) {
				c.KeepControl()
				return nil, errors.New("the connection ends"), true
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, seed := fake(t)
			b := open(t, seed)
			away(c, b.name)
			sink, err := semelkafka.NewSink(sinkClient(t, seed))
			if err != nil {
				t.Fatal(err)
			}
			answer := make(chan error, 1)
			go sink.Publish(t.Context(), []outbox.Message{{Topic: b.name, ID: "1"}}, func(_ int, err error) { answer <- err })
			select {
			case err := <-answer:
				if err == nil || outbox.IsPoison(err) || !strings.Contains(err.Error(), "kafka-topics --describe") {
					t.Errorf("error %v, want one that names the next step", err)
				}
			case <-time.After(90 * time.Second):
				t.Error("no answer within 90 s, want one after about 45 s")
			}
		})
	}
}

// Each message is smaller than the topic's max.message.bytes, and batches of them are larger.
func TestSink_BatchTooLarge_MessagesAreSentAlone(t *testing.T) {
	t.Parallel()
	_, seed := fake(t)
	cl := sinkClient(t, seed, kgo.ProducerBatchCompression(kgo.NoCompression()))
	limit := "200000"
	if _, err := kadm.NewClient(cl).CreateTopic(t.Context(), 1, 1, map[string]*string{"max.message.bytes": &limit}, "low"); err != nil {
		t.Fatal(err)
	}
	sink, err := semelkafka.NewSink(cl)
	if err != nil {
		t.Fatal(err)
	}
	messages := make([]outbox.Message, 60)
	for n := range messages {
		size := 60_000
		if n%20 == 0 {
			size = 300_000
		}
		messages[n] = outbox.Message{Topic: "low", OrderKey: fmt.Sprint(n), ID: fmt.Sprint(n), Body: make([]byte, size)}
	}
	sink.Publish(t.Context(), messages, func(i int, err error) {
		if poison := len(messages[i].Body) > 200_000; poison != outbox.IsPoison(err) || !poison && err != nil {
			t.Errorf("message of %d bytes: %v", len(messages[i].Body), err)
		}
	})
}

// sinkClient is a client for a sink.
func sinkClient(t testing.TB, seed string, opts ...kgo.Opt) *kgo.Client {
	t.Helper()
	return client(t, seed, append([]kgo.Opt{kgo.ProducerLinger(0), kgo.AllowIdempotentProduceCancellation()}, opts...)...)
}
