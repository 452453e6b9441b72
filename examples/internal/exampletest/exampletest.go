// Package exampletest has what the tests of the examples share.
package exampletest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
)

// Run runs an example's command with a verb such as "serve".
type Run func(ctx context.Context, verb string) error

// WaitFor waits until happened returns true. The event names it in the failure.
func WaitFor(t *testing.T, event string, happened func() bool) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(4 * time.Minute); !happened(); <-tick.C {
		if time.Now().After(end) {
			t.Fatalf("not within 4 minutes: %s", event)
		}
	}
}

// Serve runs "serve" until stop is called or the test ends.
func Serve(t *testing.T, run Run) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, "serve") }()
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("serve: %v", err)
		}
	}
	t.Cleanup(stop)
	return stop
}

// Kafka is a broker in this process.
type Kafka struct {
	Addr  string
	admin *kadm.Client
}

// StartKafka starts a broker, which ends with the test.
func StartKafka(t *testing.T) *Kafka {
	t.Helper()
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Close)
	addr := cluster.ListenAddrs()[0]
	client, err := kgo.NewClient(kgo.SeedBrokers(addr))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return &Kafka{addr, kadm.NewClient(client)}
}

// Records counts the records of a topic.
func (k *Kafka) Records(t *testing.T, topic string) (n int64) {
	t.Helper()
	offsets, err := k.admin.ListEndOffsets(t.Context(), topic)
	if err = errors.Join(err, offsets.Error()); err != nil {
		t.Fatal(err)
	}
	offsets.Each(func(o kadm.ListedOffset) { n += o.Offset })
	return n
}

// Committed counts the records that a group has handled.
func (k *Kafka) Committed(t *testing.T, group string) (n int64) {
	t.Helper()
	offsets, err := k.admin.FetchOffsets(t.Context(), group)
	if err != nil {
		return 0 // the group does not exist yet
	}
	offsets.Each(func(o kadm.OffsetResponse) { n += max(0, o.At) })
	return n
}
