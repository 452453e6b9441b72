// Package partialfailure has the examples of docs/partial-failure.md: an order charges a
// customer at a bank, and then holds an item in a warehouse, which may fail.
package partialfailure

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/outbox"
	"github.com/semel-go/semel/saga"
	"github.com/semel-go/semel/store/sqlitestore"
	"github.com/semel-go/semel/store/sqlitestore/sqliteoutbox"
)

type order struct {
	ID, Customer, Item string
	Cents              int
}

func (o order) call() semel.Call {
	return semel.Call{Operation: "order", Tenant: o.Customer, Key: o.ID, Payload: semel.JSON(o)}
}

// The two other systems recognise the key of a request that comes again.
type bank interface {
	Charge(ctx context.Context, key string, cents int) error
	Refund(ctx context.Context, key string, cents int) error
}

type warehouse interface {
	Hold(ctx context.Context, key, item string) error
}

// errSoldOut says that the warehouse will never have the item.
var errSoldOut = errors.New("sold out")

type shop struct {
	guard     *semel.Guard
	atomic    *sqlitestore.Atomic
	box       *sqliteoutbox.Outbox
	bank      bank
	warehouse warehouse
}

// withDerivedKeys repeats everything, with the same keys.
func (s *shop) withDerivedKeys(ctx context.Context, o order) error {
	return semel.Once(ctx, s.guard, o.call(), func(ctx context.Context, x *semel.Execution) error {
		if err := s.bank.Charge(ctx, x.DownstreamKey("charge"), o.Cents); err != nil {
			return err
		}
		err := s.warehouse.Hold(ctx, x.DownstreamKey("hold"), o.Item)
		if !errors.Is(err, errSoldOut) {
			return err // nil, or an error after which the caller sends the order again
		}
		if err := s.bank.Refund(ctx, x.DownstreamKey("refund"), o.Cents); err != nil {
			return err
		}
		return semel.Final(errSoldOut)
	})
}

// withRecoveryPoints repeats only the steps that are not recorded.
func (s *shop) withRecoveryPoints(ctx context.Context, o order) error {
	return semel.Once(ctx, s.guard, o.call(), func(ctx context.Context, x *semel.Execution) error {
		err := semel.Once(ctx, s.guard, x.Step("charge"), func(ctx context.Context, x *semel.Execution) error {
			return s.bank.Charge(ctx, x.DownstreamKey("bank"), o.Cents)
		})
		if err != nil {
			return err
		}
		err = s.warehouse.Hold(ctx, x.DownstreamKey("hold"), o.Item)
		if !errors.Is(err, errSoldOut) {
			return err
		}
		if err := s.bank.Refund(ctx, x.DownstreamKey("refund"), o.Cents); err != nil {
			return err
		}
		return semel.Final(errSoldOut)
	})
}

// asSaga lets Semel undo the steps, also if the caller has left.
func (s *shop) asSaga() saga.Definition[order, string] {
	return saga.Definition[order, string]{
		Name:  "order",
		Steps: []string{"charge", "hold"},
		Run: func(ctx context.Context, r *saga.Run, o order) (string, error) {
			_, err := saga.Step(ctx, r, "charge", func(ctx context.Context, at saga.At) (int, error) {
				return o.Cents, s.bank.Charge(ctx, at.Key(), o.Cents)
			}, func(ctx context.Context, at saga.At, _ int) error {
				return s.bank.Refund(ctx, at.Key(), o.Cents)
			})
			if err != nil {
				return "", err
			}
			return saga.Step(ctx, r, "hold", func(ctx context.Context, at saga.At) (string, error) {
				err := s.warehouse.Hold(ctx, at.Key(), o.Item)
				if errors.Is(err, errSoldOut) {
					err = semel.Final(err) // for good: the charge is undone
				}
				return o.Item, err
			}, nil)
		},
	}
}

// withOutbox does only what one transaction can do. The others hear of it.
func (s *shop) withOutbox(ctx context.Context, o order) error {
	return sqlitestore.Once(ctx, s.atomic, o.call(), func(ctx context.Context, x *semel.Execution, tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, "INSERT INTO purchase (id, state) VALUES (?, 'placed')", o.ID); err != nil {
			return err
		}
		return s.box.Put(ctx, tx, outbox.Message{
			Topic: "orders", OrderKey: o.Customer, ID: x.DownstreamKey("placed"), Body: fmt.Appendf(nil, `{"order": %q, "cents": %d}`, o.ID, o.Cents),
		})
	})
}
