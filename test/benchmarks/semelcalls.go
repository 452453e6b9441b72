package main

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/pgstore"
	"github.com/semel-go/semel/store/sqlitestore"
)

// tenant is the tenant of all calls.
const tenant = "acc-8e03978e"

// answer is what each call keeps: 200 bytes, as a small API answers.
const answer = `{"id":"pay_0123456789","amount":4200,"currency":"EUR","status":"succeeded","created":"2026-11-28T17:00:00Z","customer":"cus_0123456789","description":"one of many","metadata":{"order":"0123456789"}}`

// payload is what calls with one key have in common.
type payload struct {
	Amount   int    `json:"amount"`
	Currency string `json:"currency"`
}

func callOf(key string) semel.Call {
	return semel.Call{Operation: "charge", Tenant: tenant, Key: key, Payload: semel.JSON(payload{4200, "EUR"})}
}

// outcome is the answer as a call keeps it.
func outcome() store.Outcome {
	return store.Outcome{Code: 201, Codec: "json", Body: []byte(answer)}
}

// guarded makes calls through a Guard, or a store's Atomic, whose handler does work.
func guarded(run semel.Runner, work func(ctx context.Context, key string) error) func(ctx context.Context, key string, isNew bool) error {
	return func(ctx context.Context, key string, isNew bool) error {
		ran := false
		res, err := run.Run(ctx, callOf(key), func(ctx context.Context, _ *semel.Execution) (store.Outcome, error) {
			ran = true
			return outcome(), work(ctx, key)
		})
		return checked(err, string(res.Outcome.Body), ran, isNew)
	}
}

// leased makes calls with a store whose handler does nothing.
func leased(st store.Store) (func(ctx context.Context, key string, isNew bool) error, error) {
	guard, err := semel.New(st, nil)
	return guarded(guard, func(context.Context, string) error { return nil }), err
}

// insertBusiness is the work of handlers in a transaction.
const insertBusiness = "INSERT INTO business VALUES ($1, 1)"

func inPostgres(a *pgstore.Atomic) func(ctx context.Context, key string, isNew bool) error {
	return guarded(a, func(ctx context.Context, key string) error {
		tx, ok := pgstore.TxFrom(ctx)
		if !ok {
			return fmt.Errorf("there is no %T", (pgx.Tx)(nil))
		}
		_, err := tx.Exec(ctx, insertBusiness, key)
		return err
	})
}

func inSQLite(a *sqlitestore.Atomic) func(ctx context.Context, key string, isNew bool) error {
	return guarded(a, func(ctx context.Context, key string) error {
		tx, ok := sqlitestore.TxFrom(ctx)
		if !ok {
			return fmt.Errorf("there is no transaction")
		}
		_, err := tx.ExecContext(ctx, insertBusiness, key)
		return err
	})
}

// checked is an error if a call did not get the answer, or ran although it should not,
// or the other way round.
func checked(err error, got string, ran, isNew bool) error {
	if err == nil && (got != answer || ran != isNew) {
		err = fmt.Errorf("the call got %.40q, and its handler ran: %v, want %v", got, ran, isNew)
	}
	return err
}
