package main

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// event says that something has happened to an order.
type event struct {
	Type     string `json:"type"`
	Order    string `json:"order"`
	Customer string `json:"customer"`
	Item     string `json:"item"`
	Cents    int64  `json:"cents"`
}

// The types of events.
const (
	orderPlaced    = "order-placed"
	orderBooked    = "order-booked"
	orderCancelled = "order-cancelled"

	paymentTaken    = "payment-taken"
	paymentRefused  = "payment-refused"
	paymentReturned = "payment-returned"

	stockReserved = "stock-reserved"
	stockRefused  = "stock-refused"
)

// service is one of the three services. Its name is also the name of its database, of
// its topic and of its consumer group.
type service struct {
	name   string
	hears  []string // the topics of the others that it consumes
	tables string
	// react is what the service does about an event of another one: it writes with tx, and
	// returns the type of its own event that follows, or "" if none does.
	react func(ctx context.Context, tx pgx.Tx, e *event) (string, error)
}

var services = map[string]*service{
	"orders": {
		name: "orders", hears: []string{"payments", "stock"}, react: endOrder,
		tables: `CREATE TABLE IF NOT EXISTS purchase (id text PRIMARY KEY, state text NOT NULL)`,
	},
	"payments": {
		name: "payments", hears: []string{"orders", "stock"}, react: pay,
		tables: `CREATE TABLE IF NOT EXISTS account (customer text PRIMARY KEY, cents bigint NOT NULL);
			INSERT INTO account VALUES ('ann', 10000), ('bob', 10000), ('eve', 10000) ON CONFLICT DO NOTHING`,
	},
	"stock": {
		name: "stock", hears: []string{"payments"}, react: reserve,
		tables: `CREATE TABLE IF NOT EXISTS item (name text PRIMARY KEY, units int NOT NULL);
			INSERT INTO item VALUES ('book', 100), ('lamp', 1), ('piano', 1) ON CONFLICT DO NOTHING`,
	},
}

// endOrder books or cancels an order.
func endOrder(ctx context.Context, tx pgx.Tx, e *event) (string, error) {
	state, next := "booked", orderBooked
	switch e.Type {
	case stockReserved:
	case paymentRefused, paymentReturned:
		state, next = "cancelled", orderCancelled
	default:
		return "", nil
	}
	_, err := tx.Exec(ctx, "UPDATE purchase SET state = $1 WHERE id = $2", state, e.Order)
	return next, err
}

// pay takes the money of an order, and returns it if there is no stock.
func pay(ctx context.Context, tx pgx.Tx, e *event) (string, error) {
	switch e.Type {
	case orderPlaced:
		done, err := tx.Exec(ctx, "UPDATE account SET cents = cents - $1 WHERE customer = $2 AND cents >= $1", e.Cents, e.Customer)
		if done.RowsAffected() == 0 {
			return paymentRefused, err
		}
		return paymentTaken, err
	case stockRefused: // the compensation
		_, err := tx.Exec(ctx, "UPDATE account SET cents = cents + $1 WHERE customer = $2", e.Cents, e.Customer)
		return paymentReturned, err
	}
	return "", nil
}

// reserve takes a unit out of the stock. It is the last step, and the one that fails.
func reserve(ctx context.Context, tx pgx.Tx, e *event) (string, error) {
	if e.Type != paymentTaken {
		return "", nil
	}
	done, err := tx.Exec(ctx, "UPDATE item SET units = units - 1 WHERE name = $1 AND units > 0", e.Item)
	if done.RowsAffected() == 0 {
		return stockRefused, err
	}
	return stockReserved, err
}
