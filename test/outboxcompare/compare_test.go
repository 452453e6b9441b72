package outboxcompare

import (
	"context"
	"errors"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/semel-go/semel/store/pgstore/pgtest"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }

const rounds = 3

// TestOutbox_ComparedWithWatermill measures, with a PostgreSQL server of its own that
// syncs each commit, and kfake in this process: SEMEL_TEST_COMPARE=1. Nothing here is
// judged, because that depends on the machine; ratios are of contenders that take turns.
func TestOutbox_ComparedWithWatermill(t *testing.T) {
	if os.Getenv("SEMEL_TEST_COMPARE") != "1" {
		t.Skip("a measurement: set SEMEL_TEST_COMPARE=1")
	}
	b := newBench(t)
	ours, theirs := semelOutbox(t, b.pool, b.broker), watermillForwarder(t, b.pool, b.broker, "watermill", time.Second)
	often := watermillForwarder(t, b.pool, b.broker, "often", 10*time.Millisecond)
	t.Run("drain", func(t *testing.T) { b.versus(t, "messages/s from a filled table", ours, theirs, b.drain) })
	t.Run("endToEnd", func(t *testing.T) { b.versus(t, "messages/s while they are written", ours, often, b.endToEnd) })
	t.Run("idle", func(t *testing.T) {
		for _, c := range []contender{ours, theirs, often} {
			b.idle(t, c)
		}
	})
}

// bench is the two servers.
type bench struct {
	pool   *pgxpool.Pool
	broker string
	client *kgo.Client
	next   int // number of a message
}

func newBench(t *testing.T) *bench {
	t.Helper()
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(3, "semel", "watermill", "often"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Close)
	b := &bench{broker: cluster.ListenAddrs()[0]}
	if b.pool, err = pgxpool.New(context.Background(), pgtest.Start(t).URL()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.pool.Close)
	if b.client, err = kgo.NewClient(kgo.SeedBrokers(b.broker), kgo.ConsumeTopics("semel", "watermill", "often")); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.client.Close)
	return b
}

// arrived is how many records the broker has, of all contenders.
func (b *bench) arrived(t *testing.T) (n int64) {
	t.Helper()
	offsets, err := kadm.NewClient(b.client).ListEndOffsets(t.Context(), "semel", "watermill", "often")
	if err != nil {
		t.Fatal(err)
	}
	offsets.Each(func(o kadm.ListedOffset) { n += o.Offset })
	return n
}

// until waits until the broker has so many records.
func (b *bench) until(t *testing.T, n int64) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for b.arrived(t) < n {
		<-tick.C
	}
}

// start runs a contender until the returned function is called.
func start(t *testing.T, c contender) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- c.run(ctx) }()
	return func() {
		cancel()
		if err := <-done; err != nil && !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// versus measures two contenders in turns, and logs each round and the medians.
func (b *bench) versus(t *testing.T, unit string, one, other contender, measure func(*testing.T, contender) float64) {
	var ours, theirs, ratios []float64
	for range rounds {
		a, z := measure(t, one), measure(t, other)
		ours, theirs, ratios = append(ours, a), append(theirs, z), append(ratios, a/z)
		t.Logf("%s: %s %.0f, %s %.0f, ratio %.1f", unit, one.name, a, other.name, z, a/z)
	}
	t.Logf("median of %d rounds: %s: %s %.0f, %s %.0f, ratio %.1f", rounds, unit, one.name, median(ours), other.name, median(theirs), median(ratios))
}

func median(values []float64) float64 { return slices.Sorted(slices.Values(values))[len(values)/2] }

// drain is how fast a contender publishes from a filled table.
func (b *bench) drain(t *testing.T, c contender) float64 {
	const n = 10_000
	for range n / 500 {
		if err := c.put(t.Context(), b.next, b.next+500); err != nil {
			t.Fatal(err)
		}
		b.next += 500
	}
	if _, err := b.pool.Exec(t.Context(), "ANALYZE"); err != nil {
		t.Fatal(err)
	}
	before, began := b.arrived(t), time.Now()
	stop := start(t, c)
	b.until(t, before+n)
	took := time.Since(began)
	stop()
	return n / took.Seconds()
}

// endToEnd is how many messages a second pass from 8 writers to the broker. Each
// transaction writes 10 messages.
func (b *bench) endToEnd(t *testing.T, c contender) float64 {
	const writers, each, batch = 8, 50, 10
	stop := start(t, c)
	defer stop()
	before, began := b.arrived(t), time.Now()
	var all sync.WaitGroup
	for w := range writers {
		first := b.next + w*each*batch
		all.Go(func() {
			for i := range each {
				if err := c.put(t.Context(), first+i*batch, first+(i+1)*batch); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
	b.next += writers * each * batch
	b.until(t, before+writers*each*batch)
	return writers * each * batch / time.Since(began).Seconds()
}

// pause is longer than a publisher of Semel polls often after a message.
const pause = 600 * time.Millisecond

// idle logs how long a message takes from its commit to a consumer when nothing else is sent.
func (b *bench) idle(t *testing.T, c contender) {
	const samples = 50
	stop := start(t, c)
	defer stop()
	arrivals, end := b.arrivals(t)
	defer end()
	var took []time.Duration
	for range samples {
		<-time.After(pause)
		if err := c.put(t.Context(), b.next, b.next+1); err != nil {
			t.Fatal(err)
		}
		committed := time.Now()
		for {
			if a := <-arrivals; a.number == b.next {
				took = append(took, max(0, a.at.Sub(committed)))
				break
			}
		}
		b.next++
	}
	slices.Sort(took)
	t.Logf("idle, from commit to consumer: %s: p50 %v, p99 %v of %d", c.name, took[samples/2].Round(100*time.Microsecond), took[samples*99/100].Round(100*time.Microsecond), samples)
}

type arrival struct {
	number int
	at     time.Time
}

// arrivals are the records as a consumer gets them.
func (b *bench) arrivals(t *testing.T) (list chan arrival, end func()) {
	ctx, cancel := context.WithCancel(t.Context())
	list, done := make(chan arrival, 100_000), make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			b.client.PollFetches(ctx).EachRecord(func(r *kgo.Record) {
				for _, h := range r.Headers {
					if h.Key == "idempotency-key" || h.Key == "_watermill_message_uuid" {
						if n, err := strconv.Atoi(string(h.Value)); err == nil {
							list <- arrival{n, time.Now()}
						}
					}
				}
			})
		}
	}()
	return list, func() {
		cancel()
		<-done
	}
}
