package pgstore

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store/pgstore/pgtest"
)

func TestHandlerTx_Savepoints_MayEnd(t *testing.T) {
	t.Parallel()
	c := newSmallPool(t, pgtest.URL(t), 1, nil)
	write := func(ctx context.Context, tx pgx.Tx, key string) {
		t.Helper()
		if _, err := tx.Exec(ctx, "INSERT INTO "+c.table+" VALUES ($1)", key); err != nil {
			t.Error(key, err)
		}
	}
	begin := func(ctx context.Context, tx pgx.Tx) pgx.Tx {
		t.Helper()
		sp, err := tx.Begin(ctx)
		if err != nil {
			t.Fatal(err)
		}
		return sp
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Error(err)
		}
	}
	var left pgx.Tx
	if err := Once(t.Context(), c.a, call("k"), func(ctx context.Context, _ *semel.Execution, tx pgx.Tx) error {
		write(ctx, tx, "before")
		undone := begin(ctx, tx)
		write(ctx, undone, "undone")
		inner := begin(ctx, undone)
		write(ctx, inner, "inner, undone with it")
		must(inner.Commit(ctx))
		must(undone.Rollback(ctx))
		kept := begin(ctx, tx)
		write(ctx, kept, "kept")
		failed := begin(ctx, kept)
		if _, err := failed.Exec(ctx, "SELECT 1/0"); err == nil {
			t.Error("1/0: no error")
		}
		must(failed.Rollback(ctx))
		must(kept.Commit(ctx))
		for _, sp := range []pgx.Tx{undone, inner, failed, kept} {
			for what, err := range map[string]error{
				"Commit": sp.Commit(ctx), "Rollback": sp.Rollback(ctx), "Exec": second(sp.Exec(ctx, "SELECT 1")),
				"Begin": second(sp.Begin(ctx)), "QueryRow": sp.QueryRow(ctx, "SELECT 1").Scan(new(int)),
				"Prepare": second(sp.Prepare(ctx, "", "SELECT 1")), "SendBatch": sp.SendBatch(ctx, &pgx.Batch{}).Close(),
			} {
				if !errors.Is(err, pgx.ErrTxClosed) {
					t.Errorf("%s of a savepoint that has ended: %v", what, err)
				}
			}
		}
		write(ctx, tx, "behind")
		left = begin(ctx, tx)
		write(ctx, left, "in one that is left open")
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	c.want(t, "before", "behind", "in one that is left open", "kept")
	if err := left.Rollback(t.Context()); !errors.Is(err, pgx.ErrTxClosed) {
		t.Errorf("Rollback after the run: %v", err)
	}
}

func second[T any](_ T, err error) error { return err }

// A server that counts statements by their text sees the same ones in each run.
func TestSavepoints_EachRun_SameNames(t *testing.T) {
	c := newSmallPool(t, pgtest.URL(t), 1, nil)
	var names []string
	for i := range 3 {
		if err := Once(t.Context(), c.a, call(itoa(i)), func(ctx context.Context, _ *semel.Execution, tx pgx.Tx) error {
			pid := tx.Conn().PgConn().PID()
			if _, err := tx.Begin(ctx); err != nil {
				return err
			}
			names = append(names, ask[string](t, c.s.ownPool, "SELECT query FROM pg_stat_activity WHERE pid = $1", int64(pid)))
			return nil
		}); err != nil {
			t.Error(err)
		}
	}
	if len(slices.Compact(names)) != 1 || !strings.Contains(strings.ToLower(names[0]), "savepoint") {
		t.Errorf("they are %q", names)
	}
}
