package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/consume/semelkafka"
	"github.com/semel-go/semel/consume/semelkafka/kafkapg"
	"github.com/semel-go/semel/store/pgstore"
)

type payment struct {
	ID    string `json:"id"`
	From  string `json:"from"`
	To    string `json:"to"`
	Cents int64  `json:"cents"`
}

// tables are the application's own.
const tables = `
SELECT pg_advisory_xact_lock(1); -- members that start together
CREATE SCHEMA IF NOT EXISTS bank;
CREATE TABLE IF NOT EXISTS bank.account (name text PRIMARY KEY, cents bigint NOT NULL CHECK (cents >= 0));
INSERT INTO bank.account VALUES ('ann', 10000), ('bob', 10000), ('eve', 10000) ON CONFLICT DO NOTHING`

// serve makes payments until ctx ends.
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
	defer func() { _ = store.Close() }() // every payment is committed
	if _, err := pool.Exec(ctx, tables); err != nil {
		return err
	}
	once, err := pgstore.NewAtomic(store, &semel.Options{Retention: consume.DefaultRetention})
	if err != nil {
		return err
	}
	source, err := semelkafka.New(group, []string{topic}, &semelkafka.Options{Client: []kgo.Opt{kgo.SeedBrokers(c.kafka)}})
	if err != nil {
		return err
	}
	defer func() { _ = source.Close() }() // Serve has settled all messages
	keys := consume.Keyed("payments", consume.FromHeader(consume.KeyHeader))
	return kafkapg.ServeKeyed(ctx, source, once, keys, payAll, nil)
}

// payAll is the handler. It makes all payments of a batch in one transaction: its
// writes and Semel's records of the messages commit together or not at all. If a
// payment fails, Semel finds it, and the others are made.
func payAll(ctx context.Context, tx pgx.Tx, ms []*consume.Message) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute) // ends statements that get no answer
	defer cancel()
	payments := make([]payment, len(ms))
	var accounts []string
	for i, m := range ms {
		if err := json.Unmarshal(m.Body, &payments[i]); err != nil {
			return semel.Final(err) // to the dead letters; another error is tried again later
		}
		accounts = append(accounts, payments[i].From, payments[i].To)
	}
	// Two members that make payments between the same accounts must lock them in the same order.
	if _, err := tx.Exec(ctx, "SELECT FROM bank.account WHERE name = ANY($1) ORDER BY name FOR UPDATE", accounts); err != nil {
		return err
	}
	for _, p := range payments {
		if err := pay(ctx, tx, p); err != nil {
			return err
		}
	}
	return nil
}

func pay(ctx context.Context, tx pgx.Tx, p payment) error {
	for _, move := range []struct {
		name  string
		cents int64
	}{{p.To, p.Cents}, {p.From, -p.Cents}} {
		done, err := tx.Exec(ctx, "UPDATE bank.account SET cents = cents + $1 WHERE name = $2 AND cents + $1 >= 0", move.cents, move.name)
		if err != nil {
			return err
		}
		if done.RowsAffected() == 0 {
			return semel.Final(fmt.Errorf("account %q does not exist, or has less than the payment", move.name)) // the writes of this payment are undone
		}
	}
	return nil
}
