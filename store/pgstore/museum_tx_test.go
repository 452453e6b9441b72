package pgstore

import (
	"bytes"
	"context"
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/pgstore/internal/pgwire"
	"github.com/semel-go/semel/store/pgstore/pgtest"
)

// However a handler ends that has no answer, the caller's transaction has nothing
// newCallOf it: he may leave meanwhile, and commit all the same.
func TestIn_CallerLeaves_HandlerUndone(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(context.Context) error{
		"it fails":    func(ctx context.Context) error { return ctx.Err() },
		"it is well":  func(context.Context) error { return nil },
		"it declines": func(context.Context) error { return &semel.Failure{Code: "declined"} },
		"it panics":   func(context.Context) error { panic("oops") },
	} {
		t.Run(name, func(t *testing.T) {
			p := newShop(t, openNew(t, nil), nil)
			tx := beginTx(t, p.s, txDefaults)
			ctx, leave := context.WithCancel(t.Context())
			defer leave()
			err := errors.New("panic")
			func() {
				defer func() { _ = recover() }()
				_, err = p.a.In(tx).Run(ctx, call("k"), func(ctx context.Context, x *semel.Execution) (store.Outcome, error) {
					if _, err := p.pay("k", nil)(ctx, x, tx); err != nil {
						t.Error(err)
					}
					leave()
					return store.Outcome{}, end(ctx)
				})
			}()
			if err == nil {
				t.Error("no error, though nothing could be written")
			}
			if err := tx.Commit(t.Context()); err != nil {
				t.Errorf("commit: %v", err)
			}
			p.want(t)
			if _, err := p.record(t, "k"); !errors.Is(err, store.ErrNotFound) {
				t.Errorf("a record was left: %v", err)
			}
		})
	}
}

// After a rollback to a savepoint, the savepoint still exists on the server. The next
// rollback must undo the outer one.
func TestNested_InsideNested_Undone(t *testing.T) {
	t.Parallel()
	c := newSmallPool(t, pgtest.URL(t), 1, nil)
	if err := Once(t.Context(), c.a, call("k"), func(ctx context.Context, x *semel.Execution, tx pgx.Tx) error {
		at := tx
		var in []pgx.Tx
		for _, key := range []string{"outer", "middle", "inner"} {
			sp, err := at.Begin(ctx)
			if err != nil {
				return err
			}
			if _, err := c.pay(key, nil)(ctx, x, sp); err != nil {
				return err
			}
			at, in = sp, append(in, sp)
		}
		for _, sp := range []pgx.Tx{in[2], in[1], in[0]} {
			if err := sp.Rollback(ctx); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
	c.want(t)
}

// A run of another store has a transaction, and a fate, of its own.
func TestRun_InsideHandlerOfOtherStore_DoesNotJoin(t *testing.T) {
	t.Parallel()
	p, q := newShop(t, openNew(t, nil), nil), newShop(t, openNew(t, nil), nil)
	late := errors.New("late")
	err := Once(t.Context(), p.a, call("outer"), func(ctx context.Context, x *semel.Execution, tx pgx.Tx) error {
		if _, err := p.pay("outer", nil)(ctx, x, tx); err != nil {
			return err
		}
		if got, err := Do(ctx, q.a, call("inner"), q.pay("inner", nil)); err != nil || got != "receipt of inner" {
			t.Errorf("the run of the other store: %q, %v", got, err)
		}
		return late
	})
	if !errors.Is(err, late) {
		t.Errorf("got %v", err)
	}
	p.want(t)
	q.want(t, "inner")
	if r, err := q.record(t, "inner"); err != nil || r.State != store.Completed {
		t.Errorf("the other store's record is %v, error %v", r.State, err)
	}
}

// Another database has the same tables. The record would be committed in one database,
// and looked up in the other.
func TestTx_SchemaOfSameName_ErrForeign(t *testing.T) {
	t.Parallel()
	s := openNew(t, nil)
	twin := newShop(t, openAt(t, database(t, "semel_twin"), &Options{Schema: s.options.Schema}), nil)
	a, err := NewAtomic(s, nil)
	if err != nil {
		t.Fatal(err)
	}
	tx := beginTx(t, twin.s, txDefaults)
	_, err = a.In(tx).Run(t.Context(), call("k"), func(context.Context, *semel.Execution) (store.Outcome, error) {
		t.Error("it ran")
		return store.Outcome{}, nil
	})
	if !errors.Is(err, ErrForeign) {
		t.Errorf("got %v, want ErrForeign", err)
	}
}

// A duplicate of a run in flight is told so at once, whatever there was of the key
// before: it never waits for the other's row, as the caller may hold locks.
func TestAtomic_DuplicateOfOpenTakeOver_InProgress(t *testing.T) {
	t.Parallel()
	for name, before := range map[string]func(p *shop){
		"released": func(p *shop) { _, _ = Do(t.Context(), p.a, call("k"), p.pay("k", errors.New("down"))) },
		"expired": func(p *shop) {
			_, _ = Do(t.Context(), p.a, call("k"), p.pay("old", nil))
			mustExec(t, p.s.ownPool, "UPDATE "+p.s.quoted()+".semel_record SET expires = 1")
			mustExec(t, p.s.ownPool, "DELETE FROM "+p.table)
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := newSmallPool(t, pgtest.URL(t), 3, func(cfg *pgxpool.Config) { // a statement that waits for a row fails
				cfg.ConnConfig.RuntimeParams["lock_timeout"] = "3s"
			})
			before(c.shop)
			first := c.startInTx(t, "k")
			tx := beginTx(t, c.s, txDefaults)
			for name, r := range map[string]semel.Runner{"Run": c.a, "In": c.a.In(tx)} {
				_, err := r.Run(t.Context(), call("k"), func(context.Context, *semel.Execution) (store.Outcome, error) {
					t.Errorf("%s: it ran", name)
					return store.Outcome{}, nil
				})
				if !errors.Is(err, semel.ErrInProgress) || pgwire.Code(err) != "" {
					t.Errorf("%s: %v, want ErrInProgress", name, err)
				}
			}
			if err := tx.Rollback(t.Context()); err != nil {
				t.Error(err)
			}
			first.want(t, "k")
			c.want(t, "k")
		})
	}
}

// The caller owns the result of a run. The connection reuses its buffer for answers to
// openOther callers.
func TestAtomic_ResultOfRun_NotOverwritten(t *testing.T) {
	t.Parallel()
	c := newSmallPool(t, pgtest.URL(t), 1, nil)
	of := func(key string) store.Outcome {
		return store.Outcome{Body: bytes.Repeat([]byte(key), 200), Header: []store.Header{{Name: "Location", Value: "/" + key}}}
	}
	pay := func(key string) store.Outcome {
		t.Helper()
		res, err := c.a.Run(t.Context(), call(key), func(context.Context, *semel.Execution) (store.Outcome, error) { return of(key), nil })
		if err != nil {
			t.Fatal(err)
		}
		return res.Outcome
	}
	keys := []string{"a", "b", "c", "d"}
	for _, key := range keys {
		pay(key)
	}
	var got []store.Outcome
	for _, key := range keys {
		got = append(got, pay(key))
	}
	for i, key := range keys {
		if !reflect.DeepEqual(got[i].Body, of(key).Body) || !reflect.DeepEqual(got[i].Header, of(key).Header) {
			t.Errorf("the answer of %s has become %q, %q", key, got[i].Body[:8], got[i].Header)
		}
	}
}

// The fencing token of a handler grows, although a record with a higher one was swept,
// and the server's clock was set back.
func TestAtomic_AfterSweep_FenceGrows(t *testing.T) {
	t.Parallel()
	p := newShop(t, openFixedClock(t), &semel.Options{Retention: time.Hour})
	var fences []uint64
	handler := func(_ context.Context, x *semel.Execution) (store.Outcome, error) {
		fences = append(fences, x.Fence())
		return store.Outcome{}, nil
	}
	tx := beginTx(t, p.s, txDefaults)
	for i, r := range []semel.Runner{p.a, p.a, p.a.In(tx)} {
		if _, err := r.Run(t.Context(), call("k"), handler); err != nil {
			t.Fatal(err)
		}
		advance(t, p.s, 2*time.Hour)
		if res, err := p.s.Sweep(t.Context(), "", 100); err != nil || i < 2 && res.Deleted != 1 {
			t.Fatalf("%d were swept, %v", res.Deleted, err)
		}
		advance(t, p.s, -4*time.Hour)
	}
	for i, f := range fences {
		if i > 0 && f <= fences[i-1] {
			t.Errorf("run %d has the fence %d, after %d", i, f, fences[i-1])
		}
	}
	if len(fences) != 3 {
		t.Errorf("it ran %d times", len(fences))
	}
}
