package kafkatest

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/consume/semelkafka"
)

// addPartition adds a partition to the topic, and publishes a message to it.
func (b *broker) addPartition(t testing.TB, m consume.Message) {
	t.Helper()
	r, err := b.adm.CreatePartitions(t.Context(), 1, b.name)
	if err = errors.Join(err, r.Error()); err != nil {
		t.Fatal(err)
	}
	// The earlier client knows three partitions, and this one looks again if its broker does, too.
	b.cl = client(t, b.seed, kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.MetadataMaxAge(200*time.Millisecond))
	rec := b.record(&m)
	rec.Partition = partitions
	until(t, "published to the new partition", func() bool { return b.cl.ProduceSync(t.Context(), rec).FirstErr() == nil })
}

// serveForm serves a source in one of two forms until the returned function is called.
func serveForm(t testing.TB, s *semelkafka.Source, r *readiness, ledger bool) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	if ledger {
		go func() { done <- s.ServeBatches(ctx, readyLedger{r: r}, &consume.Options{AllowShortRetention: true}) }()
	} else {
		c := consumer(t, guard(t, nil), r.handle, nil)
		go func() { done <- c.Serve(ctx, s) }()
	}
	stop = func() {
		if cancel(); done != nil {
			if err := <-done; err != nil {
				t.Error(err)
			}
			done = nil
		}
	}
	t.Cleanup(stop)
	return stop
}

// A group begins at the end of the log, and its topic gets another partition later. The messages
// that are published there before the group reads it are not skipped.
func TestStart_LatestAndPartitionAdded_LosesNothing(t *testing.T) {
	everywhere(t, func(t *testing.T, seed string) {
		for name, c := range map[string]struct{ ledger, running bool }{
			"a member runs": {false, true}, "no member runs": {false, false},
			"a member with a ledger runs": {true, true}, "no member with a ledger runs": {true, false},
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				b := open(t, seed)
				b.opt.Start = semelkafka.Latest
				b.opt.Client = append(b.opt.Client, kgo.MetadataMaxAge(2*time.Second))
				for p := range int32(partitions) {
					b.to(t, p, msg("before", "")) // not this group's
				}
				r := &readiness{}
				s := b.source(t, nil)
				stop := serveForm(t, s, r, c.ledger)
				assigned(t, s)
				b.to(t, 0, msg("first", ""))
				until(t, "the first message committed", func() bool { return b.committed(t, 0) == 2 })
				if !c.running {
					stop()
					if err := s.Close(); err != nil {
						t.Fatal(err)
					}
				}
				b.addPartition(t, msg("added", ""))
				if !c.running {
					s = b.source(t, nil)
					serveForm(t, s, r, c.ledger)
				}
				until(t, "the new partition assigned, with a position", func() bool {
					st := s.Stats()
					return len(st.Partitions) == partitions+1 && !slices.ContainsFunc(st.Partitions, func(p semelkafka.PartitionStats) bool { return p.Next < 0 })
				})
				b.to(t, partitions, msg("after", ""))
				// Without a record key the messages of a partition run at the same time.
				until(t, "all messages", func() bool { return len(r.keys()) >= 3 })
				if got := slices.Sorted(slices.Values(r.keys())); !slices.Equal(got, []string{"added", "after", "first"}) {
					t.Errorf("the messages %q run, want first, added and after", got)
				}
			})
		}
	})
}

// keys are the keys of the messages that have run.
func (r *readiness) keys() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.ran)
}

// One partition has no leader while a group begins at the end of the log, so that the others
// have a committed offset before it. It begins at its end, too, in a member that reads no
// other partition.
func TestStart_LatestAndOnePartitionIsLate_BeginsAtTheEnd(t *testing.T) {
	t.Parallel()
	c, seed := fake(t)
	b := open(t, seed)
	b.opt.Start = semelkafka.Latest
	f := c.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.ListOffsets}, Topic: b.name, Partitions: []int32{0}, Err: kerr.LeaderNotAvailable, Count: -1})
	for p := range int32(partitions) {
		b.to(t, p, msg("before", ""))
	}
	r := &readiness{}
	first := b.source(t, nil)
	stop := serveForm(t, first, r, false)
	until(t, "the other partitions committed", func() bool { return b.committed(t, 1) == 1 && b.committed(t, 2) == 1 })
	stop()
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	member := func(name string) *semelkafka.Source { // by its name it gets the partition
		s := b.source(t, func(o *semelkafka.Options) {
			o.Client = append(slices.Clone(o.Client), kgo.InstanceID(name), kgo.Balancers(kgo.RangeBalancer()))
		})
		serveForm(t, s, r, false)
		return s
	}
	count := func(s *semelkafka.Source) int { return len(s.Stats().Partitions) }
	second, third := member("b"), member("c")
	until(t, "two members have all partitions", func() bool { return count(second)+count(third) == partitions && count(third) == 1 })
	late := member("a")
	until(t, "the late partition has a member of its own", func() bool {
		st := late.Stats().Partitions
		return count(second) == 1 && len(st) == 1 && st[0].Partition == 0
	})
	f.Remove()
	until(t, "its position known", func() bool { st := late.Stats().Partitions; return len(st) == 1 && st[0].Next >= 0 })
	b.to(t, 0, msg("new", ""))
	until(t, "the new message", func() bool { return slices.Contains(r.keys(), "new") })
	if got := r.keys(); !slices.Equal(got, []string{"new"}) {
		t.Errorf("the messages %q run, want the new one", got)
	}
}
