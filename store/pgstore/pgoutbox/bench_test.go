package pgoutbox

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/outbox"
	"github.com/semel-go/semel/store/memstore"
	"github.com/semel-go/semel/store/pgstore/internal/pgwire"
	"github.com/semel-go/semel/store/pgstore/pgtest"
)

// counting is a sink that answers at once.
type counting struct {
	left chan struct{} // one value for each message
}

func (c *counting) Publish(_ context.Context, messages []outbox.Message, answer func(i int, err error)) {
	for i := range messages {
		answer(i, nil)
		c.left <- struct{}{}
	}
}

// fill writes n messages of many keys, as fast as possible.
func (p *shop) fill(b *testing.B, n int) {
	b.Helper()
	body := make([]byte, 200)
	for from := 0; from < n; from += 500 {
		messages := make([]outbox.Message, 0, 500)
		for i := from; i < min(n, from+500); i++ {
			messages = append(messages, outbox.Message{Topic: "orders", OrderKey: fmt.Sprint("key", i%1000), ID: fmt.Sprint(i), Body: body})
		}
		p.put(b, messages...)
	}
}

// drain is how long a publisher takes for n messages.
func (p *shop) drain(b *testing.B, n int) time.Duration {
	b.Helper()
	sink := &counting{left: make(chan struct{}, n)}
	publisher, err := outbox.New(p.box, sink, &outbox.Options{Batch: 512})
	if err != nil {
		b.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	began := time.Now()
	go func() { done <- publisher.Run(ctx) }()
	for range n {
		<-sink.left
	}
	stop() // Run ends when all is deleted
	if err := <-done; err != nil {
		b.Fatal(err)
	}
	return time.Since(began)
}

// published is the pattern of many articles: lock a batch, send it, delete it. It keeps
// no order between its workers.
func (p *shop) published(b *testing.B, n, workers int) time.Duration {
	b.Helper()
	schema := pgwire.DatabaseOf(p.st).Schema
	if _, err := p.app.Exec(b.Context(), `CREATE TABLE `+schema+`.plain AS SELECT position, topic, order_key, id, headers, body FROM `+schema+`.semel_outbox;
		ALTER TABLE `+schema+`.plain ADD PRIMARY KEY (position); DELETE FROM `+schema+`.semel_outbox; ANALYZE `+schema+`.plain`); err != nil {
		b.Fatal(err)
	}
	began := time.Now()
	var all sync.WaitGroup
	for range workers {
		all.Go(func() {
			for more := true; more; {
				err := pgx.BeginFunc(b.Context(), p.app, func(tx pgx.Tx) error {
					rows, err := tx.Query(b.Context(), "SELECT position, topic, order_key, id, headers, body FROM "+schema+".plain ORDER BY position LIMIT 512 FOR UPDATE SKIP LOCKED")
					if err != nil {
						return err
					}
					var position int64
					var m outbox.Message
					var headers string
					var positions []int64
					if _, err := pgx.ForEachRow(rows, []any{&position, &m.Topic, &m.OrderKey, &m.ID, &headers, &m.Body}, func() error {
						positions = append(positions, position)
						return nil
					}); err != nil {
						return err
					}
					more = len(positions) > 0
					_, err = tx.Exec(b.Context(), "DELETE FROM "+schema+".plain WHERE position = ANY ($1)", positions)
					return err
				})
				if err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
	took := time.Since(began)
	if _, err := p.app.Exec(b.Context(), "DROP TABLE "+schema+".plain"); err != nil {
		b.Fatal(err)
	}
	if n == 0 {
		b.Fatal("nothing to publish")
	}
	return took
}

// BenchmarkDrain compares a publisher with SELECT … FOR UPDATE SKIP LOCKED … DELETE, on
// one server with fsync, with sinks that answer at once.
func BenchmarkDrain(b *testing.B) {
	const n = 20_000
	p := newShopAt(b, pgtest.Start(b).URL())
	var ours, one, four time.Duration
	for b.Loop() {
		p.fill(b, n)
		ours += p.drain(b, n)
		p.fill(b, n)
		one += p.published(b, n, 1)
		p.fill(b, n)
		four += p.published(b, n, 4)
	}
	total := float64(n * b.N)
	b.ReportMetric(total/ours.Seconds(), "messages/s")
	b.ReportMetric(total/one.Seconds(), "plain-messages/s")
	b.ReportMetric(one.Seconds()/ours.Seconds(), "×plain")
	b.ReportMetric(four.Seconds()/ours.Seconds(), "×plain-4-workers")
}

// BenchmarkLatency reports the time from commit to sink when the publisher is idle.
func BenchmarkLatency(b *testing.B) {
	p := newShopAt(b, pgtest.Start(b).URL())
	sink := &counting{left: make(chan struct{}, 1)}
	p.start(b, sink, nil)
	var times []time.Duration
	for b.Loop() {
		<-time.After(awakeTime) // then it waits for notifications
		p.put(b, message("k", 1))
		began := time.Now()
		<-sink.left
		times = append(times, time.Since(began))
	}
	b.ReportMetric(float64(percentile(times, 50).Microseconds())/1000, "p50-ms")
	b.ReportMetric(float64(percentile(times, 99).Microseconds())/1000, "p99-ms")
}

// awakeTime is longer than a publisher polls often.
const awakeTime = 600 * time.Millisecond

// BenchmarkPut is a transaction that writes one message, without fsync, so that the cost of
// the statement shows: outside of handlers, and in the handler of a call.
func BenchmarkPut(b *testing.B) {
	p := newShopAt(b, pgtest.Start(b, pgtest.Fast...).URL())
	write := func(ctx context.Context, b *testing.B) {
		b.Helper()
		body := make([]byte, 200)
		for n := 0; b.Loop(); n++ {
			err := pgx.BeginFunc(ctx, p.app, func(tx pgx.Tx) error {
				return p.box.Put(ctx, tx, outbox.Message{Topic: "orders", OrderKey: fmt.Sprint("key", n%1000), Body: body})
			})
			if err != nil {
				b.Fatal(err)
			}
		}
	}
	g, err := semel.New(memstore.New(nil), nil)
	if err != nil {
		b.Fatal(err)
	}
	b.Run("outside", func(b *testing.B) { write(b.Context(), b) })
	b.Run("in_a_call", func(b *testing.B) {
		call := semel.Call{Operation: "order", Tenant: "ann", Key: fmt.Sprint(b.N, time.Now()), Payload: semel.NoPayload()}
		err := semel.Once(b.Context(), g, call, func(ctx context.Context, _ *semel.Execution) error {
			write(ctx, b)
			return nil
		})
		if err != nil {
			b.Fatal(err)
		}
	})
}
