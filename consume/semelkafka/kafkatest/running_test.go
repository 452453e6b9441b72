package kafkatest

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/consume/driver"
	"github.com/semel-go/semel/consume/semelkafka"
	"github.com/twmb/franz-go/pkg/kgo"
)

// A held message stops its partition, after Outstanding more are done, and no
// other partition.
func TestServe_MessageWaits_PausesItsPartitionOnly(t *testing.T) {
	everywhere(t, func(t *testing.T, seed string) {
		b := open(t, seed)
		const n, outstanding = 600, 20
		for p := range int32(2) {
			var ms []consume.Message
			for i := range n {
				ms = append(ms, msg(fmt.Sprintf("%d-%d", p, i), ""))
			}
			b.to(t, p, ms...)
		}
		release := make(chan struct{})
		var ran [2]atomic.Int64
		s := b.source(t, func(o *semelkafka.Options) { o.Outstanding = outstanding })
		serve(t, consumer(t, guard(t, nil), func(_ context.Context, _ *semel.Execution, m *consume.Message) error {
			if m.Key == "0-0" {
				<-release
			}
			ran[m.Origin.Partition].Add(1)
			return nil
		}, nil), s)
		until(t, "the other partition done, this one as far as it may go", func() bool {
			return b.committed(t, 1) == n && ran[0].Load() == outstanding-1
		})
		st := s.Stats().Partitions[0]
		if st.Unfinished != 1 || st.Ahead != outstanding-1 || st.Held <= 0 || st.Lag < 1 || !st.Paused {
			t.Errorf("the figures are %+v", st)
		}
		close(release)
		b.settled(t)
		if ran[0].Load() != n || ran[1].Load() != n {
			t.Errorf("%d and %d handlers ran, want %d each", ran[0].Load(), ran[1].Load(), n)
		}
	})
}

// There is no max.poll.interval.ms: however long a handler runs, and though
// nothing is polled meanwhile, its member stays in the group.
func TestServe_HandlerSlowerThanSession_KeepsItsPartition(t *testing.T) {
	everywhere(t, func(t *testing.T, seed string) {
		b := open(t, seed)
		const short = time.Second
		quick := func(o *semelkafka.Options) {
			o.Client = append(o.Client[:len(o.Client):len(o.Client)], kgo.SessionTimeout(short))
		}
		b.to(t, 0, msg("slow", ""))
		begun, release := make(chan struct{}, 10), make(chan struct{})
		s := b.source(t, quick)
		serve(t, consumer(t, guard(t, nil), func(context.Context, *semel.Execution, *consume.Message) error {
			begun <- struct{}{}
			<-release
			return nil
		}, &consume.Options{Concurrency: 1, InFlight: 1}), s)
		wait(t, "begun", begun)
		before := s.Stats().Rebalances
		<-time.After(3 * short)
		if n := s.Stats().Rebalances - before; n != 0 {
			t.Logf("%d rebalances meanwhile: this machine stalls", n)
		}
		close(release)
		b.settled(t)
		if len(begun) != 0 {
			t.Error("its handler ran again")
		}
	})
}

// A second Serve of a source gets the messages that the first gave back,
// although the member has not left its group.
func TestServe_AgainOnOneSource_GoesOn(t *testing.T) {
	everywhere(t, func(t *testing.T, seed string) {
		b := open(t, seed)
		s := b.source(t, nil)
		var tries atomic.Int64
		b.to(t, 0, msg("a", "o"), msg("b", "o"))
		stop := serve(t, consumer(t, guard(t, nil), func(context.Context, *semel.Execution, *consume.Message) error {
			tries.Add(1)
			return errors.New("no")
		}, &consume.Options{Backoff: func(int) time.Duration { return time.Hour }}), s)
		until(t, "failed", func() bool { return tries.Load() > 0 })
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		if n := b.Unsettled(t); n != 2 {
			t.Errorf("%d are left, want 2", n)
		}
		serve(t, consumer(t, guard(t, nil), nop, nil), s)
		b.settled(t)
	})
}

func TestServe_SourceClosed_Returns(t *testing.T) {
	everywhere(t, func(t *testing.T, seed string) {
		b := open(t, seed)
		s := b.source(t, nil)
		ran, ended := make(chan struct{}, 1), make(chan error, 1)
		c := consumer(t, guard(t, nil), func(context.Context, *semel.Execution, *consume.Message) error {
			ran <- struct{}{}
			return nil
		}, nil)
		go func() { ended <- c.Serve(t.Context(), s) }()
		b.Publish(t, msg("k", ""))
		wait(t, "run", ran)
		if err := s.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
		if err := wait(t, "Serve ended", ended); !errors.Is(err, driver.ErrClosed) {
			t.Errorf("Serve: %v", err)
		}
		if n := b.Unsettled(t); n != 0 {
			t.Errorf("%d messages were not committed at the end", n)
		}
		if g, err := b.adm.DescribeGroups(t.Context(), b.name); err != nil || len(g[b.name].Members) != 0 {
			t.Errorf("it did not leave its group: %v, %v", g, err)
		}
		if err := s.Close(); err != nil {
			t.Errorf("the second Close: %v", err)
		}
		unused := b.source(t, nil)
		if err := unused.Close(); err != nil {
			t.Errorf("Close of one that never began: %v", err)
		}
		if _, err := unused.Next(t.Context(), 1); !errors.Is(err, driver.ErrClosed) {
			t.Errorf("Next after Close: %v", err)
		}
	})
}
