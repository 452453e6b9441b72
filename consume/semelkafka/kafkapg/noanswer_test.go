package kafkapg

import (
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semel-go/semel/consume/driver"
	"github.com/semel-go/semel/consume/semelkafka"
	"github.com/semel-go/semel/store/pgstore"
	"github.com/semel-go/semel/store/pgstore/pgtest"
)

// No statement that needs the watermarks gets an answer, because somebody has locked the
// table. A batch with messages of many partitions waits for StoreTimeout once, and not once
// for each partition. No attempt counts, and when the table is free, each message is done
// once.
func TestOffsets_NoAnswer_BatchWaitsOnce(t *testing.T) {
	const limit, partitions = 500 * time.Millisecond, 60
	p := newShop(t)
	pool, err := pgxpool.New(t.Context(), pgtest.URL(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	schema, _, _ := strings.Cut(p.effectTable, ".")
	if p.store, err = pgstore.New(t.Context(), pool, &pgstore.Options{Schema: strings.Trim(schema, `"`), StoreTimeout: limit}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.store.Close() })
	l := p.offsets(2)
	var batch []semelkafka.Item
	for i := range int32(partitions) {
		partition := orders
		partition.Partition = i
		batch = append(batch, itemsOf(partition, 0, 1)...)
	}
	handleAll := func() {
		t.Helper()
		for range 100 { // on a busy machine a request may take longer than the limit
			done := 0
			for i, r := range l.Handle(t.Context(), batch) {
				switch d := driver.Decide(r, driver.Policy{}); d.Reason {
				case driver.ReasonDone, driver.ReasonDuplicate:
					done++
				case driver.ReasonUnavailable:
				default:
					t.Fatalf("message %d: %v, attempt %d, %v", i, d.Reason, d.Attempt, d.Err)
				}
			}
			if done == partitions {
				return
			}
		}
		t.Fatal("the messages are not done, although the database answers")
	}
	handleAll()
	for i := range batch {
		batch[i] = itemsOf(batch[i].Partition, 1, 2)[0]
	}
	tx, err := p.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), "LOCK TABLE "+p.watermarkTable); err != nil {
		t.Fatal(err)
	}
	for try := range 3 { // the first one has the partitions, the others have to own them again
		began := time.Now()
		wantReasons(t, l.Handle(t.Context(), batch), repeat(driver.ReasonUnavailable, partitions)...)
		if took := time.Since(began); took > partitions/2*limit {
			t.Errorf("try %d has taken %v, with a limit of %v", try, took, limit)
		}
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	handleAll()
	var n, double int
	if err := p.pool.QueryRow(t.Context(), "SELECT count(*), count(*) - count(DISTINCT body) FROM "+p.effectTable).Scan(&n, &double); err != nil || n != 2*partitions || double != 0 {
		t.Errorf("%d effects, %d double, %v; want %d", n, double, err, 2*partitions)
	}
}
