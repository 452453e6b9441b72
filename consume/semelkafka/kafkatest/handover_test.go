package kafkatest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/semel-go/semel/consume/driver"
	"github.com/semel-go/semel/consume/semelkafka"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// Finished messages are committed before another member gets their partition,
// because it would repeat them. The commit names the topic's id.
func TestHandOver_CommitsFirst(t *testing.T) {
	everywhere(t, func(t *testing.T, seed string) {
		b := open(t, seed)
		for p := range int32(partitions) {
			b.to(t, p, msg(fmt.Sprint("done", p), ""))
		}
		rarely := func(o *semelkafka.Options) { o.CommitEvery = time.Minute }
		first, second := b.source(t, rarely), b.source(t, rarely)
		for _, s := range []*semelkafka.Source{first, second} {
			if _, err := s.Info(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		for _, d := range take(t, first, partitions) {
			if err := d.Ack(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		for p := range int32(partitions) {
			b.to(t, p, msg(fmt.Sprint("next", p), ""))
		}
		var ds []driver.Delivery
		until(t, "some with the second", func() bool {
			_, _ = first.Next(t.Context(), 0) // it takes part in the rebalance
			more, err := second.Next(t.Context(), 10)
			ds = append(ds, more...)
			return len(ds) > 0 && err == nil
		})
		for _, d := range ds {
			if m := d.Message(); !strings.HasPrefix(string(m.Body), "next") {
				t.Errorf("%q was done before it was handed over, and comes again", m.Body)
			}
			if err := d.Nak(t.Context(), 0); err != nil { // otherwise Close waits for it
				t.Error(err)
			}
		}
		done, err := b.adm.FetchOffsets(t.Context(), b.name)
		if err != nil {
			t.Fatal(err)
		}
		at, ok := done.Lookup(b.name, ds[0].Message().Origin.Partition)
		id, _, _ := strings.Cut(ds[0].Message().Origin.ID, "/")
		if !ok || at.At != 1 || !strings.HasPrefix(at.Metadata, "semel-topic-id="+id+";last=") {
			t.Errorf("committed is %+v, want offset 1 of topic %s", at.Offset, id)
		}
	})
}

// joinWatch counts the times that a client asks to join.
type joinWatch struct{ n atomic.Int64 }

// OnBrokerWrite implements kgo.HookBrokerWrite.
func (w *joinWatch) OnBrokerWrite(_ kgo.BrokerMetadata, key int16, _ int, _, _ time.Duration, _ error) {
	if key == int16(kmsg.JoinGroup) {
		w.n.Add(1)
	}
}

// While a group waits for a dead member, no join is answered. A member that
// leaves then does not wait as long, and is removed: otherwise it would be
// given partitions that nobody reads until its session ends. A static member
// keeps its place, as always.
func TestClose_GroupWaitsForADeadMember_Leaves(t *testing.T) {
	everywhere(t, func(t *testing.T, seed string) {
		for _, static := range []bool{false, true} {
			t.Run(fmt.Sprintf("static: %v", static), func(t *testing.T) {
				t.Parallel()
				leaveWhileItWaits(t, open(t, seed), static)
			})
		}
	})
}

func leaveWhileItWaits(t *testing.T, b *broker, static bool) {
	member := func(id string, w *joinWatch, l *line) *semelkafka.Source {
		return b.source(t, func(o *semelkafka.Options) {
			o.HandOver = 10 * time.Millisecond
			o.Client = append(o.Client[:len(o.Client):len(o.Client)], kgo.ClientID(id), kgo.WithHooks(w), kgo.Dialer(l.dial),
				kgo.SessionTimeout(2*time.Minute), kgo.RebalanceTimeout(2*time.Minute))
			if static {
				o.Client = append(o.Client, kgo.InstanceID(id))
			}
		})
	}
	var watch joinWatch
	var wire line
	leaves, dies := member("leaves", &watch, &line{}), member("dies", &joinWatch{}, &wire)
	until(t, "both members", func() bool {
		for _, s := range []*semelkafka.Source{leaves, dies} {
			if _, err := s.Next(t.Context(), 0); err != nil {
				t.Log(err)
			}
		}
		return len(leaves.Stats().Partitions) > 0 && len(dies.Stats().Partitions) > 0 &&
			len(leaves.Stats().Partitions)+len(dies.Stats().Partitions) == partitions
	})
	wire.cut()
	before := watch.n.Load()
	if _, err := member("comes", &joinWatch{}, &line{}).Next(t.Context(), 0); err != nil {
		t.Log(err)
	}
	until(t, "a join that waits", func() bool { return watch.n.Load() > before })
	if err := leaves.Close(); err != nil {
		t.Error(err)
	}
	if n := watch.n.Load() - before; n != 1 {
		t.Errorf("the member that leaves has asked to join %d times, want once", n)
	}
	groups, err := b.adm.DescribeGroups(t.Context(), b.name)
	if err != nil {
		t.Fatal(err)
	}
	still := slices.ContainsFunc(groups[b.name].Members, func(m kadm.DescribedGroupMember) bool { return m.ClientID == "leaves" })
	if still != static {
		t.Errorf("its group, which is in state %s, has a member that has left: %v", groups[b.name].State, still)
	}
}

// The context of the user's client ends the source.
func TestServe_ClientsContextEnds_Returns(t *testing.T) {
	t.Parallel()
	_, seed := fake(t)
	ctx, cancel := context.WithCancel(t.Context())
	s := open(t, seed).source(t, func(o *semelkafka.Options) {
		o.Client = append(o.Client[:len(o.Client):len(o.Client)], kgo.WithContext(ctx))
	})
	until(t, "a member", func() bool {
		_, err := s.Next(t.Context(), 0)
		return err == nil && len(s.Stats().Partitions) == partitions
	})
	cancel()
	until(t, "told of it", func() bool {
		_, err := s.Next(t.Context(), 0)
		return errors.Is(err, driver.ErrClosed)
	})
}
