package kafkatest

import (
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/semel-go/semel/consume/semelkafka"
	"github.com/semel-go/semel/outbox"
	"github.com/twmb/franz-go/pkg/kgo"
)

// oneClient is a hook that accepts one open client, as kprom.Metrics does: the names of its
// metrics are taken.
type oneClient struct{ open atomic.Int64 }

func (h *oneClient) OnNewClient(*kgo.Client) {
	if h.open.Add(1) > 1 {
		h.open.Add(-1)
		panic("duplicate metrics collector registration attempted")
	}
}

func (h *oneClient) OnClientClosed(*kgo.Client) { h.open.Add(-1) }

func TestSink_HookAcceptsOneClient_OnlyLargeMessagesFail(t *testing.T) {
	t.Parallel()
	_, seed := fake(t)
	b := open(t, seed)
	sink, err := semelkafka.NewSink(sinkClient(t, seed, kgo.WithHooks(&oneClient{})))
	if err != nil {
		t.Fatal(err)
	}
	errs := make([]error, 2)
	sink.Publish(t.Context(), []outbox.Message{{Topic: b.name, ID: "large", Body: make([]byte, 2<<20)}, {Topic: b.name, ID: "small"}}, func(i int, err error) { errs[i] = err })
	if errs[0] == nil || outbox.IsPoison(errs[0]) || !strings.Contains(errs[0].Error(), "kgo.WithHooks") {
		t.Errorf("the large message: %v, want an error that names the option", errs[0])
	}
	if errs[1] != nil {
		t.Errorf("the small message: %v", errs[1])
	}
}

func TestSource_HookAcceptsOneClient_MessagesCome(t *testing.T) {
	t.Parallel()
	_, seed := fake(t)
	b := open(t, seed)
	s := b.source(t, func(o *semelkafka.Options) {
		o.Client = append(slices.Clone(o.Client), kgo.WithHooks(&oneClient{}))
	})
	if _, err := s.Info(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := client(t, seed).ProduceSync(t.Context(), &kgo.Record{Topic: b.name, Value: []byte("x")}).FirstErr(); err != nil {
		t.Fatal(err)
	}
	for {
		got, err := s.Next(t.Context(), 1)
		if err != nil {
			t.Fatal(err)
		}
		if len(got) == 1 {
			return
		}
	}
}
