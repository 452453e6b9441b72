package kafkatest

import (
	"context"
	"fmt"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/consume/semelkafka"
	"github.com/semel-go/semel/consume/semelkafka/kafkapg"
	"github.com/semel-go/semel/store/pgstore"
	"github.com/semel-go/semel/store/pgstore/pgtest"
)

var banks atomic.Int64

// bank is a schema of PostgreSQL with the tables of Semel, and one for effects.
type bank struct {
	url, schema string
	pool        *pgxpool.Pool
	st          *pgstore.Store
	limit       time.Duration // StoreTimeout, of a member behind a cutter; zero: the default
}

// openBank makes a schema of its own on the server that tests share.
func openBank(t testing.TB) *bank {
	t.Helper()
	return openBankAt(t, pgtest.URL(t), fmt.Sprintf("k%d_%d", os.Getpid(), banks.Add(1)))
}

// openBankAt opens the schema, and makes it if it is not there.
func openBankAt(t testing.TB, url, schema string) *bank {
	t.Helper()
	b, err := newBank(context.Background(), url, schema)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.close)
	return b
}

func newBank(ctx context.Context, url, schema string) (*bank, error) {
	pool, err := pgxpool.New(ctx, url)
	if err != nil {
		return nil, err
	}
	st, err := pgstore.New(ctx, pool, &pgstore.Options{Schema: schema, Connections: 4, MaxIdleTx: idleTx})
	if err != nil {
		pool.Close()
		return nil, err
	}
	b := &bank{url: url, schema: schema, pool: pool, st: st}
	if _, err := pool.Exec(ctx, "CREATE TABLE IF NOT EXISTS "+b.table()+" (n bigserial, key text, part int, at bigint)"); err != nil {
		b.close()
		return nil, err
	}
	return b, nil
}

// idleTx is how long a frozen process may hold what it has locked.
const idleTx = 2 * time.Second

func (b *bank) close() {
	_ = b.st.Close()
	b.pool.Close()
}

func (b *bank) table() string { return pgx.Identifier{b.schema, "effect"}.Sanitize() }

// write is a handler: one row for each message, in one statement.
func (b *bank) write(ctx context.Context, tx pgx.Tx, ms []*consume.Message) error {
	keys, parts, offsets := make([]string, len(ms)), make([]int32, len(ms)), make([]int64, len(ms))
	for i, m := range ms {
		keys[i], parts[i], offsets[i] = string(m.Body), m.Origin.Partition, m.Origin.Offset
	}
	_, err := tx.Exec(ctx, "INSERT INTO "+b.table()+" (key, part, at) SELECT * FROM unnest($1::text[], $2::int[], $3::bigint[])", keys, parts, offsets)
	return err
}

// effects are the rows, in the order in which they were written. It asks on a
// connection of its own: the pool's may be dead, and unnoticed.
func (b *bank) effects(t testing.TB) (keys []string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), b.url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	rows, err := conn.Query(t.Context(), "SELECT key FROM "+b.table()+" ORDER BY n")
	if err != nil {
		t.Fatal(err)
	}
	keys, err = pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

// tally says how many keys have an effect, and how many effects are too many.
func tally(effects []string) (keys, double int) {
	seen := map[string]bool{}
	for _, k := range effects {
		if seen[k] {
			double++
		}
		seen[k] = true
	}
	return len(seen), double
}

// form is how a message is known: by its key, or by its offset.
type form string

const (
	keyed   form = "keyed"
	offsets form = "offsets"
)

func forms(t *testing.T, test func(t *testing.T, f form)) {
	for _, f := range []form{keyed, offsets} {
		t.Run(string(f), func(t *testing.T) {
			t.Parallel()
			test(t, f)
		})
	}
}

// formsEverywhere is forms on kfake and on a real Kafka.
func formsEverywhere(t *testing.T, test func(t *testing.T, f form, seed string)) {
	everywhere(t, func(t *testing.T, seed string) {
		forms(t, func(t *testing.T, f form) { test(t, f, seed) })
	})
}

// serve handles messages in the bank until ctx ends.
func (b *bank) serve(ctx context.Context, f form, s *semelkafka.Source, h kafkapg.Handler, o *consume.Options) error {
	if h == nil {
		h = b.write
	}
	var opt consume.Options
	if o != nil {
		opt = *o
	}
	opt.AllowShortRetention = true
	if opt.Backoff == nil {
		opt.Backoff = func(int) time.Duration { return 5 * time.Millisecond }
	}
	switch f {
	case naked:
		return s.ServeBatches(ctx, &nakedLedger{b, h}, &opt)
	case offsets:
		return kafkapg.ServeOffsets(ctx, s, b.st, h, &opt)
	}
	a, err := pgstore.NewAtomic(b.st, &semel.Options{Retention: consume.DefaultRetention, StoreTimeout: b.limit})
	if err != nil {
		return err
	}
	return kafkapg.ServeKeyed(ctx, s, a, consume.Keyed("bank", consume.FromHeader(consume.KeyHeader)), h, &opt)
}

// member serves until the test ends, or stop is called.
func (b *bank) member(t testing.TB, f form, s *semelkafka.Source, h kafkapg.Handler, o *consume.Options) (stop func() error) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- b.serve(ctx, f, s, h, o) }()
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

// watermark returns a partition's watermark in the bank; -1: there is none.
func (b *bank) watermark(t testing.TB, br *broker, partition int32) (next int64) {
	t.Helper()
	err := b.pool.QueryRow(t.Context(), "SELECT coalesce(max(next_offset), -1) FROM "+pgx.Identifier{b.schema, "semel_watermark"}.Sanitize()+
		" WHERE consumer = $1 AND topic = $1 AND partition = $2", br.name, partition).Scan(&next)
	if err != nil {
		t.Fatal(err)
	}
	return next
}
