package kafkatest

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/consume/driver"
	"github.com/semel-go/semel/consume/semelkafka"
	"github.com/semel-go/semel/store/memstore"
	"github.com/twmb/franz-go/pkg/kgo"
)

// plainConsumer is a member of the broker's group as tutorials have it.
func (b *broker) plainConsumer(t testing.TB) *kgo.Client {
	return client(t, b.seed, kgo.ConsumerGroup(b.name), kgo.ConsumeTopics(b.name), kgo.DisableAutoCommit(), kgo.SessionTimeout(10*session)) // a machine that stalls must not throw it out
}

// poll is the values that a plain consumer gets, at least n of them.
func poll(t testing.TB, cl *kgo.Client, n int) (rs []*kgo.Record) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for len(rs) < n {
		f := cl.PollFetches(ctx)
		if err := f.Err0(); err != nil {
			t.Fatal(err)
		}
		rs = append(rs, f.Records()...)
	}
	return rs
}

// "Do not commit it, and it comes back": not while its member has the
// partition. A Source gives a message that was given back again itself.
func TestTrap_NotCommitting_DoesNotRedeliver(t *testing.T) {
	everywhere(t, func(t *testing.T, seed string) {
		b := open(t, seed)
		plain := b.plainConsumer(t)
		b.to(t, 0, msg("failed", ""))
		first := poll(t, plain, 1)
		b.to(t, 0, msg("next", "")) // and "failed" is not committed
		second := poll(t, plain, 1)
		if string(first[0].Value) != "failed" || string(second[0].Value) != "next" {
			t.Errorf("a plain consumer got %q, then %q: has Kafka changed?", first[0].Value, second[0].Value)
		}
		plain.Close()

		s := b.source(t, nil)
		d := take(t, s, 2)[0]
		if err := d.Nak(t.Context(), 0); err != nil {
			t.Fatal(err)
		}
		again := take(t, s, 1)[0]
		if string(again.Message().Body) != "failed" || again.Message().Origin != d.Message().Origin {
			t.Errorf("a Source gave %q again, want what was given back", again.Message().Body)
		}
	})
}

// Committing the highest offset loses what is not done below it.
func TestTrap_HighestOffset_IsNotCommitted(t *testing.T) {
	everywhere(t, func(t *testing.T, seed string) {
		naive, b := open(t, seed), open(t, seed)
		for _, x := range []*broker{naive, b} {
			x.to(t, 0, msg("slow", ""), msg("fast", ""))
		}
		plain := naive.plainConsumer(t)
		rs := poll(t, plain, 2)
		if err := plain.CommitRecords(t.Context(), rs[1]); err != nil { // the fast one is done, the slow one runs
			t.Fatal(err)
		}
		plain.Close() // and its process dies
		if n := naive.Unsettled(t); n != 0 {
			t.Errorf("%d messages are left for a plain consumer, want none: the slow one is lost", n)
		}

		l := b.Connect(t).(*conn)
		ds := take(t, l, 2)
		if err := ds[1].Ack(t.Context()); err != nil {
			t.Fatal(err)
		}
		until(t, "noted", func() bool { return l.Stats().Partitions[0].Ahead == 1 })
		l.Kill()
		var ran sync.Map
		serve(t, consumer(t, guard(t, nil), func(_ context.Context, _ *semel.Execution, m *consume.Message) error {
			ran.Store(m.Key, true)
			return nil
		}, nil), b.source(t, nil))
		b.settled(t)
		if _, ok := ran.Load("slow"); !ok {
			t.Error("the slow message is lost")
		}
	})
}

// An ack before the effect loses the message with its process. Serve acks when
// the outcome is stored.
func TestTrap_AckBeforeCompletion_IsNeverSent(t *testing.T) {
	everywhere(t, func(t *testing.T, seed string) {
		b := open(t, seed)
		b.to(t, 0, msg("early", ""))
		l := b.Connect(t).(*conn)
		if err := take(t, l, 1)[0].Ack(t.Context()); err != nil { // and only then the effect, but the process dies
			t.Fatal(err)
		}
		until(t, "committed", func() bool { return b.committed(t, 0) == 1 })
		l.Kill()

		b.to(t, 0, msg("k", ""))
		begun, release := make(chan struct{}), make(chan struct{})
		var runs atomic.Int64
		serve(t, consumer(t, guard(t, nil), func(_ context.Context, _ *semel.Execution, m *consume.Message) error {
			if m.Key == "early" {
				t.Error("an ack that came early did not lose the message: has Kafka changed?")
			}
			if runs.Add(1) == 1 {
				close(begun)
				<-release
			}
			return nil
		}, nil), b.source(t, nil))
		wait(t, "begun", begun)
		b.to(t, 1, msg("other", "")) // is done and committed meanwhile
		until(t, "the other committed", func() bool { return b.committed(t, 1) == 1 })
		if at := b.committed(t, 0); at != 1 {
			t.Errorf("offset %d is committed while the handler of 1 runs", at)
		}
		close(release)
		b.settled(t)
	})
}

// A duplicate that is not acked holds its partition up for ever.
func TestTrap_Duplicate_IsAcked(t *testing.T) {
	everywhere(t, func(t *testing.T, seed string) {
		b := open(t, seed)
		var runs atomic.Int64
		b.to(t, 0, msg("k", ""), msg("k", ""), msg("k", "o"), msg("next", ""), msg("k", ""))
		serve(t, consumer(t, guard(t, nil), func(context.Context, *semel.Execution, *consume.Message) error {
			runs.Add(1)
			return nil
		}, nil), b.source(t, nil))
		b.settled(t)
		if n, at := runs.Load(), b.committed(t, 0); n != 2 || at != 5 {
			t.Errorf("%d handlers ran and offset %d is committed, want 2 and 5", n, at)
		}
	})
}

// The handler of a message fails. Its duplicate, later in the partition, must
// not count as done, and the message must not be dropped because later ones are
// done.
func TestTrap_FirstHandlerFails_RunsAgain(t *testing.T) {
	everywhere(t, func(t *testing.T, seed string) {
		b := open(t, seed)
		var tries, effects atomic.Int64
		held := make(chan struct{})
		b.to(t, 0, msg("k", "o"), msg("k", "o"), msg("next", ""))
		serve(t, consumer(t, guard(t, nil), func(_ context.Context, _ *semel.Execution, m *consume.Message) error {
			if m.Key != "k" {
				return nil
			}
			switch tries.Add(1) {
			case 1:
				return errDead
			case 2:
				<-held
				return errDead
			}
			effects.Add(1)
			return nil
		}, nil), b.source(t, nil))
		until(t, "tried twice", func() bool { return tries.Load() == 2 })
		if at := b.committed(t, 0); at != 0 {
			t.Errorf("offset %d is committed, though 0 has failed", at)
		}
		close(held)
		b.settled(t)
		if effects.Load() != 1 {
			t.Errorf("it had %d effects, want 1", effects.Load())
		}
	})
}

// A partition is taken away while its handlers run. Messages whose handlers end
// in time are committed, and do not come again. The other handlers go on, and
// the next member waits for them.
func TestTrap_RevokedWhileHandlersRun_RunsOnce(t *testing.T) {
	everywhere(t, revokedInMidFlight)
}

func revokedInMidFlight(t *testing.T, seed string) {
	for name, inTime := range map[string]bool{"in time": true, "too late": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := open(t, seed)
			st := memstore.New(nil)
			release := make(chan struct{})
			var begun, done, looked, gone atomic.Int64
			h := func(context.Context, *semel.Execution, *consume.Message) error {
				begun.Add(1)
				<-release
				done.Add(1)
				return nil
			}
			watch := func() *consume.Options {
				return &consume.Options{Observe: func(_ context.Context, e consume.Event) {
					switch {
					case e.Kind == consume.EventDecided && e.Disposition.Reason == driver.ReasonInProgress:
						looked.Add(1)
					case e.Kind == consume.EventGivenUp:
						gone.Add(1)
					}
				}}
			}
			for p := range int32(partitions) {
				b.to(t, p, msg(string('a'+p), ""))
			}
			long := func(o *semelkafka.Options) { // no pause of the machine puts a member out
				o.Client = append(o.Client[:len(o.Client):len(o.Client)], kgo.SessionTimeout(30*time.Second), kgo.RebalanceTimeout(2*time.Minute))
			}
			first := b.source(t, func(o *semelkafka.Options) {
				if long(o); inTime {
					o.HandOver = time.Minute // until they are released
				}
			})
			serve(t, consumer(t, guard(t, st), h, watch()), first)
			until(t, "all handlers begun", func() bool { return begun.Load() == partitions })
			second := b.source(t, long)
			serve(t, consumer(t, guard(t, st), h, watch()), second)
			if inTime {
				until(t, "a partition on its way", func() bool { return first.Stats().Rebalances > 1 })
			} else {
				until(t, "held by the second", func() bool { return looked.Load() > 0 })
			}
			close(release)
			b.settled(t)
			if done.Load() != partitions {
				t.Errorf("%d handlers ran for %d messages", done.Load(), partitions)
			}
			if inTime && (looked.Load() > 0 || gone.Load() > 0) {
				t.Errorf("%d messages came again, and %d acks did not count, though they were handed over", looked.Load(), gone.Load())
			}
			if !inTime {
				until(t, "told that it is gone", func() bool { return gone.Load() > 0 })
			}
			until(t, "shared", func() bool {
				return len(first.Stats().Partitions) > 0 && len(second.Stats().Partitions) > 0
			})
		})
	}
}
