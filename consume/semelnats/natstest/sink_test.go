package natstest

import (
	"testing"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/semel-go/semel/consume/semelnats"
	"github.com/semel-go/semel/outbox"
	"github.com/semel-go/semel/outbox/outboxtest"
	"github.com/semel-go/semel/store"
)

// sinkTo is a sink, and a stream of its own with one subject.
func sinkTo(t *testing.T, name string) (outbox.Sink, jetstream.Stream) {
	t.Helper()
	js := connect(t, shared)
	stream, err := js.CreateStream(t.Context(), jetstream.StreamConfig{Name: name, Subjects: []string{name + ".>"}, Storage: jetstream.MemoryStorage})
	if err != nil {
		t.Fatal(err)
	}
	sink, err := semelnats.NewSink(js)
	if err != nil {
		t.Fatal(err)
	}
	return sink, stream
}

func TestSink_Messages_ArriveInOrderForEachKey(t *testing.T) {
	sink, stream := sinkTo(t, "sink")
	outboxtest.RunSink(t, outboxtest.Destination{Sink: sink, Topic: "sink.orders", TooLarge: 2 << 20, Arrived: func(t testing.TB, n int) (all []outboxtest.Arrived) {
		for seq := range n {
			m, err := stream.GetMsg(t.Context(), uint64(seq)+1) //nolint:gosec // small
			if err != nil {
				t.Fatal(err)
			}
			a := outboxtest.Arrived{OrderKey: m.Header.Get(semelnats.OrderKeyHeader), Body: m.Data}
			for name, values := range m.Header {
				a.Headers = append(a.Headers, store.Header{Name: name, Value: values[0]})
			}
			all = append(all, a)
		}
		return all
	}})
}

func TestSink_SentAgain_IsStoredOnceForEachTopic(t *testing.T) {
	sink, stream := sinkTo(t, "again")
	messages := []outbox.Message{{Topic: "again.a", ID: "1"}, {Topic: "again.b", ID: "1"}}
	for range 3 {
		sink.Publish(t.Context(), messages, func(_ int, err error) {
			if err != nil {
				t.Error(err)
			}
		})
	}
	info, err := stream.Info(t.Context())
	if err != nil || info.State.Msgs != 2 {
		t.Errorf("the stream has %+v, %v; want 2 messages", info.State, err)
	}
}

func TestSink_TopicsRenamedToOneSubject_EachIsStoredOnce(t *testing.T) {
	sink, stream := sinkTo(t, "renamed")
	messages := []outbox.Message{{Topic: "placed", ID: "order-17"}, {Topic: "shipped", ID: "order-17"}}
	for range 2 {
		for i := range messages {
			renamed := []outbox.Message{messages[i].Renamed("renamed.events")}
			sink.Publish(t.Context(), renamed, func(_ int, err error) {
				if err != nil {
					t.Error(err)
				}
			})
		}
	}
	info, err := stream.Info(t.Context())
	if err != nil || info.State.Msgs != 2 {
		t.Errorf("the stream has %+v, %v; want 2 messages", info.State, err)
	}
}

// Put takes each name without control characters, such as cloudEvents:id of AMQP. The
// client refuses such names, and cuts spaces off values.
func TestSink_HeadersThatClientRefuses_ReachConsumer(t *testing.T) {
	sink, _ := sinkTo(t, "names")
	want := []store.Header{{Name: "cloudEvents:id", Value: "1"}, {Name: "ends", Value: " in spaces "}, {Name: "plain", Value: "p"}}
	m := outbox.Message{Topic: "names.a", ID: " id ", OrderKey: "ann ", Headers: want}
	sink.Publish(t.Context(), []outbox.Message{m}, func(_ int, err error) {
		if err != nil {
			t.Fatal(err)
		}
	})
	js := connect(t, shared)
	consumer, err := js.CreateConsumer(t.Context(), "names", jetstream.ConsumerConfig{Durable: "c", AckPolicy: jetstream.AckExplicitPolicy, MaxDeliver: -1})
	if err != nil {
		t.Fatal(err)
	}
	source, err := semelnats.New(js, consumer, nil)
	if err != nil {
		t.Fatal(err)
	}
	ds, err := source.Next(t.Context(), 1)
	if err != nil || len(ds) != 1 {
		t.Fatalf("%d deliveries, %v", len(ds), err)
	}
	for _, h := range append(want, store.Header{Name: outbox.KeyHeader, Value: m.ID}, store.Header{Name: semelnats.OrderKeyHeader, Value: m.OrderKey}) {
		if got, _ := ds[0].Message().Header(h.Name); got != h.Value {
			t.Errorf("header %q is %q, want %q", h.Name, got, h.Value)
		}
	}
}

func TestSink_NoStreamTakesSubject_IsLater(t *testing.T) {
	sink, _ := sinkTo(t, "none")
	sink.Publish(t.Context(), []outbox.Message{{Topic: "elsewhere.a", ID: "1"}}, func(_ int, err error) {
		if err == nil || outbox.IsPoison(err) {
			t.Errorf("error %v", err)
		}
	})
}
