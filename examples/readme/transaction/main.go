package main

import (
	"context"
	"database/sql"
	"fmt"
	"log"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store/sqlitestore"
)

func main() {
	ctx := context.Background()
	store, err := sqlitestore.Open(ctx, "shop.db", nil)
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	shop, err := sqlitestore.NewAtomic(store, nil)
	if err != nil {
		log.Fatal(err)
	}
	for range 3 {
		call := semel.Call{Operation: "order", Tenant: "ann", Key: "order-17", Payload: semel.NoPayload()}
		id, err := sqlitestore.Do(ctx, shop, call, func(ctx context.Context, x *semel.Execution, tx *sql.Tx) (int64, error) {
			if _, err := tx.ExecContext(ctx, "CREATE TABLE IF NOT EXISTS orders (id INTEGER PRIMARY KEY, item TEXT)"); err != nil {
				return 0, err
			}
			res, err := tx.ExecContext(ctx, "INSERT INTO orders (item) VALUES ('book')")
			if err != nil {
				return 0, err
			}
			return res.LastInsertId()
		})
		fmt.Println(id, err)
	}
}
