package kafkatest

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/consume/driver"
)

// setPolicy sets the cleanup.policy of a topic, and waits until the brokers answer so.
func (b *broker) setPolicy(t testing.TB, topic, policy string) {
	t.Helper()
	r, err := b.adm.AlterTopicConfigs(t.Context(), []kadm.AlterConfig{{Op: kadm.SetConfig, Name: "cleanup.policy", Value: &policy}}, topic)
	if err != nil || len(r) != 1 || r[0].Err != nil {
		t.Fatal(err, r)
	}
	until(t, "the policy changed", func() bool {
		all, err := b.adm.DescribeTopicConfigs(t.Context(), topic)
		if err != nil || len(all) != 1 {
			return false
		}
		for _, c := range all[0].Configs {
			if c.Key == "cleanup.policy" {
				return c.MaybeValue() == policy
			}
		}
		return false
	})
}

// An operator has the topic of the dead letters compacted after the start of Serve, so that
// a letter would be kept until the next one of its key. The letter's message is not acked
// until the topic keeps letters again.
func TestServe_TopicOfCopiesCompactedMeanwhile_MessageWaits(t *testing.T) {
	everywhere(t, func(t *testing.T, seed string) {
		b := open(t, seed)
		var refused, settled atomic.Int64
		serve(t, consumer(t, guard(t, nil), func(_ context.Context, _ *semel.Execution, m *consume.Message) error {
			if m.Key == "bad" {
				return semel.Final(errors.New("no"))
			}
			return nil
		}, &consume.Options{Observe: func(_ context.Context, e consume.Event) {
			switch {
			case e.Kind == consume.EventSettled:
				settled.Add(1)
			case e.Kind == consume.EventSettleFailed && strings.Contains(e.Err.Error(), "--entity-name "+b.opt.DeadLetters+" --add-config cleanup.policy=delete"):
				refused.Add(1)
			}
		}}), b.source(t, nil))
		b.to(t, 0, msg("good", ""))
		until(t, "Serve has started", func() bool { return settled.Load() == 1 })
		b.setPolicy(t, b.opt.DeadLetters, "compact")
		b.to(t, 0, msg("bad", ""))
		until(t, "a refused letter, or an acked message", func() bool { return refused.Load() > 0 || settled.Load() > 1 })
		if settled.Load() > 1 {
			t.Fatal("the message is acked, and its letter is compacted away")
		}
		b.setPolicy(t, b.opt.DeadLetters, "delete")
		until(t, "the message acked", func() bool { return settled.Load() == 2 })
		if l := b.Copies(t, driver.DeadLetter); len(l) != 1 {
			t.Errorf("%d letters, want 1", len(l))
		}
	})
}
