package partialfailure

import (
	"context"
	"database/sql"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/saga"
	"github.com/semel-go/semel/store/sqlitestore"
	"github.com/semel-go/semel/store/sqlitestore/sqliteoutbox"
)

var errDown = errors.New("connection refused")

// others are the bank and the warehouse.
type others struct {
	keys    map[string]bool
	cents   int // in the bank
	held    int
	charges int   // requests, repeats included
	fail    error // of the warehouse, once
}

func (b *others) once(key string, effect func()) error {
	if !b.keys[key] {
		b.keys[key] = true
		effect()
	}
	return nil
}

func (b *others) Charge(_ context.Context, key string, cents int) error {
	b.charges++
	return b.once(key, func() { b.cents += cents })
}

func (b *others) Refund(_ context.Context, key string, cents int) error {
	return b.once(key, func() { b.cents -= cents })
}

func (b *others) Hold(_ context.Context, key, item string) error {
	if item == "ghost" {
		return errSoldOut
	}
	if err := b.fail; err != nil {
		b.fail = nil
		return err
	}
	return b.once(key, func() { b.held++ })
}

func openShop(t *testing.T) (*shop, *others, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "shop.db")
	store, err := sqlitestore.Open(t.Context(), path, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	o := &others{keys: map[string]bool{}, fail: errDown}
	s := &shop{bank: o, warehouse: o}
	var errs [3]error
	s.guard, errs[0] = semel.New(store, nil)
	s.atomic, errs[1] = sqlitestore.NewAtomic(store, nil)
	s.box, errs[2] = sqliteoutbox.New(store)
	if err := errors.Join(errs[:]...); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.box.Close() })
	return s, o, path
}

// The warehouse is down at the first attempt: the customer is charged once. If the item is
// sold out, the charge is undone, and a caller that repeats gets the same failure.
func TestAnswers_ChargeSucceededAndStockFailed_ChargedOnceOrUndone(t *testing.T) {
	for name, c := range map[string]struct {
		do      func(s *shop) func(ctx context.Context, o order) error
		charges int // requests to the bank for the first order
	}{
		"derived keys":    {func(s *shop) func(context.Context, order) error { return s.withDerivedKeys }, 2},
		"recovery points": {func(s *shop) func(context.Context, order) error { return s.withRecoveryPoints }, 1},
		"saga": {func(s *shop) func(context.Context, order) error {
			d := s.asSaga()
			d.Backoff = func(int) time.Duration { return 0 }
			orders, err := saga.New(s.guard, d)
			return func(ctx context.Context, o order) error {
				if err != nil {
					return err
				}
				_, err := orders.Do(ctx, o.Customer, o.ID, o)
				return err
			}
		}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			s, o, _ := openShop(t)
			do := c.do(s)
			first := order{"o1", "ann", "book", 1200}
			if err := do(t.Context(), first); !errors.Is(err, errDown) {
				t.Fatalf("the first attempt: %v, want %v", err, errDown)
			}
			for range 2 {
				if err := do(t.Context(), first); err != nil {
					t.Fatal(err)
				}
			}
			if o.cents != 1200 || o.held != 1 || o.charges != c.charges {
				t.Errorf("%d cents are charged by %d requests, and %d items are held; want 1200 by %d, and 1", o.cents, o.charges, o.held, c.charges)
			}
			for range 2 {
				err := do(t.Context(), order{"o2", "bob", "ghost", 100})
				if _, failed := errors.AsType[*semel.Failure](err); !failed {
					t.Errorf("an item that is sold out: %v, want a *semel.Failure", err)
				}
			}
			if o.cents != 1200 || o.held != 1 {
				t.Errorf("after the failed order there are %d cents and %d held items, want 1200 and 1", o.cents, o.held)
			}
		})
	}
}

func TestWithOutbox_CallerRepeats_OneOrderAndOneMessage(t *testing.T) {
	s, _, path := openShop(t)
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.ExecContext(t.Context(), "CREATE TABLE purchase (id TEXT NOT NULL, state TEXT NOT NULL)"); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if err := s.withOutbox(t.Context(), order{"o1", "ann", "book", 1200}); err != nil {
			t.Fatal(err)
		}
	}
	var orders int
	err = db.QueryRowContext(t.Context(), "SELECT count(*) FROM purchase").Scan(&orders)
	stats, statsErr := s.box.Stats(t.Context())
	if err = errors.Join(err, statsErr); err != nil || orders != 1 || stats.Waiting != 1 {
		t.Errorf("%d orders and %d messages, error %v; want one of each", orders, stats.Waiting, err)
	}
}
