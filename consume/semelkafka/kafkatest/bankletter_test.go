package kafkatest

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/consume/driver"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// The brokers refuse a letter for a while. Later messages of its order key wait, but
// the refusal is not taken for a fault of the ledger, which would stop all: the
// other partitions go on.
func TestServeBatches_LetterRefused_DelaysItsKeyOnly(t *testing.T) {
	t.Parallel()
	forms(t, func(t *testing.T, f form) {
		c, seed := fake(t)
		br, b := open(t, seed), openBank(t)
		fault := c.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Topic: br.opt.DeadLetters, Err: kerr.TopicAuthorizationFailed, Count: -1})
		var refused, outages atomic.Int64
		br.to(t, 0, msg("bad", "o"))
		b.member(t, f, br.source(t, nil), func(ctx context.Context, tx pgx.Tx, ms []*consume.Message) error {
			if slices.ContainsFunc(ms, func(m *consume.Message) bool { return string(m.Body) == "bad" }) {
				return semel.Final(errors.New("no"))
			}
			return b.write(ctx, tx, ms)
		}, &consume.Options{Observe: func(_ context.Context, e consume.Event) {
			switch e.Kind {
			case consume.EventSettleFailed:
				refused.Add(1)
			case consume.EventOutage:
				outages.Add(1)
				t.Errorf("it is taken for an outage: %v", e.Err)
			}
		}})
		until(t, "refused", func() bool { return refused.Load() > 0 })
		br.to(t, 0, numbered("behind", 3, "o")...)
		until(t, "refused with others behind it", func() bool { return br.committed(t, 0) == 0 && refused.Load() > 4 })
		br.to(t, 1, msg("other", ""))
		before := refused.Load()
		until(t, "the other done", func() bool { return slices.Contains(b.effects(t), "other") || refused.Load() > before+3 })
		b.want(t, "other")
		fault.Remove()
		br.settled(t)
		if got, want := b.effects(t), []string{"other", "behind000", "behind001", "behind002"}; !slices.Equal(got, want) {
			t.Errorf("the effects are %q, want %q", got, want)
		}
		if n := len(br.Copies(t, driver.DeadLetter)); n != 1 || outages.Load() > 0 {
			t.Errorf("%d letters, %d outages", n, outages.Load())
		}
	})
}
