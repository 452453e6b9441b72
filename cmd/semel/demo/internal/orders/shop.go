package orders

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/semel-go/semel/cmd/semel/demo/internal/sqlfile"
)

// Shop stands for the three systems: the bank, the stock and the shop's book of orders.
// Each recognises the key of a request that comes again, as good services do. Safe for
// concurrent use, also by several processes.
type Shop struct {
	db   *sql.DB
	work time.Duration // how long a request takes: half of it before the change, half after
}

// Movement is one change that a system has made.
type Movement struct {
	Key    string // of the request; empty in none
	Undoes string // the key of the request that it undoes; empty: it undoes nothing
	Step   Step
	Order  string
	// Amount is in cents, or in pieces, and negative in Refund and Hold.
	Amount int64
}

// The accounts of the shop. The stock has so many pieces at the start.
const (
	bank, stock = "bank", "stock"
	pieces      = 1_000_000
)

var shopSchema = fmt.Sprintf(`CREATE TABLE IF NOT EXISTS movement (id INTEGER PRIMARY KEY, request TEXT NOT NULL UNIQUE, undoes TEXT NOT NULL,
	step TEXT NOT NULL, order_id TEXT NOT NULL, amount INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS account (name TEXT PRIMARY KEY, amount INTEGER NOT NULL);
INSERT OR IGNORE INTO account VALUES ('%s', 0), ('%s', %d);`, bank, stock, pieces)

// OpenShop opens the shop's file, or makes it.
func OpenShop(ctx context.Context, path string, work time.Duration) (*Shop, error) {
	db, err := sqlfile.Open(ctx, path, shopSchema, sqlfile.Relaxed) // the demo cuts no power
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1) // SQLite has one writer, and this queue is fairer than its lock
	return &Shop{db, work}, nil
}

// Close closes the file.
func (s *Shop) Close() error { return s.db.Close() }

// ErrRefused is the answer of a system that refuses an order for good. It has changed
// nothing.
var ErrRefused = errors.New("refused")

// change sends a request of an order to the system that does the step. It is known if
// the key came before: then nothing is changed.
func (s *Shop) change(ctx context.Context, o *Order, step Step, key, undoes string) (known bool, err error) {
	m := Movement{Key: key, Undoes: undoes, Step: step, Order: o.ID, Amount: amount(step, o.Cents)}
	if err := pause(ctx, s.work/2); err != nil {
		return false, err
	}
	if o.Refuser == step {
		return false, fmt.Errorf("%s of %s: %w", step, o.ID, ErrRefused)
	}
	if known, err = s.commit(ctx, &m); err != nil {
		return false, err
	}
	return known, pause(ctx, s.work/2) // the answer is on its way
}

// amount is what a step changes in its account.
func amount(step Step, cents int64) int64 {
	switch step {
	case Pay:
		return cents
	case Refund:
		return -cents
	case Hold:
		return -1
	}
	return 1
}

// account is the account that a step changes; empty: it changes none.
func account(step Step) string {
	switch step {
	case Pay, Refund:
		return bank
	case Hold, Release:
		return stock
	}
	return ""
}

func (s *Shop) commit(ctx context.Context, m *Movement) (known bool, err error) {
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return false, err
	}
	defer func() { _ = tx.Rollback() }() // harmless after the commit
	res, err := tx.ExecContext(ctx, `INSERT INTO movement (request, undoes, step, order_id, amount) VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING`,
		m.Key, m.Undoes, m.Step, m.Order, m.Amount)
	if err != nil {
		return false, err
	}
	if n, err := res.RowsAffected(); err != nil || n == 0 {
		return err == nil, err
	}
	if _, err := tx.ExecContext(ctx, `UPDATE account SET amount = amount + ? WHERE name = ?`, m.Amount, account(m.Step)); err != nil {
		return false, err
	}
	return false, tx.Commit()
}

// Books is what the systems have written: the data of the audit.
type Books struct {
	Bank, Stock int64      // the accounts
	Movements   []Movement // the oldest first
}

// Books reads the books.
func (s *Shop) Books(ctx context.Context) (b Books, err error) {
	for name, into := range map[string]*int64{bank: &b.Bank, stock: &b.Stock} {
		if err := s.db.QueryRowContext(ctx, `SELECT amount FROM account WHERE name = ?`, name).Scan(into); err != nil {
			return b, err
		}
	}
	rows, err := s.db.QueryContext(ctx, `SELECT request, undoes, step, order_id, amount FROM movement ORDER BY id`)
	if err != nil {
		return b, err
	}
	defer rows.Close()
	for rows.Next() {
		var m Movement
		if err := rows.Scan(&m.Key, &m.Undoes, &m.Step, &m.Order, &m.Amount); err != nil {
			return b, err
		}
		b.Movements = append(b.Movements, m)
	}
	return b, rows.Err()
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d):
		return nil
	}
}
