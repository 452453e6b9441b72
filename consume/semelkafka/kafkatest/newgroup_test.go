package kafkatest

import (
	"context"
	"fmt"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/semel-go/semel/consume"
)

// A group without committed offsets starts while one partition has no leader. The others are
// read, and that one is read when it has a leader again.
func TestStart_NewGroupAndNoLeader_PartitionIsReadLater(t *testing.T) {
	t.Parallel()
	c, seed := fake(t)
	b := open(t, seed)
	r := &readiness{}
	f := c.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.ListOffsets}, Topic: b.name, Partitions: []int32{0}, Err: kerr.LeaderNotAvailable, Count: -1})
	for p := range int32(partitions) {
		b.to(t, p, msg(fmt.Sprint("m", p), ""))
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	s := b.source(t, nil)
	go func() { done <- s.ServeBatches(ctx, readyLedger{r: r}, &consume.Options{AllowShortRetention: true}) }()
	until(t, "the messages of the partitions with a leader run", func() bool { return r.count() == partitions-1 })
	f.Remove()
	until(t, "the message of the other one runs", func() bool { return r.count() == partitions })
	b.settled(t)
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
