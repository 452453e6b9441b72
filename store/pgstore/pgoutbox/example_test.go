package pgoutbox_test

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semel-go/semel/outbox"
	"github.com/semel-go/semel/store/pgstore"
	"github.com/semel-go/semel/store/pgstore/pgoutbox"
)

// A transaction of the application writes a message with its effect.
func Example() {
	withdraw := func(ctx context.Context, pool *pgxpool.Pool, st *pgstore.Store) error {
		box, err := pgoutbox.New(st, nil)
		if err != nil {
			return err
		}
		defer box.Close()
		err = pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
			if _, err := tx.Exec(ctx, "UPDATE account SET cents = cents - 100 WHERE name = 'ann'"); err != nil {
				return err
			}
			return box.Put(ctx, tx, outbox.Message{Topic: "accounts", OrderKey: "ann", Body: []byte(`{"cents": -100}`)})
		})
		return err
	}
	_ = withdraw
}
