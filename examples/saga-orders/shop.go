package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/semel-go/semel"
)

// shop stands for three other systems: the stock, the bank and the shop's orders. Each
// recognises the key of a request that comes again, as good services do.
type shop struct {
	db    *sql.DB
	pause time.Duration
}

func openShop(ctx context.Context, path string, pause time.Duration) (*shop, error) {
	db, err := sql.Open("sqlite", "file:"+path+"?_pragma=busy_timeout(5000)&_pragma=journal_mode(wal)&_txlock=immediate")
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	_, err = db.ExecContext(ctx, `CREATE TABLE IF NOT EXISTS request (key TEXT PRIMARY KEY, what TEXT, undoes TEXT);
		CREATE TABLE IF NOT EXISTS account (name TEXT PRIMARY KEY, amount INTEGER)`)
	return &shop{db, pause}, err
}

func (s *shop) close() { _ = s.db.Close() }

// once changes an account by an amount, unless the key has come before.
func (s *shop) once(ctx context.Context, key, what, undoes, account string, amount int) error {
	time.Sleep(s.pause)
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // harmless after the commit
	res, err := tx.ExecContext(ctx, `INSERT INTO request VALUES (?, ?, ?) ON CONFLICT DO NOTHING`, key, what, undoes)
	if err != nil {
		return err
	}
	if n, err := res.RowsAffected(); err != nil || n == 0 {
		return err
	}
	_, err = tx.ExecContext(ctx, `INSERT INTO account VALUES (?1, ?2) ON CONFLICT (name) DO UPDATE SET amount = amount + ?2`, account, amount)
	if err != nil {
		return err
	}
	return tx.Commit()
}

func (s *shop) hold(ctx context.Context, key, item string) error {
	return s.once(ctx, key, "hold", "", "stock of "+item, -1)
}

func (s *shop) release(ctx context.Context, key, held, item string) error {
	return s.once(ctx, key, "release", held, "stock of "+item, 1)
}

// charge refuses customers without money for good.
func (s *shop) charge(ctx context.Context, key, customer string, cents int) (string, error) {
	if strings.HasPrefix(customer, "poor") {
		return "", semel.Final(errors.New("the bank refuses " + customer))
	}
	return "paid by " + customer, s.once(ctx, key, "charge", "", "bank", cents)
}

func (s *shop) refund(ctx context.Context, key, charged, _ string, cents int) error {
	return s.once(ctx, key, "refund", charged, "bank", -cents)
}

// book refuses items that the shop does not have.
func (s *shop) book(ctx context.Context, key string, o Order) error {
	if o.Item == "ghost" {
		return semel.Final(errors.New("the shop has no " + o.Item))
	}
	return s.once(ctx, key, "book", "", "orders", 1)
}

// audit compares stock, money and orders, which must add up.
func (s *shop) audit(ctx context.Context, count int, out io.Writer) error {
	amounts := map[string]int{}
	for _, name := range []string{"stock of book", "stock of ghost", "bank", "orders"} {
		var amount int
		if err := s.db.QueryRowContext(ctx, `SELECT coalesce(sum(amount), 0) FROM account WHERE name = ?`, name).Scan(&amount); err != nil {
			return err
		}
		amounts[name] = amount
	}
	booked := amounts["orders"]
	_, err := fmt.Fprintf(out, "%d orders: %d booked, %d cents in the bank, %d books and %d ghosts held\n",
		count, booked, amounts["bank"], -amounts["stock of book"], -amounts["stock of ghost"])
	if err != nil {
		return err
	}
	if amounts["bank"] != 1000*booked || amounts["stock of book"] != -booked || amounts["stock of ghost"] != 0 {
		return errors.New("the books do not add up")
	}
	return nil
}
