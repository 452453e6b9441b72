package main

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store/pgstore"
)

func main() {
	ctx := context.Background()
	pool, err := pgxpool.New(ctx, os.Getenv("DATABASE_URL"))
	if err != nil {
		log.Fatal(err)
	}
	defer pool.Close()
	if _, err := pool.Exec(ctx, "CREATE TABLE IF NOT EXISTS account (name text PRIMARY KEY, cents bigint)"); err != nil {
		log.Fatal(err)
	}
	store, err := pgstore.New(ctx, pool, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	bank, err := pgstore.NewAtomic(store, nil)
	if err != nil {
		log.Fatal(err)
	}
	for range 3 {
		call := semel.Call{Operation: "deposit", Tenant: "ann", Key: "deposit-17", Payload: semel.JSON(4200)}
		cents, err := pgstore.Do(ctx, bank, call, func(ctx context.Context, x *semel.Execution, tx pgx.Tx) (cents int64, err error) {
			err = tx.QueryRow(ctx, `INSERT INTO account VALUES ('ann', 4200)
				ON CONFLICT (name) DO UPDATE SET cents = account.cents + 4200 RETURNING cents`).Scan(&cents)
			return cents, err
		})
		fmt.Println(cents, err)
	}
}
