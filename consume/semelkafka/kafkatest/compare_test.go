package kafkatest

import (
	"context"
	"fmt"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/consume/semelkafka"
	"github.com/semel-go/semel/store/pgstore/pgtest"
	"github.com/twmb/franz-go/pkg/kgo"
)

// contender is one way to consume. It counts in done what it has handled, until
// ctx ends.
type contender struct {
	name   string
	floors map[string]float64 // of its rate, in units of another's
	run    func(ctx context.Context, b *bank, group string, done *atomic.Int64) error
}

// pitch is a topic full of records, and a server with default durability.
type pitch struct {
	br      *broker
	srv     *pgtest.Server
	records int
	run     atomic.Int64
}

// pitchSeed is the address of a real broker with SEMEL_TEST_KAFKA=1, otherwise
// of a kfake in a process of its own: in this process its two million records
// would slow each garbage collection.
func pitchSeed(t *testing.T) string {
	t.Helper()
	if os.Getenv("SEMEL_TEST_KAFKA") == "1" {
		return real(t)
	}
	return fakeBeside(t)
}

// newPitch publishes records, of which dups in a hundred have a key that came
// ten thousand records before.
func newPitch(t *testing.T, records, dups int) *pitch {
	t.Helper()
	seed := pitchSeed(t)
	p := &pitch{records: records, br: open(t, seed), srv: pgtest.Start(t, append([]string{"shared_buffers=512MB", "max_wal_size=6GB", "min_wal_size=1GB"}, pgtest.Durable...)...)}
	p.warm(t)
	cl := client(t, seed, kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerLinger(10*time.Millisecond), kgo.MaxBufferedRecords(20_000))
	const back = 10_000 + 50
	for i := range records {
		key := i
		if i >= back && i%100 >= 100-dups {
			key = i - back
		}
		m := msg(fmt.Sprintf("order-%012d", key), "")
		r := p.br.record(&m)
		r.Partition = int32(i % partitions)
		cl.Produce(t.Context(), r, func(_ *kgo.Record, err error) {
			if err != nil {
				t.Error(err)
			}
		})
	}
	if err := cl.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	return p
}

// warm has the server write until its log reuses files and its buffers are in
// memory, as on a server that has run for a while. New files are filled with
// zeros first, which would cost most for the contender that writes most.
func (p *pitch) warm(t *testing.T) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), p.srv.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	for range 2 {
		for _, sql := range []string{"CREATE TABLE filler (i int, x text)", "INSERT INTO filler SELECT i, repeat('x', 900) FROM generate_series(1, 1500000) i", "DROP TABLE filler", "CHECKPOINT"} {
			if _, err := conn.Exec(t.Context(), sql); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// batched is one of the forms.
func (p *pitch) batched(f form) func(context.Context, *bank, string, *atomic.Int64) error {
	return func(ctx context.Context, b *bank, group string, done *atomic.Int64) error {
		o := p.br.opt
		o.CommitEvery = 0 // the default
		o.Outstanding = 4000
		s, err := semelkafka.New(group, []string{p.br.name}, &o)
		if err != nil {
			return err
		}
		defer func() { _ = s.Close() }()
		return b.serve(ctx, f, s, nil, &consume.Options{Observe: func(_ context.Context, e consume.Event) {
			if e.Kind == consume.EventSettled {
				done.Add(1)
			}
		}})
	}
}

// published is the consumer that people copy: a transaction for each message,
// whose key is inserted first, by some goroutines, and the offsets of a poll
// committed when all of it is done.
func (p *pitch) published(goroutines int) func(context.Context, *bank, string, *atomic.Int64) error {
	return func(ctx context.Context, b *bank, group string, done *atomic.Int64) error {
		cl, err := kgo.NewClient(kgo.SeedBrokers(p.br.seed), kgo.ConsumerGroup(group), kgo.ConsumeTopics(p.br.name), kgo.DisableAutoCommit())
		if err != nil {
			return err
		}
		defer cl.Close()
		todo, fail := make(chan *kgo.Record), make(chan error, 1)
		var poll, workers sync.WaitGroup
		for range goroutines {
			workers.Go(func() {
				for r := range todo {
					if err := oneTx(context.WithoutCancel(ctx), b, r); err != nil {
						select {
						case fail <- err:
						default:
						}
					}
					done.Add(1)
					poll.Done()
				}
			})
		}
		defer workers.Wait()
		defer close(todo)
		for {
			f := cl.PollRecords(ctx, 1000)
			for _, r := range f.Records() {
				if ctx.Err() != nil {
					break
				}
				poll.Add(1)
				todo <- r
			}
			poll.Wait()
			if ctx.Err() != nil {
				return nil
			}
			if err := cl.CommitRecords(ctx, f.Records()...); err != nil && ctx.Err() == nil {
				return err
			}
			select {
			case err := <-fail:
				return err
			default:
			}
		}
	}
}

func oneTx(ctx context.Context, b *bank, r *kgo.Record) error {
	return pgx.BeginFunc(ctx, b.pool, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, "INSERT INTO "+b.in("processed")+" VALUES ($1, 'bank', now()) ON CONFLICT DO NOTHING", string(r.Headers[0].Value))
		if err != nil || tag.RowsAffected() == 0 {
			return err
		}
		_, err = tx.Exec(ctx, "INSERT INTO "+b.table()+" (key, part, at) VALUES ($1, $2, $3)", string(r.Value), r.Partition, r.Offset)
		return err
	})
}

func (b *bank) in(table string) string { return pgx.Identifier{b.schema, table}.Sanitize() }

// rate is how many messages a second a contender handles, in tables of its own
// that are empty.
func (p *pitch) rate(t *testing.T, c *contender, d time.Duration) float64 {
	t.Helper()
	n := p.run.Add(1)
	b := openBankAt(t, p.srv.URL()+"&pool_max_conns=24", fmt.Sprintf("run%d", n))
	if _, err := b.pool.Exec(t.Context(), "CREATE TABLE "+b.in("processed")+" (key text, operation text, at timestamptz NOT NULL, PRIMARY KEY (operation, key))"); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if _, err := b.pool.Exec(context.Background(), "DROP SCHEMA "+pgx.Identifier{b.schema}.Sanitize()+" CASCADE"); err != nil {
			t.Error(err)
		}
	}()
	return p.rateIn(t, c, b, d)
}

// rateIn is rate in existing tables. Each contender begins after a checkpoint.
func (p *pitch) rateIn(t *testing.T, c *contender, b *bank, d time.Duration) float64 {
	t.Helper()
	if _, err := b.pool.Exec(t.Context(), "CHECKPOINT"); err != nil {
		t.Fatal(err)
	}
	var done atomic.Int64
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- c.run(ctx, b, fmt.Sprintf("%s.group%d", p.br.name, p.run.Add(1)), &done) }()
	until(t, "begun", func() bool { return done.Load() > 0 })
	<-time.After(d / 10)
	from, began := done.Load(), time.Now()
	<-time.After(d)
	n, took := done.Load()-from, time.Since(began)
	if done.Load() > int64(p.records)*9/10 {
		t.Errorf("%s: the records run out, and its rate is not what it could be", c.name)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Fatalf("%s: %v", c.name, err)
	}
	return float64(n) / took.Seconds()
}

// TestCompare_PublishedPattern measures messages a second, one business
// row for each, with default durability: SEMEL_TEST_COMPARE=1.
func TestCompare_PublishedPattern(t *testing.T) {
	if os.Getenv("SEMEL_TEST_COMPARE") != "1" {
		t.Skip("a measurement: set SEMEL_TEST_COMPARE=1")
	}
	const sequential, parallel, bare = "1 tx a message", "1 tx a message, 16 goroutines", "1 tx a poll, no deduplication"
	for _, dups := range []int{0, 50} {
		t.Run(fmt.Sprintf("%d%% duplicates", dups), func(t *testing.T) {
			p := newPitch(t, 2_000_000, dups)
			floors := map[string]float64{sequential: 40, parallel: 5, bare: 0}
			cs := []contender{
				{name: sequential, run: p.published(1)}, {name: parallel, run: p.published(16)}, {name: bare, run: p.batched(naked)},
				{name: "kafkapg, keyed", floors: floors, run: p.batched(keyed)}, {name: "kafkapg, offsets", floors: floors, run: p.batched(offsets)},
			}
			const rounds, d = 11, 2 * time.Second // in one second, how it begins counts
			rates := make([]map[string]float64, rounds)
			for round := range rates {
				rates[round] = map[string]float64{}
				for i := range cs {
					if round%2 == 1 { // so that each follows each of the others
						i = len(cs) - 1 - i
					}
					rates[round][cs[i].name] = p.rate(t, &cs[i], d)
				}
			}
			for i := range cs {
				_, rate, _ := spread(rates, func(r map[string]float64) float64 { return r[cs[i].name] })
				line := fmt.Sprintf("%-32s %8.0f/s", cs[i].name, rate)
				for _, other := range []string{sequential, parallel, bare} {
					floor, compared := cs[i].floors[other]
					if !compared {
						continue
					}
					least, ratio, most := spread(rates, func(r map[string]float64) float64 { return r[cs[i].name] / r[other] })
					verdict := "held"
					if ratio < floor {
						verdict = "MISSED"
					}
					line += fmt.Sprintf("  %6.2fx (%.2f to %.2f) of %q (floor %g %s)", ratio, least, most, other, floor, verdict)
				}
				t.Log(line)
			}
		})
	}
}

// spread is what the rounds say: the least, the median and the most.
func spread(rates []map[string]float64, of func(map[string]float64) float64) (least, median, most float64) {
	v := make([]float64, len(rates))
	for i, r := range rates {
		v[i] = of(r)
	}
	slices.Sort(v)
	return v[0], v[len(v)/2], v[len(v)-1]
}

// TestCompare_MoreRecords_CostTheSame measures the keyed form in a table of many
// records against one of a tenth: SEMEL_TEST_COMPARE=1.
func TestCompare_MoreRecords_CostTheSame(t *testing.T) {
	if os.Getenv("SEMEL_TEST_COMPARE") != "1" {
		t.Skip("a measurement: set SEMEL_TEST_COMPARE=1")
	}
	const few, many = 300_000, 3_000_000
	p := newPitch(t, 500_000, 0)
	of := map[int]*bank{}
	for _, n := range []int{few, many} {
		b := openBankAt(t, p.srv.URL()+"&pool_max_conns=24", fmt.Sprintf("rows%d", n))
		of[n] = b
		for _, sql := range []string{
			"ALTER TABLE " + b.in("semel_record") + " DROP CONSTRAINT semel_record_pkey",
			"INSERT INTO " + b.in("semel_record") + ` (fence, until, expires, created, updated, attempt, id, owner, state, policy, format, operation, tenant, key, holder, fingerprint_alg, fingerprint_key, fingerprint, last_error)
				SELECT i, 0, 4102444800000000, 1, 1, 1, gen_random_uuid(), gen_random_uuid(), 4, 0, 1, 'bank', '', ('old-' || i)::bytea, 'holder', 'raw', '', '', '' FROM generate_series(1, ` + fmt.Sprint(n) + ") i",
			"ALTER TABLE " + b.in("semel_record") + " ADD PRIMARY KEY (id)",
			"VACUUM (ANALYZE) " + b.in("semel_record"),
		} {
			if _, err := b.pool.Exec(t.Context(), sql); err != nil {
				t.Fatal(err)
			}
		}
	}
	c := &contender{name: "kafkapg, keyed", run: p.batched(keyed)}
	const rounds = 5
	var ratios []float64
	fresh := func(b *bank) float64 { // the keys of an earlier round are new again
		if _, err := b.pool.Exec(t.Context(), "DELETE FROM "+b.in("semel_record")+" WHERE key LIKE 'order-%'::bytea"); err != nil {
			t.Fatal(err)
		}
		return p.rateIn(t, c, b, 1500*time.Millisecond)
	}
	for range rounds {
		small, large := fresh(of[few]), fresh(of[many])
		ratios = append(ratios, small/large)
		t.Logf("%8.0f/s of %d records, %8.0f/s of %d", small, few, large, many)
	}
	slices.Sort(ratios)
	verdict := "held"
	if ratios[rounds/2] > 1.3 {
		verdict = "MISSED"
	}
	t.Logf("a message costs %.2fx as much when there are ten times the records (%.2f to %.2f; at most 1.3 %s)", ratios[rounds/2], ratios[0], ratios[rounds-1], verdict)
}
