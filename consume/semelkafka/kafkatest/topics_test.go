package kafkatest

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/consume/driver"
	"github.com/semel-go/semel/consume/semelkafka"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// A topic that was deleted and created again has other messages at the same
// offsets.
func TestTrap_TopicRecreated_LosesNoMessage(t *testing.T) {
	everywhere(t, recreated)
}

func recreated(t *testing.T, seed string) {
	b := open(t, seed)
	ran := make(chan consume.Origin, 100)
	h := func(_ context.Context, _ *semel.Execution, m *consume.Message) error {
		ran <- m.Origin
		return nil
	}
	b.to(t, 0, msg("a", ""), msg("b", ""))
	c := consumer(t, guard(t, nil), h, nil)
	ended := make(chan error, 1)
	first := b.source(t, func(o *semelkafka.Options) {
		o.Client = append(o.Client[:len(o.Client):len(o.Client)], kgo.MetadataMaxAge(session))
	})
	go func() { ended <- c.Serve(t.Context(), first) }()
	ids := map[string]bool{}
	for range 2 {
		ids[wait(t, "run", ran).ID] = true
	}
	b.settled(t)
	if _, err := b.adm.DeleteTopic(t.Context(), b.name); err != nil {
		t.Fatal(err)
	}
	until(t, "created again", func() bool {
		r, err := b.adm.CreateTopic(t.Context(), partitions, 1, nil, b.name)
		return errors.Join(err, r.Err) == nil
	})
	if err := wait(t, "Serve ended", ended); !errors.Is(err, driver.ErrClosed) || !strings.Contains(err.Error(), "created again") {
		t.Errorf("Serve: %v", err)
	}
	if err := first.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
	fresh := client(t, seed, kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.DefaultProduceTopic(b.name))
	until(t, "published", func() bool {
		r := msg("c", "")
		return fresh.ProduceSync(t.Context(), &kgo.Record{Value: r.Body, Headers: b.record(&r).Headers}).FirstErr() == nil
	})
	serve(t, c, b.source(t, nil))
	o := wait(t, "run", ran)
	if o.Offset != 0 || ids[o.ID] {
		t.Errorf("of the topic that was created again came %+v, want offset 0, and none of the ids %v", o, ids)
	}
}

// The brokers delete the offsets of a deleted topic. If they do not, Serve
// refuses offsets that were committed in an earlier topic of the name.
func TestTrap_OffsetsOfAnEarlierTopic_AreRefused(t *testing.T) {
	everywhere(t, func(t *testing.T, seed string) {
		b := open(t, seed)
		b.to(t, 0, msg("a", ""), msg("b", ""), msg("c", ""))
		o := kadm.Offsets{}
		o.Add(kadm.Offset{Topic: b.name, Partition: 0, At: 2, LeaderEpoch: -1, Metadata: "semel-topic-id=AAAAAAAAAAAAAAAAAAAAAQ"})
		if _, err := b.adm.CommitOffsets(t.Context(), b.name, o); err != nil {
			t.Fatal(err)
		}
		if err := refused(t, b.source(t, nil), nil, "partition 0: offset 2", "reset the group's offsets"); !errors.Is(err, driver.ErrClosed) {
			t.Errorf("it is %v", err)
		}
		if at := b.committed(t, 0); at != 2 {
			t.Errorf("the group is at %d, want 2", at)
		}
	})
}

// Messages of an aborted transaction are not handled.
func TestServe_AbortedTransaction_IsNotHandled(t *testing.T) {
	everywhere(t, func(t *testing.T, seed string) {
		b := open(t, seed)
		p := client(t, seed, kgo.TransactionalID(b.name))
		for _, x := range []struct {
			key string
			end kgo.TransactionEndTry
		}{{"aborted", kgo.TryAbort}, {"committed", kgo.TryCommit}} {
			if err := p.BeginTransaction(); err != nil {
				t.Fatal(err)
			}
			m := msg(x.key, "o")
			if err := p.ProduceSync(t.Context(), b.record(&m)).FirstErr(); err != nil {
				t.Fatal(err)
			}
			if err := p.EndTransaction(t.Context(), x.end); err != nil {
				t.Fatal(err)
			}
		}
		ran := make(chan string, 10)
		serve(t, consumer(t, guard(t, nil), func(_ context.Context, _ *semel.Execution, m *consume.Message) error {
			ran <- m.Key
			return nil
		}, nil), b.source(t, nil))
		if key := wait(t, "run", ran); key != "committed" || len(ran) != 0 {
			t.Errorf("%q ran, and %d others", key, len(ran))
		}
	})
}
