package semelpulsar_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"
	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/consume/driver"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/memstore"
)

func keyed(key string) consume.Message {
	return consume.Message{Body: []byte(key), Headers: []store.Header{{Name: consume.KeyHeader, Value: key}}}
}

// wants checks that an error has all these parts.
func wants(t *testing.T, err error, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("the error is %v; want %q in it", err, part)
		}
	}
}

// consumer is a consumer of the tests over a store in memory.
func consumer(t testing.TB, st store.Store, source consume.KeySource, h consume.Handler, o consume.Options) *consume.Consumer {
	t.Helper()
	g, err := semel.New(st, &semel.Options{Retention: consume.DefaultRetention})
	if err != nil {
		t.Fatal(err)
	}
	o.Retention, o.AllowShortRetention = consume.DefaultRetention, true
	c, err := consume.New(g, consume.Keyed("test", source), h, &o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// serve serves until the test ends, or the returned function is called.
func serve(t testing.TB, c *consume.Consumer, s driver.Source) (stop func() error) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- c.Serve(ctx, s) }()
	stop = sync.OnceValue(func() error {
		cancel()
		return <-done
	})
	t.Cleanup(func() {
		if err := stop(); err != nil && !errors.Is(err, errDead) {
			t.Logf("Serve: %v", err)
		}
	})
	return stop
}

var keyHeader = consume.FromHeader(consume.KeyHeader)

// handled counts the runs of a handler by the message's body.
type handled struct {
	mu   sync.Mutex
	runs map[string]int
	all  []string
}

func (h *handled) run(m *consume.Message) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.runs == nil {
		h.runs = map[string]int{}
	}
	h.runs[string(m.Body)]++
	h.all = append(h.all, string(m.Body))
}

func (h *handled) total() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.all)
}

// The connection is reset while handlers run: the broker sends all again that is not
// acked. No key protects the messages here.
func TestServe_ConnectionReset_MessageRunsOnce(t *testing.T) {
	t.Parallel()
	for name, kind := range kinds {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := open(t, kind)
			b.opt.OrderKey = func(m *consume.Message, _ string) string { return string(m.Body) }
			release := make(chan struct{})
			h := &handled{}
			c := consumer(t, memstore.New(nil), consume.Unprotected(), func(_ context.Context, _ *semel.Execution, m *consume.Message) error {
				h.run(m)
				<-release
				return nil
			}, consume.Options{})
			m := b.member(t)
			serve(t, c, m)
			for i := range 10 {
				b.Publish(t, keyed(fmt.Sprint(i)))
			}
			until(t, "all begun", func() bool { return h.total() == 10 })
			m.cut(false)
			until(t, "connected again", func() bool {
				s := b.stats(t)[b.topic]
				return len(s.Consumers) == 1
			})
			b.Publish(t, keyed("marker")) // it comes after the copies
			until(t, "the marker begun", func() bool { return h.total() > 10 })
			close(release)
			until(t, "all acked", func() bool { return b.Unsettled(t) == 0 })
			if h.total() != 11 {
				t.Errorf("%d runs of 11 messages: %v", h.total(), h.all)
			}
		})
	}
}

// A member that stops keeps what its handlers run, and gives the rest to the others.
func TestServe_Stop_OthersGetTheRest(t *testing.T) {
	t.Parallel()
	b := open(t, pulsar.Shared)
	b.opt.ReceiverQueue = 20
	st, release := memstore.New(nil), make(chan struct{})
	var slow, fast handled
	first := serve(t, consumer(t, st, consume.Unprotected(), func(_ context.Context, _ *semel.Execution, m *consume.Message) error {
		slow.run(m)
		<-release
		return nil
	}, consume.Options{Concurrency: 2, InFlight: 10}), b.member(t))
	until(t, "subscribed", func() bool { return len(b.stats(t)[b.topic].Consumers) == 1 })
	var ms []consume.Message
	for i := range 60 {
		ms = append(ms, keyed(fmt.Sprint(i)))
	}
	b.Publish(t, ms...)
	until(t, "two begun", func() bool { return slow.total() == 2 })
	ended := make(chan error, 1)
	go func() { ended <- first() }()
	serve(t, consumer(t, st, consume.Unprotected(), func(_ context.Context, _ *semel.Execution, m *consume.Message) error {
		fast.run(m)
		return nil
	}, consume.Options{}), b.member(t))
	until(t, "the others handled", func() bool { return fast.total() >= 58 })
	close(release)
	if err := <-ended; err != nil {
		t.Errorf("Serve: %v", err)
	}
	until(t, "all acked", func() bool { return b.Unsettled(t) == 0 })
	if slow.total() != 2 || fast.total() != 58 {
		t.Errorf("%d and %d messages ran, want 2 and 58", slow.total(), fast.total())
	}
}

// The messages of a partition run one at a time unless the options say otherwise.
func TestServe_DefaultOrder_OnePerPartition(t *testing.T) {
	t.Parallel()
	b := open(t, pulsar.Failover)
	b.opt.OrderKey = nil
	if _, err := b.server.Request("PUT", "/persistent/public/default/"+b.topic+"/partitions", "2"); err != nil {
		t.Fatal(err)
	}
	var h handled
	var running [2]atomic.Int64
	c := consumer(t, memstore.New(nil), keyHeader, func(_ context.Context, _ *semel.Execution, m *consume.Message) error {
		if running[m.Origin.Partition].Add(1) > 1 {
			t.Errorf("two messages of partition %d run at once", m.Origin.Partition)
		}
		defer running[m.Origin.Partition].Add(-1)
		<-time.After(time.Millisecond)
		h.run(m)
		return nil
	}, consume.Options{})
	serve(t, c, b.member(t))
	serve(t, c, b.member(t))
	var want []consume.Message
	for i := range 40 {
		m := keyed(fmt.Sprintf("%03d", i))
		m.OrderKey = fmt.Sprint("key", i%5)
		want = append(want, m)
	}
	b.Publish(t, want...)
	until(t, "all acked", func() bool { return b.Unsettled(t) == 0 })
	if h.total() != 40 {
		t.Errorf("%d runs of 40 messages", h.total())
	}
	for k := range 5 {
		var of []string
		for _, body := range h.all {
			if n := strings.TrimLeft(body, "0"); body == "000" && k == 0 || n != "" && atoi(t, n)%5 == k {
				of = append(of, body)
			}
		}
		if !slices.IsSorted(of) {
			t.Errorf("key %d ran in the order %v", k, of)
		}
	}
}

func atoi(t *testing.T, s string) (n int) {
	t.Helper()
	if _, err := fmt.Sscan(s, &n); err != nil {
		t.Fatal(err)
	}
	return n
}

// Batches, compressed, with one message that fails and comes again: the others of its
// batch run once, though no key protects them.
func TestServe_Batch_FailedMessageComesAgain(t *testing.T) {
	t.Parallel()
	for name, kind := range kinds {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := open(t, kind)
			b.opt.OrderKey = nil
			if kind == pulsar.KeyShared {
				b.opt.OrderKey = byHeader // these messages have none
			}
			p, err := b.client.CreateProducer(pulsar.ProducerOptions{
				Topic: b.topic, BatchingMaxPublishDelay: time.Second, BatchingMaxMessages: 30, CompressionType: pulsar.ZLib, BatcherBuilderType: pulsar.KeyBasedBatchBuilder,
			})
			if err != nil {
				t.Fatal(err)
			}
			var h handled
			var failed atomic.Bool
			c := consumer(t, memstore.New(nil), keyHeader, func(_ context.Context, _ *semel.Execution, m *consume.Message) error {
				h.run(m)
				if string(m.Body) == "7" && !failed.Swap(true) {
					return errors.New("not now")
				}
				return nil
			}, consume.Options{Backoff: func(int) time.Duration { return 200 * time.Millisecond }})
			serve(t, c, b.member(t))
			var ms []consume.Message
			for i := range 30 {
				ms = append(ms, keyed(fmt.Sprint(i)))
			}
			send(t, p, ms...)
			until(t, "all acked", func() bool { return h.total() >= 31 && b.Unsettled(t) == 0 })
			if h.total() != 31 || h.runs["7"] != 2 {
				t.Errorf("%d runs of 30 messages, %d of the one that failed; want 31 and 2", h.total(), h.runs["7"])
			}
		})
	}
}
