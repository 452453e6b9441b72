package kafkatest

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/consume/driver"
	"github.com/semel-go/semel/consume/semelkafka"
)

// readyLedger is a ledger whose handler notes the messages.
type readyLedger struct {
	easyLedger
	r *readiness
}

func (l readyLedger) Handle(ctx context.Context, batch []semelkafka.Item) []driver.Result {
	ends := make([]driver.Result, len(batch))
	for i := range batch {
		ends[i].Err = l.r.handle(ctx, nil, batch[i].Message)
	}
	return ends
}

// One partition has no leader when a member starts. The others are read; that one is read
// from its committed offset when it has a leader again.
func TestStart_OnePartitionHasNoLeader_OthersAreServed(t *testing.T) {
	t.Parallel()
	for name, begin := range map[string]func(t *testing.T, r *readiness, s *semelkafka.Source) (stop func() error){
		"message by message": func(t *testing.T, r *readiness, s *semelkafka.Source) func() error {
			return serve(t, consumer(t, guard(t, nil), r.handle, nil), s)
		},
		"with a ledger": func(t *testing.T, r *readiness, s *semelkafka.Source) func() error {
			ctx, cancel := context.WithCancel(context.Background())
			done := make(chan error, 1)
			go func() {
				done <- s.ServeBatches(ctx, readyLedger{r: r}, &consume.Options{AllowShortRetention: true})
			}()
			stop := func() error {
				cancel()
				return <-done
			}
			return stop
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, seed := fake(t)
			b := open(t, seed)
			r := &readiness{}
			first := b.source(t, nil)
			stop := begin(t, r, first)
			for p := range int32(partitions) {
				b.to(t, p, msg(fmt.Sprint("first", p), ""))
			}
			b.settled(t)
			if err := stop(); err != nil {
				t.Fatal(err)
			}
			if err := first.Close(); err != nil {
				t.Fatal(err)
			}
			var faults []*kfake.FaultHandle
			for _, k := range []kmsg.Key{kmsg.ListOffsets, kmsg.Fetch, kmsg.OffsetForLeaderEpoch} {
				faults = append(faults, c.Fault(kfake.Fault{Keys: []kmsg.Key{k}, Topic: b.name, Partitions: []int32{0}, Err: kerr.LeaderNotAvailable, Count: -1}))
			}
			for p := range int32(partitions) {
				b.to(t, p, msg(fmt.Sprint("next", p), ""))
			}
			second := b.source(t, nil)
			stop = begin(t, r, second)
			until(t, "the messages of the partitions with a leader run", func() bool { return r.count() >= 2*partitions-1 })
			for _, f := range faults {
				f.Remove()
			}
			b.settled(t)
			if n := r.count(); n != 2*partitions {
				t.Errorf("%d runs, want %d", n, 2*partitions)
			}
			if err := stop(); err != nil {
				t.Error(err)
			}
		})
	}
}

// The broker says that the log of the position's leader epoch ends below the position. The
// messages between may be new ones, so Serve ends, whether the partition had a leader at the
// start or later.
func TestStart_LogWasCutBelowPosition_ServeReturns(t *testing.T) {
	t.Parallel()
	for name, late := range map[string]bool{"at the start": false, "later": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, seed := fake(t)
			b := open(t, seed)
			r := &readiness{}
			first := b.source(t, nil)
			stop := serve(t, consumer(t, guard(t, nil), r.handle, nil), first)
			b.to(t, 0, numbered("m", 5, "")...)
			b.settled(t)
			if err := errors.Join(stop(), first.Close()); err != nil {
				t.Fatal(err)
			}
			c.ControlKey(int16(kmsg.OffsetForLeaderEpoch), func(r kmsg.Request) (kmsg.Response, error, bool) {
				c.KeepControl()
				resp := r.ResponseKind().(*kmsg.OffsetForLeaderEpochResponse)
				p := kmsg.NewOffsetForLeaderEpochResponseTopicPartition()
				p.EndOffset = 2
				topic := kmsg.NewOffsetForLeaderEpochResponseTopic()
				topic.Topic, topic.Partitions = b.name, append(topic.Partitions, p)
				resp.Topics = append(resp.Topics, topic)
				return resp, nil, true
			})
			fault := kfake.Fault{Keys: []kmsg.Key{kmsg.ListOffsets}, Topic: b.name, Partitions: []int32{0}, Err: kerr.LeaderNotAvailable, Count: -1}
			b.to(t, 1, msg("other", ""))
			b.to(t, 0, msg("next", ""))
			if !late {
				wantOtherLog(t, b, refused(t, b.source(t, nil), nil), "offset 2")
				return
			}
			noLeader := c.Fault(fault)
			done := make(chan error, 1)
			go func() { done <- consumer(t, guard(t, nil), r.handle, nil).Serve(t.Context(), b.source(t, nil)) }()
			until(t, "the message of the partition with a leader run", func() bool { return r.count() == 6 })
			noLeader.Remove()
			wantOtherLog(t, b, wait(t, "Serve returned", done), "offset 2")
			if n := r.count(); n != 6 {
				t.Errorf("%d runs, want 6: the next message of partition 0 must not run", n)
			}
		})
	}
}
