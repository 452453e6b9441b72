package sqlitestore_test

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store/sqlitestore"
)

const order = "order"

// The record and the handler's own writes commit in one transaction.
func ExampleDo() {
	dir, err := os.MkdirTemp("", "semel-example")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	ctx := context.Background()

	st, err := sqlitestore.Open(ctx, filepath.Join(dir, "shop.db"), nil)
	if err != nil {
		panic(err)
	}
	defer st.Close()
	db, err := sql.Open("sqlite", filepath.Join(dir, "shop.db")) // your own tables live in the same file
	if err != nil {
		panic(err)
	}
	defer db.Close()
	if _, err := db.ExecContext(ctx, "CREATE TABLE orders (id TEXT, item TEXT)"); err != nil {
		panic(err)
	}
	orders, err := sqlitestore.NewAtomic(st, nil)
	if err != nil {
		panic(err)
	}
	call := semel.Call{Operation: order, Tenant: "ann", Key: "order-1", Payload: semel.NoPayload()}
	for range 3 {
		id, err := sqlitestore.Do(ctx, orders, call, func(ctx context.Context, x *semel.Execution, tx *sql.Tx) (string, error) {
			id := x.DownstreamKey("id")
			_, err := tx.ExecContext(ctx, "INSERT INTO orders VALUES (?, 'book')", id)
			return id, err
		})
		fmt.Println(len(id), err)
	}
	var n int
	if err := db.QueryRowContext(ctx, "SELECT count(*) FROM orders").Scan(&n); err != nil {
		panic(err)
	}
	fmt.Println(n, "order")
	// Output:
	// 36 <nil>
	// 36 <nil>
	// 36 <nil>
	// 1 order
}
