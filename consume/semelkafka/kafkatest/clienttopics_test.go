package kafkatest

import (
	"bytes"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/semel-go/semel/consume/driver"
	"github.com/semel-go/semel/consume/semelkafka"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// The options of a client that consumes, given as Options.Client: only the client of Next joins
// the group. A second member that is never polled would keep its partitions for ever.
func TestSource_ClientHasTopics_OneMemberJoins(t *testing.T) {
	t.Parallel()
	c, seed := fake(t)
	b := open(t, seed)
	large := msg("large", "o")
	large.Body = bytes.Repeat([]byte("y"), 3<<20)
	b.to(t, 0, large)
	var joins atomic.Int64
	c.ControlKey(kmsg.JoinGroup.Int16(), func(kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		joins.Add(1)
		return nil, nil, false
	})
	s := b.source(t, func(o *semelkafka.Options) {
		o.Client = append(slices.Clone(o.Client), kgo.ConsumerGroup(b.name), kgo.ConsumeTopics(b.name))
	})
	if _, err := s.Info(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := joins.Load(); n > 0 {
		t.Errorf("%d requests to join before the first Next", n)
	}
	d := take(t, s, 1)[0]
	joins.Store(0)
	if err := d.Forward(t.Context(), driver.DeadLetter, d.Message().Headers); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(time.Second); time.Now().Before(end); <-time.After(10 * time.Millisecond) {
		if n := joins.Load(); n > 0 {
			t.Fatal("the client for large copies joins the group")
		}
	}
}
