package pgstore_test

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store/pgstore"
	"github.com/semel-go/semel/store/pgstore/pgkafka"
)

// Transfer is a request to move money between two rows.
type Transfer struct {
	ID       string
	From, To string
	Cents    int64
}

// The record and the two updates commit together, so the money moves once,
// however often the request comes.
func ExampleDo() {
	ctx := context.Background()
	pool, err := pgxpool.New(ctx, "postgres://app@db.internal/shop")
	if err != nil {
		panic(err)
	}
	defer pool.Close()
	st, err := pgstore.New(ctx, pool, nil)
	if err != nil {
		panic(err)
	}
	defer st.Close()
	transfers, err := pgstore.NewAtomic(st, nil)
	if err != nil {
		panic(err)
	}

	move := func(ctx context.Context, t Transfer) (balance int64, err error) {
		call := semel.Call{Operation: "transfer", Tenant: t.From, Key: t.ID, Payload: semel.JSON(t)}
		return pgstore.Do(ctx, transfers, call, func(ctx context.Context, _ *semel.Execution, tx pgx.Tx) (int64, error) {
			if _, err := tx.Exec(ctx, "UPDATE account SET cents = cents + $1 WHERE name = $2", t.Cents, t.To); err != nil {
				return 0, err
			}
			var left int64
			err := tx.QueryRow(ctx, "UPDATE account SET cents = cents - $1 WHERE name = $2 RETURNING cents", t.Cents, t.From).Scan(&left)
			return left, err
		})
	}
	_, _ = move(ctx, Transfer{ID: "7f3c", From: "ann", To: "bob", Cents: 4200})
}

// Many messages of one poll share the caller's transaction: one that fails
// takes nothing with it, and all commit at once.
func ExampleAtomic_In() {
	handle := func(ctx context.Context, a *pgstore.Atomic, tx pgx.Tx, ids []string) error {
		for _, id := range ids {
			call := semel.Call{Operation: "orders consumer", Tenant: semel.Shared, Key: id, Payload: semel.NoPayload()}
			err := semel.Once(ctx, a.In(tx), call, func(ctx context.Context, _ *semel.Execution) error {
				_, err := tx.Exec(ctx, "INSERT INTO shipment (order_id) VALUES ($1)", id)
				return err
			})
			if err != nil {
				continue // it is left for the next poll; the others go on
			}
		}
		return tx.Commit(ctx)
	}
	_ = handle
}

// A poll in one transaction, with one statement for the rows of all messages
// that are new. One that cannot be done takes no other with it.
func ExampleAtomic_RunBatch() {
	type message struct{ ID, Order string }
	handle := func(ctx context.Context, a *pgstore.Atomic, poll []message, ack func(message)) {
		calls := make([]semel.Call, len(poll))
		for i, m := range poll {
			calls[i] = semel.Call{Operation: "orders consumer", Tenant: semel.Shared, Key: m.ID, Payload: semel.JSON(m)}
		}
		ends := a.RunBatch(ctx, calls, func(ctx context.Context, newCalls []*pgstore.PendingCall) error {
			var orders []string
			for _, f := range newCalls {
				if m := poll[f.Index]; m.Order == "" {
					f.Err = semel.Final(errors.New("there is no order"))
				} else {
					orders = append(orders, m.Order)
				}
			}
			tx, _ := pgstore.TxFrom(ctx)
			_, err := tx.Exec(ctx, "INSERT INTO shipment (order_id) SELECT unnest($1::text[])", orders)
			return err
		})
		for i, e := range ends {
			if failure, final := errors.AsType[*semel.Failure](e.Err); e.Err == nil || final {
				_ = failure // for the dead letters
				ack(poll[i])
			}
		}
	}
	_ = handle
}

// An owner of a partition of Kafka moves its offset with the effects.
func Example_kafka() {
	assigned := func(ctx context.Context, st *pgstore.Store, partition pgkafka.TopicPartition, read func(from int64) (first, next int64, orders []string)) error {
		w, err := pgkafka.Own(ctx, st, partition, 0)
		if err != nil {
			return err
		}
		for {
			first, next, orders := read(w.Next())
			err := w.Do(ctx, pgkafka.Span{First: first, Next: next}, func(ctx context.Context, tx pgx.Tx) error {
				_, err := tx.Exec(ctx, "INSERT INTO shipment (order_id) SELECT unnest($1::text[])", orders)
				return err
			})
			if err != nil {
				return err // pgkafka.ErrFenced: another has the partition
			}
		}
	}
	_ = assigned
}
