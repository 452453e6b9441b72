package kafkapg

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/consume/driver"
	"github.com/semel-go/semel/consume/semelkafka"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/pgstore"
	"github.com/semel-go/semel/store/pgstore/pgtest"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }

// orders is the partition of all messages for which a test names no other one.
var orders = semelkafka.GroupPartition{Group: "billing", Topic: "orders", TopicID: "id-1", Partition: 3}

var schemas atomic.Int64

// newSchema returns the name of a schema that no other test uses.
func newSchema() string { return fmt.Sprintf("k%d_%d", os.Getpid(), schemas.Add(1)) }

// shop is a schema with Semel's tables, a table of effects, and a handler that
// writes to it.
type shop struct {
	pool           *pgxpool.Pool
	store          *pgstore.Store
	effectTable    string
	watermarkTable string
	errs           map[string]error // by body: the error that write returns after it has written all messages
	runs           []string         // the bodies of each run of write
}

func newShop(t *testing.T) *shop { return newShopIn(t, 0) }

// newShopIn makes a shop whose records are in several partitions.
func newShopIn(t *testing.T, partitions int) *shop {
	t.Helper()
	pool, err := pgxpool.New(t.Context(), pgtest.URL(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	schema := newSchema()
	st, err := pgstore.New(t.Context(), pool, &pgstore.Options{Schema: schema, Partitions: partitions})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = st.Close() })
	p := &shop{
		pool: pool, store: st, errs: map[string]error{},
		effectTable: pgx.Identifier{schema, "effect"}.Sanitize(), watermarkTable: pgx.Identifier{schema, "semel_watermark"}.Sanitize(),
	}
	p.exec(t, "CREATE TABLE "+p.effectTable+" (n bigserial, body text)")
	return p
}

func (p *shop) exec(t *testing.T, sql string) {
	t.Helper()
	if _, err := p.pool.Exec(t.Context(), sql); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

// write is a handler: it writes a row for each message.
func (p *shop) write(ctx context.Context, tx pgx.Tx, ms []*consume.Message) (err error) {
	bodies := make([]string, len(ms))
	for i, m := range ms {
		bodies[i] = string(m.Body)
		err = errors.Join(err, p.errs[bodies[i]])
	}
	p.runs = append(p.runs, strings.Join(bodies, " "))
	if _, werr := tx.Exec(ctx, "INSERT INTO "+p.effectTable+" (body) SELECT unnest($1::text[])", bodies); werr != nil {
		return werr
	}
	return err
}

// wantEffects compares the effects, in the order in which they were written.
func (p *shop) wantEffects(t *testing.T, bodies ...string) {
	t.Helper()
	rows, _ := p.pool.Query(t.Context(), "SELECT body FROM "+p.effectTable+" ORDER BY n")
	got, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil || !slices.Equal(got, bodies) {
		t.Errorf("the effects are %q, error %v; want %q", got, err, bodies)
	}
}

func (p *shop) offsets(maxAttempts int) *offsetsLedger {
	return newOffsetsLedger(p.store, p.write, maxAttempts)
}

func (p *shop) keyed(t *testing.T, maxAttempts int) *keyedLedger {
	t.Helper()
	a, err := pgstore.NewAtomic(p.store, nil)
	if err != nil {
		t.Fatal(err)
	}
	return newKeyedLedger(a, consume.Keyed("billing", consume.FromHeader(consume.KeyHeader)), p.write, &consume.Options{MaxAttempts: maxAttempts})
}

// named makes messages from names of the form "body" or "body/orderkey". The body
// is the idempotency key too, unless it begins with a minus: then there is no key.
func named(names ...string) (batch []semelkafka.Item) {
	for i, name := range names {
		body, orderKey, _ := strings.Cut(name, "/")
		m := &consume.Message{OrderKey: orderKey, Body: []byte(body), Origin: consume.Origin{Topic: orders.Topic, Partition: orders.Partition, Offset: int64(i), ID: body}}
		if !strings.HasPrefix(body, "-") {
			m.Headers = []store.Header{{Name: consume.KeyHeader, Value: body}}
		}
		batch = append(batch, semelkafka.Item{Message: m, Partition: orders, From: int64(i)})
	}
	return batch
}

// items makes the messages of a range of offsets.
func items(from, next int64) []semelkafka.Item { return itemsOf(orders, from, next) }

// itemsOf makes the messages of a partition. Their bodies are "partition/offset".
func itemsOf(partition semelkafka.GroupPartition, from, next int64) (batch []semelkafka.Item) {
	for i := from; i < next; i++ {
		m := &consume.Message{Body: fmt.Appendf(nil, "%d/%d", partition.Partition, i), Origin: consume.Origin{Topic: partition.Topic, Partition: partition.Partition, Offset: i}}
		batch = append(batch, semelkafka.Item{Message: m, Partition: partition, From: i})
	}
	return batch
}

// wantReasons compares the decisions about a batch.
func wantReasons(t *testing.T, results []driver.Result, want ...driver.Reason) {
	t.Helper()
	for i, r := range results {
		if d := driver.Decide(r, driver.Policy{}); d.Reason != want[i] {
			t.Errorf("message %d: %v, attempt %d, %v; want %v", i, d.Reason, d.Attempt, d.Err, want[i])
		}
	}
}

func repeat(reason driver.Reason, n int) []driver.Reason {
	return slices.Repeat([]driver.Reason{reason}, n)
}
