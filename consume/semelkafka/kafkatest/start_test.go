package kafkatest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/consume/semelkafka"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// rounds is how often a campaign stops and starts a member.
func rounds(short int) int {
	if os.Getenv("SEMEL_EVIDENCE") != "" {
		return 50
	}
	return short
}

// readiness is a handler that fails until it is told not to.
type readiness struct {
	mu    sync.Mutex
	fails bool
	begun chan string
	ran   []string
}

func (r *readiness) handle(_ context.Context, _ *semel.Execution, m *consume.Message) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.fails {
		select {
		case r.begun <- m.Key:
		default:
		}
		return semel.NoEffect(errors.New("not ready"))
	}
	r.ran = append(r.ran, string(m.Body)) // a ledger's messages have no key
	return nil
}

func (r *readiness) recover() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.fails = false
}

func (r *readiness) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.ran)
}

// assigned waits until a member reads all partitions.
func assigned(t testing.TB, s interface{ Stats() semelkafka.Stats }) {
	t.Helper()
	until(t, "partitions assigned, with a position", func() bool {
		st := s.Stats()
		for _, p := range st.Partitions {
			if p.Next < 0 {
				return false
			}
		}
		return len(st.Partitions) == partitions
	})
}

// A group that starts at the end of the log loses no message that came after its
// start, although none has succeeded before its members restart or die.
func TestStart_LatestAndNoSuccessBeforeRestart_LosesNothing(t *testing.T) {
	everywhere(t, func(t *testing.T, seed string) {
		b := open(t, seed)
		b.opt.Start = semelkafka.Latest
		b.to(t, 0, msg("before", "")) // not this group's
		r := &readiness{fails: true, begun: make(chan string, 1)}
		c := consumer(t, guard(t, nil), r.handle, nil)
		for n := range rounds(3) {
			s := b.Connect(t)
			stop := serve(t, c, s)
			assigned(t, s.(*conn))
			if n == 0 {
				b.to(t, 0, msg("first", ""))
			}
			wait(t, "begun", r.begun)
			if n%2 == 0 {
				s.Kill()
			}
			_ = stop()
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			if n == 0 {
				b.to(t, 0, msg("second", ""))
			}
		}
		r.recover()
		serve(t, c, b.source(t, nil))
		until(t, "both messages run", func() bool { return r.count() == 2 })
	})
}

// The same, if the group's position was deleted: before the start, and while the
// member reads.
func TestOutOfRange_LatestAndNoSuccessBeforeRestart_LosesNothing(t *testing.T) {
	everywhere(t, func(t *testing.T, seed string) {
		b := open(t, seed)
		b.opt.OutOfRange, b.opt.Outstanding = semelkafka.Latest, 1
		for i := range 5 {
			b.to(t, 0, msg(fmt.Sprint("old", i), ""))
		}
		b.rewind(t)
		b.cut(t, 5)
		r := &readiness{fails: true, begun: make(chan string, 1)}
		c := consumer(t, guard(t, nil), r.handle, nil)
		s := b.Connect(t)
		stop := serve(t, c, s)
		assigned(t, s.(*conn))
		until(t, "the position committed", func() bool { return b.committed(t, 0) == 5 })
		b.to(t, 0, msg("new", ""))
		wait(t, "begun", r.begun)
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		b.to(t, 0, msg("newer", ""))
		r.recover()
		serve(t, c, b.source(t, nil))
		until(t, "both messages run", func() bool { return r.count() == 2 })
	})
}

// The end of the log moves on while an answer is on its way that says that the
// position is not in the log. The position is in the log, so that no move may skip
// the message that came meanwhile.
func TestOutOfRange_PositionIsInTheLog_LosesNothing(t *testing.T) {
	t.Parallel()
	for name, before := range map[string]int{"some are read": 1, "none is read": 0} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, seed := fake(t)
			b := open(t, seed)
			b.opt.OutOfRange = semelkafka.Latest
			var late atomic.Bool
			fault := func(f kfake.Fault) *kfake.FaultHandle {
				f.Topic, f.Partitions, f.Count = b.name, []int32{0}, -1
				return c.Fault(f)
			}
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			read := fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Fetch}, Observe: true})
			serve(t, consumer(t, guard(t, nil), func(_ context.Context, _ *semel.Execution, m *consume.Message) error {
				if m.Key == "late" {
					late.Store(true)
				}
				return nil
			}, nil), b.source(t, nil))
			if err := read.Wait(ctx, 1); err != nil {
				t.Fatal("the partition is not read:", err)
			}
			for range before {
				b.to(t, 0, msg("first", ""))
				until(t, "the first committed", func() bool { return b.committed(t, 0) == 1 })
			}
			lists := fault(kfake.Fault{Keys: []kmsg.Key{kmsg.ListOffsets}, Err: kerr.NotLeaderForPartition})
			fetches := fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Fetch}, Err: kerr.OffsetOutOfRange})
			if err := lists.Wait(ctx, 1); err != nil {
				t.Fatal("the offsets of the log were not asked for:", err)
			}
			b.to(t, 0, msg("late", ""))
			asked := fault(kfake.Fault{Keys: []kmsg.Key{kmsg.ListOffsets}, Observe: true})
			lists.Remove()
			// A try asks for two offsets, and for three if it moves to the end.
			if err := asked.Wait(ctx, 6); err != nil {
				t.Fatal("there were no two tries:", err)
			}
			fetches.Remove()
			until(t, "the late message runs", late.Load)
		})
	}
}

// The messages after the group's start are deleted before the first of them is read.
// The group goes on with the next message, although it has neither read nor committed
// anything.
func TestOutOfRange_NothingIsReadYet_GoesOnAtTheEnd(t *testing.T) {
	t.Parallel()
	for _, start := range []semelkafka.Position{semelkafka.Earliest, semelkafka.Latest} {
		t.Run(fmt.Sprint(start), func(t *testing.T) {
			t.Parallel()
			c, seed := fake(t)
			b := open(t, seed)
			b.opt.Start, b.opt.OutOfRange = start, semelkafka.Latest
			fetches := c.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Fetch}, Topic: b.name, Err: kerr.KafkaStorageError, Count: -1})
			s := b.source(t, nil)
			r := &readiness{begun: make(chan string, 1)}
			serve(t, consumer(t, guard(t, nil), r.handle, nil), s)
			assigned(t, s)
			b.to(t, 0, numbered("deleted", 3, "")...)
			b.cut(t, 3)
			fetches.Remove()
			until(t, "the position committed", func() bool { return b.committed(t, 0) == 3 })
			b.to(t, 0, msg("new", ""))
			until(t, "the new message runs", func() bool { return r.count() == 1 })
		})
	}
}

// transact publishes messages in a transaction each to partition 0.
func (b *broker) transact(t testing.TB, ms ...consume.Message) {
	t.Helper()
	p := client(t, b.seed, kgo.TransactionalID(b.name), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	for i := range ms {
		if err := p.BeginTransaction(); err != nil {
			t.Fatal(err)
		}
		r := b.record(&ms[i])
		r.Partition = 0
		if err := p.ProduceSync(t.Context(), r).FirstErr(); err != nil {
			t.Fatal(err)
		}
		if err := p.EndTransaction(t.Context(), kgo.TryCommit); err != nil {
			t.Fatal(err)
		}
	}
}

// The marker of a transaction is no message: after the retention has deleted it,
// nothing was lost.
func TestTransaction_OnlyMarkerUnread_IsNoLoss(t *testing.T) {
	everywhere(t, func(t *testing.T, seed string) {
		b := open(t, seed)
		b.transact(t, msg("a", ""), msg("b", ""))
		r := &readiness{}
		c := consumer(t, guard(t, nil), r.handle, nil)
		s := b.Connect(t)
		stop := serve(t, c, s)
		until(t, "the position is after the last marker", func() bool { return b.committed(t, 0) == 4 })
		if r.count() != 2 {
			t.Errorf("%d messages ran, want 2", r.count())
		}
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		b.cut(t, 4)
		ended := make(chan error, 1)
		again := b.source(t, nil)
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		go func() { ended <- c.Serve(ctx, again) }()
		b.to(t, 0, msg("c", ""))
		until(t, "the next message runs", func() bool {
			select {
			case err := <-ended:
				t.Fatal("Serve ended:", err)
			default:
			}
			return r.count() == 3
		})
		cancel()
		<-ended
	})
}
