package kafkatest

import (
	"testing"

	"github.com/semel-go/semel/consume/semelkafka"
	"github.com/semel-go/semel/outbox/outboxtest"
	"github.com/semel-go/semel/store"
	"github.com/twmb/franz-go/pkg/kgo"
)

func TestSink_Messages_ArriveInOrderForEachKey(t *testing.T) {
	everywhere(t, func(t *testing.T, seed string) {
		b := open(t, seed)
		sink, err := semelkafka.NewSink(client(t, seed, kgo.ProducerLinger(0)))
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

func TestNewSink_ClientDoesNotWaitForReplicas_Refused(t *testing.T) {
	if _, err := semelkafka.NewSink(client(t, "127.0.0.1:1", kgo.RequiredAcks(kgo.LeaderAck()), kgo.DisableIdempotentWrite())); err == nil {
		t.Error("it is accepted")
	}
}
