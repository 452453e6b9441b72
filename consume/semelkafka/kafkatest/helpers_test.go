package kafkatest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/consume/driver"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/memstore"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// patience is how long a test waits for an event.
const patience = 3 * time.Minute

func until(t testing.TB, what string, ready func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !ready(); <-time.After(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("after %v: not %s", patience, what)
		}
	}
}

func (b *broker) settled(t testing.TB) {
	t.Helper()
	until(t, "all messages acked", func() bool { return b.Unsettled(t) == 0 })
}

// guard is one over a store of its own, or over the one that is given.
func guard(t testing.TB, st *memstore.Store) *semel.Guard {
	t.Helper()
	if st == nil {
		st = memstore.New(nil)
	}
	g, err := semel.New(st, &semel.Options{Retention: consume.DefaultRetention, Lease: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// consumer is one with keys from the header.
func consumer(t testing.TB, g *semel.Guard, h consume.Handler, o *consume.Options) *consume.Consumer {
	t.Helper()
	if o == nil {
		o = &consume.Options{}
	}
	o.AllowShortRetention = true
	if o.Backoff == nil {
		o.Backoff = func(int) time.Duration { return 5 * time.Millisecond }
	}
	c, err := consume.New(g, consume.Keyed("kafkatest", consume.FromHeader(consume.KeyHeader)), h, o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// serve serves until the test ends, or the returned function is called.
func serve(t testing.TB, c *consume.Consumer, s driver.Source) (stop func() error) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- c.Serve(ctx, s) }()
	ended := false
	stop = func() error {
		cancel()
		if ended {
			return nil
		}
		ended = true
		return <-done
	}
	t.Cleanup(func() { _ = stop() })
	return stop
}

// wait is what a channel gives.
func wait[T any](t testing.TB, what string, c <-chan T) (v T) {
	t.Helper()
	select {
	case v = <-c:
	case <-time.After(patience):
		t.Fatalf("after %v: not %s", patience, what)
	}
	return v
}

func nop(context.Context, *semel.Execution, *consume.Message) error { return nil }

// msg is a message with a key, whose body is the key.
func msg(key, orderKey string) consume.Message {
	return consume.Message{OrderKey: orderKey, Body: []byte(key), Headers: []store.Header{{Name: consume.KeyHeader, Value: key}}}
}

// to publishes to one partition.
func (b *broker) to(t testing.TB, partition int32, ms ...consume.Message) {
	t.Helper()
	rs := make([]*kgo.Record, len(ms))
	for i := range ms {
		rs[i] = b.record(&ms[i])
		rs[i].Partition = partition
	}
	if err := b.cl.ProduceSync(context.Background(), rs...).FirstErr(); err != nil {
		t.Fatal(err)
	}
}

// committed is the group's offset in a partition; zero: there is none.
func (b *broker) committed(t testing.TB, partition int32) int64 {
	t.Helper()
	done, err := b.adm.FetchOffsets(context.Background(), b.name)
	if err != nil {
		return 0
	}
	if c, ok := done.Lookup(b.name, partition); ok {
		return max(c.At, 0)
	}
	return 0
}

// rewind sets the group back to the beginning. It must have no members.
func (b *broker) rewind(t testing.TB) {
	t.Helper()
	o := kadm.Offsets{}
	for p := range int32(partitions) {
		o.Add(kadm.Offset{Topic: b.name, Partition: p, At: 0, LeaderEpoch: -1})
	}
	r, err := b.adm.CommitOffsets(context.Background(), b.name, o)
	if err = errors.Join(err, r.Error()); err != nil {
		t.Fatal(err)
	}
}

// cut deletes what partition 0 has before an offset.
func (b *broker) cut(t testing.TB, before int64) {
	t.Helper()
	o := kadm.Offsets{}
	o.Add(kadm.Offset{Topic: b.name, Partition: 0, At: before, LeaderEpoch: -1})
	r, err := b.adm.DeleteRecords(context.Background(), o)
	if err = errors.Join(err, r.Error()); err != nil {
		t.Fatal(err)
	}
}

// take is the next deliveries of a source that nobody serves. Like Serve it
// asks again after an error that does not end the source: on a machine that
// stalls a member may be dropped by the group, and joins again.
func take(t testing.TB, s driver.Source, n int) (ds []driver.Delivery) {
	t.Helper()
	until(t, "delivered", func() bool {
		more, err := s.Next(context.Background(), 100)
		if errors.Is(err, driver.ErrClosed) {
			t.Fatal(err)
		}
		ds = append(ds, more...)
		return len(ds) >= n
	})
	return ds
}
