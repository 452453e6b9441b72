package pgstore

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/pgstore/internal/pgwire"
	"github.com/semel-go/semel/store/pgstore/pgtest"
	"github.com/semel-go/semel/store/storetest"
)

// openFixedClock opens a store whose clock does not advance, with one table.
func openFixedClock(t testing.TB) *Store { return openFixedClockIn(t, allPartitions) }

func openFixedClockIn(t testing.TB, partitions int) *Store {
	url := pgtest.URL(t)
	schema := newSchema(t, url)
	table := pgx.Identifier{schema, "test_clock"}.Sanitize()
	s := openAt(t, url, &Options{Schema: schema, Partitions: partitions, clock: "(SELECT now FROM " + table + ")"})
	mustExec(t, s.ownPool, "CREATE TABLE "+table+" (now bigint NOT NULL)")
	mustExec(t, s.ownPool, "INSERT INTO "+table+" VALUES ($1)", time.Unix(1_700_000_000, 123_456_000).UnixMicro())
	return s
}

func advance(t testing.TB, s *Store, d time.Duration) {
	t.Helper()
	mustExec(t, s.ownPool, "UPDATE "+pgx.Identifier{s.options.Schema, "test_clock"}.Sanitize()+" SET now = now + $1", d.Microseconds())
}

func reopen(t testing.TB, st store.Store) store.Store {
	s := st.(*Store)
	o := s.options
	return openAt(t, pgtest.URL(t), &o)
}

// The suite that every store passes, with a clock that the suite moves.
func TestConformance(t *testing.T) {
	t.Parallel()
	storetest.Run(t, storetest.Harness{
		Open:    func(t testing.TB) store.Store { return openFixedClock(t) },
		Advance: func(t testing.TB, st store.Store, d time.Duration) { advance(t, st.(*Store), d) },
		Reopen:  reopen,
		Begin:   begin,
	})
}

// businessTx is a transaction of the application's.
type businessTx struct {
	*storeTx
	tx    pgx.Tx
	db    *pgxpool.Pool
	table string
}

func begin(t testing.TB, st store.Store) storetest.Tx { return beginAs(t, st, false) }

func beginDeferred(t testing.TB, st store.Store) storetest.Tx { return beginAs(t, st, true) }

func beginAs(t testing.TB, st store.Store, deferInsert bool) storetest.Tx {
	s := st.(*Store)
	table := pgx.Identifier{s.options.Schema, "effect"}.Sanitize()
	if _, err := s.appPool.Exec(context.Background(), "CREATE TABLE IF NOT EXISTS "+table+" (name text)"); err != nil && pgwire.Code(err) != pgwire.UniqueViolation {
		t.Errorf("effect: %v", err) // two at once may both try to make it
	}
	tx, err := s.appPool.Begin(context.Background())
	if err != nil {
		t.Errorf("begin: %v", err)
	}
	return &businessTx{s.newTx(tx, deferInsert), tx, s.appPool, table}
}

// Claim waits for another transaction to end, as the suite expects of one that
// meets it. The store itself says at once that it is in progress.
func (b *businessTx) Claim(ctx context.Context, p store.Proposal) (store.Found, error) {
	for {
		f, err := b.storeTx.Claim(ctx, p)
		if err != nil || f.Won || f.Record.Holder != inProgressHolder {
			return f, err
		}
		<-time.After(time.Millisecond)
	}
}

func (b *businessTx) Effect(ctx context.Context, name string) error {
	_, err := b.tx.Exec(ctx, "INSERT INTO "+b.table+" VALUES ($1)", name)
	return err
}

func (b *businessTx) Effects(ctx context.Context) ([]string, error) {
	rows, err := b.db.Query(ctx, "SELECT name FROM "+b.table)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[string])
}

// Commit writes the claims that nobody settled, which Atomic never has.
func (b *businessTx) Commit(ctx context.Context) error {
	for id := range b.pending {
		if err := b.flushPending(ctx, id); err != nil {
			return err
		}
	}
	return b.tx.Commit(ctx)
}

func (b *businessTx) Rollback(ctx context.Context) error {
	if err := b.tx.Rollback(ctx); !errors.Is(err, pgx.ErrTxClosed) {
		return err
	}
	return nil
}
