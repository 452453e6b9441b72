package failover

import (
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	_ "github.com/jackc/pgx/v5/stdlib" // the driver "pgx"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store/pgstore"
	"github.com/semel-go/semel/store/pgstore/pgkafka"
)

// lease is so short that a call whose worker is gone is found soon.
const lease = time.Second

// form is one way to run calls. call returns what the caller is told.
type form struct {
	name string
	call func(ctx context.Context, key string) (value string, err error)
	// inDatabase: the effects are rows. Otherwise they are the runs of the handler.
	inDatabase bool
	// once: no key may take effect twice, even if nobody was told of the first time.
	once bool
}

// oracle knows what callers were told, and what handlers did outside of the database.
type oracle struct {
	mu    sync.Mutex
	told  map[string]string // by form and key: the value that a caller was told first
	wrong []string
	runs  map[string]int
	acks  int
}

func newOracle() *oracle { return &oracle{told: map[string]string{}, runs: map[string]int{}} }

// acknowledge is called when a caller was told that a key is done.
func (o *oracle) acknowledge(name, value string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.acks++
	if before, ok := o.told[name]; ok && before != value {
		o.wrong = append(o.wrong, fmt.Sprintf("%s: one caller was told %q, a later one %q", name, before, value))
		return
	}
	o.told[name] = value
}

// run is one run of a handler. Its value differs from that of each other run.
func (o *oracle) run(name string) (value string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.runs[name]++
	return fmt.Sprintf("%s, run %d, %x", name, o.runs[name], rand.Uint32())
}

func (o *oracle) errorf(format string, args ...any) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.wrong = append(o.wrong, fmt.Sprintf(format, args...))
}

// application is one process that uses Semel through the link.
type application struct {
	oracle *oracle
	pool   *pgxpool.Pool
	db     *sql.DB
	opened *pgstore.Store // with connections of its own
	lent   *pgstore.Store // with the pool
	forms  []form
}

const effectTable = "effect"

func newApplication(t *testing.T, url string, o *oracle, settle time.Duration) *application {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	a := &application{oracle: o}
	var err error
	a.pool, err = pgxpool.New(ctx, url+"&pool_max_conns=24")
	must(err)
	_, err = a.pool.Exec(ctx, "CREATE TABLE IF NOT EXISTS "+effectTable+" (name text, value text)")
	must(err)
	a.db, err = sql.Open("pgx", url)
	must(err)
	a.opened, err = pgstore.Open(ctx, url+"&pool_max_conns=24", nil)
	must(err)
	a.lent, err = pgstore.New(ctx, a.pool, nil)
	must(err)
	for _, policy := range []semel.Policy{semel.Retry, semel.Park} {
		g, err := semel.New(a.opened, &semel.Options{OnDoubt: policy, Lease: lease, SettleTimeout: settle})
		must(err)
		name := "leased, " + policy.String()
		a.forms = append(a.forms, form{name: name, once: policy == semel.Park, call: func(ctx context.Context, key string) (string, error) {
			return semel.Do(ctx, g, newCall(name, key), func(context.Context, *semel.Execution) (string, error) { return o.run(name + " " + key), nil })
		}})
	}
	for name, st := range map[string]*pgstore.Store{"Atomic, Open": a.opened, "Atomic, New": a.lent} {
		atomic, err := pgstore.NewAtomic(st, nil)
		must(err)
		a.add(name, func(ctx context.Context, key string) (string, error) {
			return pgstore.Do(ctx, atomic, newCall(name, key), func(ctx context.Context, _ *semel.Execution, tx pgx.Tx) (string, error) {
				value := o.run(name + " " + key)
				_, err := tx.Exec(ctx, "INSERT INTO "+effectTable+" VALUES ($1, $2)", name+" "+key, value)
				return value, err
			})
		})
		batch := func(run func(context.Context, []semel.Call, func(context.Context, []*pgstore.PendingCall) error) []pgstore.BatchResult, name string) func(context.Context, string) (string, error) {
			return func(ctx context.Context, key string) (string, error) {
				keys := []string{key, key + " beside"}
				calls := []semel.Call{newCall(name, keys[0]), newCall(name, keys[1])}
				ends := run(ctx, calls, func(ctx context.Context, newCalls []*pgstore.PendingCall) error {
					tx, _ := pgstore.TxFrom(ctx)
					for _, n := range newCalls {
						value := o.run(name + " " + keys[n.Index])
						if _, err := tx.Exec(ctx, "INSERT INTO "+effectTable+" VALUES ($1, $2)", name+" "+keys[n.Index], value); err != nil {
							return err
						}
					}
					return nil
				})
				if ends[1].Err == nil {
					o.acknowledge(name+" "+keys[1], "")
				}
				return "", ends[0].Err
			}
		}
		a.add("batch, "+name, batch(atomic.RunBatch, "batch, "+name))
		a.add("prefetched batch, "+name, batch(func(ctx context.Context, calls []semel.Call, fn func(context.Context, []*pgstore.PendingCall) error) []pgstore.BatchResult {
			b := atomic.Prefetcher().Prefetch(ctx, calls)
			return b.Run(ctx, fn)
		}, "prefetched batch, "+name))
		if st == a.lent {
			name := "Atomic, DoSQL"
			a.add(name, func(ctx context.Context, key string) (string, error) {
				return pgstore.DoSQL(ctx, atomic, a.db, newCall(name, key), func(ctx context.Context, _ *semel.Execution, tx *sql.Tx) (string, error) {
					value := o.run(name + " " + key)
					_, err := tx.ExecContext(ctx, "INSERT INTO "+effectTable+" VALUES ($1, $2)", name+" "+key, value)
					return value, err
				})
			})
		}
	}
	return a
}

func (a *application) add(name string, call func(context.Context, string) (string, error)) {
	a.forms = append(a.forms, form{name: name, call: call, inDatabase: true, once: true})
}

func (a *application) close() {
	_ = a.opened.Close()
	_ = a.lent.Close()
	_ = a.db.Close()
	a.pool.Close()
}

func newCall(name, key string) semel.Call {
	return semel.Call{Operation: "failover", Tenant: name, Key: key, Payload: semel.NoPayload()}
}

// reader is a consumer of one partition, whose watermark moves with the effects.
type reader struct {
	oracle    *oracle
	store     *pgstore.Store
	partition pgkafka.TopicPartition
	watermark *pgkafka.Watermark // nil: owned by nobody, as far as this reader knows
	done      int64              // all offsets below are done, as this reader was told
}

func (a *application) readers(round int) (readers []*reader) {
	for topic, st := range map[string]*pgstore.Store{"Open": a.opened, "New": a.lent} {
		readers = append(readers, &reader{oracle: a.oracle, store: st, partition: pgkafka.TopicPartition{Consumer: "c" + strconv.Itoa(round), Topic: topic}})
	}
	return readers
}

func (r *reader) name(offset int64) string {
	return fmt.Sprintf("watermark, %s, %s, offset %d", r.partition.Topic, r.partition.Consumer, offset)
}

// step owns the partition, or handles its next message.
func (r *reader) step(ctx context.Context) error {
	if r.watermark == nil {
		w, err := pgkafka.Own(ctx, r.store, r.partition, 0)
		if err != nil {
			return err
		}
		if w.Next() < r.done {
			r.oracle.errorf("%s: the watermark is at %d, and the reader was told that it is at %d", r.name(0), w.Next(), r.done)
		}
		r.watermark, r.done = w, w.Next()
		for offset := range w.Next() { // a consumer does not read them again
			r.oracle.acknowledge(r.name(offset), "")
		}
	}
	offset := r.watermark.Next()
	err := r.watermark.Do(ctx, pgkafka.Span{First: offset, Next: offset + 1}, func(ctx context.Context, tx pgx.Tx) error {
		_, err := tx.Exec(ctx, "INSERT INTO "+effectTable+" VALUES ($1, $2)", r.name(offset), "")
		return err
	})
	if err != nil {
		r.watermark = nil
		return err
	}
	r.done = offset + 1
	r.oracle.acknowledge(r.name(offset), "")
	return nil
}
