package consumer

import (
	"context"
	"database/sql"
	"encoding/json"
	"time"

	"github.com/semel-go/semel/cmd/semel/demo/internal/pipeline"
	"github.com/semel-go/semel/cmd/semel/demo/internal/sqlfile"
	"github.com/semel-go/semel/consume"
)

// OpenBook opens the database of charges as the application does, with as many
// connections as its handlers need. It makes the tables if they are not there.
func OpenBook(ctx context.Context, path string) (*sql.DB, error) {
	// A charge names its order, but nothing prevents a second charge of
	// an order. A unique constraint would, but the next effect may be an e-mail.
	const tables = "CREATE TABLE IF NOT EXISTS charge (id INTEGER PRIMARY KEY, order_id TEXT NOT NULL, amount INTEGER NOT NULL);" +
		"CREATE TABLE IF NOT EXISTS seen (message TEXT PRIMARY KEY)"
	return sqlfile.Open(ctx, path, tables, sqlfile.Full)
}

// execer is a *sql.DB or a *sql.Tx.
type execer interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

// charge is the effect, which takes a while.
func charge(ctx context.Context, db execer, m *consume.Message, work time.Duration) error {
	var p pipeline.Placed
	if err := json.Unmarshal(m.Body, &p); err != nil {
		return err
	}
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(work):
	}
	_, err := db.ExecContext(ctx, "INSERT INTO charge (order_id, amount) VALUES (?, ?)", p.Order, p.Amount)
	return err
}

// Charges reads the charges of each order, in the order of their insertion.
func Charges(ctx context.Context, db *sql.DB) (map[string][]int64, error) {
	rows, err := db.QueryContext(ctx, "SELECT order_id, amount FROM charge ORDER BY id")
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	amounts := map[string][]int64{}
	for rows.Next() {
		var order string
		var amount int64
		if err := rows.Scan(&order, &amount); err != nil {
			return nil, err
		}
		amounts[order] = append(amounts[order], amount)
	}
	return amounts, rows.Err()
}
