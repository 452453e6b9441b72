package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/consume/semelamqp"
	"github.com/semel-go/semel/store/pgstore"
)

type order struct {
	ID    string `json:"id"`
	Item  string `json:"item"`
	Count int    `json:"count"`
}

// tables are the application's own. No constraint makes an order unique, so that
// the example shows Semel's work.
const tables = `
SELECT pg_advisory_xact_lock(1); -- members that start together
CREATE SCHEMA IF NOT EXISTS shop;
CREATE TABLE IF NOT EXISTS shop.stock (item text PRIMARY KEY, remaining int NOT NULL);
CREATE TABLE IF NOT EXISTS shop.orders (id text NOT NULL, item text NOT NULL, count int NOT NULL);
INSERT INTO shop.stock VALUES ('book', 100), ('pen', 100) ON CONFLICT DO NOTHING`

// serve handles orders until ctx ends.
func serve(ctx context.Context, c *config) error {
	pool, err := pgxpool.New(ctx, c.postgres)
	if err != nil {
		return err
	}
	defer pool.Close()
	store, err := pgstore.New(ctx, pool, nil) // makes the schema "semel" in the same database
	if err != nil {
		return err
	}
	defer func() { _ = store.Close() }() // every order is committed
	if _, err := pool.Exec(ctx, tables); err != nil {
		return err
	}
	once, err := pgstore.NewAtomic(store, &semel.Options{Retention: consume.DefaultRetention})
	if err != nil {
		return err
	}
	source, err := semelamqp.New(c.amqp, "orders", &semelamqp.Options{Declare: semelamqp.DeclareAll})
	if err != nil {
		return err
	}
	defer func() { _ = source.Close() }() // Serve has settled all messages
	// The queue keeps messages without a limit, so a message may be older than the
	// oldest record. AllowShortRetention accepts that such a message goes to the quarantine.
	keys := consume.Keyed("orders", consume.FromHeader(consume.KeyHeader), semelamqp.FromMessageID())
	orders, err := consume.New(once, keys, keep, &consume.Options{Concurrency: 8, AllowShortRetention: true})
	if err != nil {
		return err
	}
	return orders.Serve(ctx, source)
}

// keep is the handler. Its writes in the transaction, and the record that
// the message was handled, commit together or not at all.
func keep(ctx context.Context, _ *semel.Execution, m *consume.Message) error {
	var o order
	if err := json.Unmarshal(m.Body, &o); err != nil {
		return semel.Final(err) // to the dead letters; another error is tried again later
	}
	tx, ok := pgstore.TxFrom(ctx)
	if !ok {
		return errors.New("an order needs a transaction")
	}
	if _, err := tx.Exec(ctx, "INSERT INTO shop.orders VALUES ($1, $2, $3)", o.ID, o.Item, o.Count); err != nil {
		return err
	}
	taken, err := tx.Exec(ctx, "UPDATE shop.stock SET remaining = remaining - $1 WHERE item = $2 AND remaining >= $1", o.Count, o.Item)
	if err == nil && taken.RowsAffected() == 0 {
		return semel.Final(fmt.Errorf("%s: there are no %d left", o.Item, o.Count)) // the INSERT is undone
	}
	return err
}
