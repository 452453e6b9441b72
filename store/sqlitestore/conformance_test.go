package sqlitestore

import (
	"context"
	"database/sql"
	"sync"
	"testing"
	"time"

	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/storetest"
)

func harness() storetest.Harness {
	return storetest.Harness{
		Open: func(t testing.TB) store.Store {
			c := newClock()
			s := openNew(t, &Options{Now: c.Now})
			clocks.Store(s, c)
			t.Cleanup(func() { clocks.Delete(s) })
			return s
		},
		Advance: func(_ testing.TB, s store.Store, d time.Duration) {
			c, _ := clocks.Load(s)
			c.(*testClock).advance(d)
		},
		Reopen: func(t testing.TB, s store.Store) store.Store {
			return openAt(t, s.(*Store).path, &Options{Now: s.(*Store).opt.Now})
		},
		Begin: begin,
	}
}

// clocks has the clock of each store that Open made.
var clocks sync.Map

type businessTx struct {
	store.Tx
	store.Journal
	tx *sql.Tx
	db *sql.DB
}

func begin(t testing.TB, s store.Store) storetest.Tx {
	db := application(t, s.(*Store), immediate)
	if _, err := db.Exec("CREATE TABLE IF NOT EXISTS effect (name TEXT)"); err != nil {
		t.Errorf("effect: %v", err)
	}
	tx, err := db.Begin()
	if err != nil {
		t.Errorf("begin: %v", err)
	}
	st := s.(*Store).Tx(tx)
	return &businessTx{st, st.(store.Journal), tx, db}
}

func (b *businessTx) Effect(ctx context.Context, name string) error {
	_, err := b.tx.ExecContext(ctx, "INSERT INTO effect VALUES (?)", name)
	return err
}

func (b *businessTx) Effects(ctx context.Context) (names []string, err error) {
	rows, err := b.db.QueryContext(ctx, "SELECT name FROM effect")
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			return nil, err
		}
		names = append(names, name)
	}
	return names, rows.Err()
}

func (b *businessTx) Commit(context.Context) error { return b.tx.Commit() }

func (b *businessTx) Rollback(context.Context) error {
	if err := b.tx.Rollback(); err != sql.ErrTxDone {
		return err
	}
	return nil
}

// The suite that every store passes.
func TestConformance(t *testing.T) { storetest.Run(t, harness()) }
