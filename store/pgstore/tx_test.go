package pgstore

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/pgstore/internal/table"
)

func beginTx(t *testing.T, s *Store, o pgx.TxOptions) pgx.Tx {
	t.Helper()
	tx, err := s.appPool.BeginTx(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tx.Rollback(context.Background()) })
	return tx
}

func TestIn_ManyCalls_ShareTransaction(t *testing.T) {
	t.Parallel()
	p := newShop(t, openNew(t, nil), nil)
	if _, err := Do(t.Context(), p.a, call("old"), p.pay("old", nil)); err != nil {
		t.Fatal(err)
	}
	tx := beginTx(t, p.s, pgx.TxOptions{})
	in := p.a.In(tx)
	poison, declined := errors.New("poison"), &semel.Failure{Code: "declined"}
	for _, m := range []struct {
		key  string
		err  error
		want error
	}{{"a", nil, nil}, {"bad", poison, poison}, {"no", declined, declined}, {"a", nil, nil}, {"old", nil, nil}, {"sql", errSQL, errSQL}, {"b", nil, nil}} {
		got, err := semel.Do(t.Context(), in, call(m.key), func(ctx context.Context, x *semel.Execution) (string, error) {
			handed, ok := TxFrom(ctx)
			if !ok {
				t.Fatal("no transaction")
			}
			if errors.Is(m.err, errSQL) {
				_, _ = handed.Exec(ctx, "SELECT 1 / 0")
				return "", m.err
			}
			return p.pay(m.key, m.err)(ctx, x, handed)
		})
		if !errors.Is(err, m.want) || err == nil && got != "receipt of "+m.key {
			t.Errorf("%s: %q, %v", m.key, got, err)
		}
	}
	p.want(t, "old")
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	p.want(t, "a", "b", "old")
	for key, want := range map[string]store.State{"a": store.Completed, "no": store.Failed, "b": store.Completed} {
		if r, err := p.record(t, key); err != nil || r.State != want {
			t.Errorf("%s is %v, error %v", key, r.State, err)
		}
	}
	for _, key := range []string{"bad", "sql"} {
		if _, err := p.record(t, key); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("%s left a record: %v", key, err)
		}
	}
}

var txDefaults = pgx.TxOptions{}

var errSQL = errors.New("a statement failed")

func TestIn_CallerRollsBack_LeavesNothing(t *testing.T) {
	t.Parallel()
	p := newShop(t, openNew(t, nil), nil)
	tx := beginTx(t, p.s, pgx.TxOptions{})
	ctx := context.Background()
	if err := semel.Once(ctx, p.a.In(tx), call("k"), func(ctx context.Context, x *semel.Execution) error {
		_, err := p.pay("k", nil)(ctx, x, tx)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if _, err := Do(ctx, p.a, call("k"), p.pay("k", nil)); !errors.Is(err, semel.ErrInProgress) {
		t.Errorf("a duplicate meanwhile: %v, want ErrInProgress", err)
	}
	if err := tx.Rollback(ctx); err != nil {
		t.Fatal(err)
	}
	p.want(t)
	if _, err := Do(ctx, p.a, call("k"), p.pay("k", nil)); err != nil {
		t.Errorf("the next: %v", err)
	}
	p.want(t, "k")
}

// The published pattern: SELECT … FOR UPDATE of a row that is not there locks
// nothing, so both go on. Here the insert decides.
func TestIn_ConcurrentInserts_OneWins(t *testing.T) {
	t.Parallel()
	p := newShop(t, openNew(t, nil), nil)
	one, two := beginTx(t, p.s, pgx.TxOptions{}), beginTx(t, p.s, pgx.TxOptions{})
	for _, tx := range []pgx.Tx{one, two} { // neither waits
		tag, err := tx.Exec(t.Context(), "SELECT FROM "+p.s.quoted()+".semel_record WHERE id = $1 FOR UPDATE", table.ID(testKey("k")))
		if err != nil || tag.RowsAffected() != 0 {
			t.Fatalf("%v, %v", tag, err)
		}
	}
	f, err := p.s.Tx(one).Claim(t.Context(), proposal("k"))
	if err != nil || !f.Won {
		t.Errorf("the first: won %v, error %v", f.Won, err)
	}
	f, err = p.s.Tx(two).Claim(t.Context(), proposal("k"))
	if err != nil || f.Won || f.Record.State != store.Processing || !f.Record.Until.After(f.Now) {
		t.Errorf("the second: won %v, error %v, %+v; want in progress", f.Won, err, f.Record)
	}
}

// A leased claim commits while a transaction that thinks the key absent is at
// work. A unique violation would abort the caller's transaction (25P02): it
// goes back to the savepoint instead.
func TestIn_UniqueViolation_TransactionContinues(t *testing.T) {
	t.Parallel()
	bothTables(t, func(t *testing.T, partitions int) {
		uniqueViolation25P02(t, newShop(t, openNew(t, &Options{Partitions: partitions}), nil))
	})
}

func uniqueViolation25P02(t *testing.T, p *shop) {
	t.Helper()
	tx := beginTx(t, p.s, pgx.TxOptions{})
	if _, err := tx.Exec(t.Context(), "INSERT INTO "+p.table+" VALUES ('before')"); err != nil {
		t.Fatal(err)
	}
	c := call("k")
	g, err := semel.New(p.s, nil)
	if err != nil {
		t.Fatal(err)
	}
	err = semel.Once(t.Context(), p.a.In(tx), c, func(ctx context.Context, x *semel.Execution) error {
		if err := semel.Once(context.Background(), g, c, func(context.Context, *semel.Execution) error { return nil }); err != nil {
			t.Errorf("the leased call: %v", err)
		}
		_, err := p.pay("k", nil)(ctx, x, tx)
		return err
	})
	if !errors.Is(err, semel.ErrInProgress) {
		t.Errorf("got %v, want ErrInProgress", err)
	}
	if err := semel.Once(t.Context(), p.a.In(tx), call("next"), func(ctx context.Context, x *semel.Execution) error {
		_, err := p.pay("next", nil)(ctx, x, tx)
		return err
	}); err != nil {
		t.Errorf("the transaction does not go on: %v", err)
	}
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	p.want(t, "before", "next")
}

func TestRun_LosesRace_ReplaysWinner(t *testing.T) {
	t.Parallel()
	bothTables(t, func(t *testing.T, partitions int) {
		replaysWhatWon(t, newShop(t, openNew(t, &Options{Partitions: partitions}), nil))
	})
}

func replaysWhatWon(t *testing.T, p *shop) {
	t.Helper()
	g, err := semel.New(p.s, nil)
	if err != nil {
		t.Fatal(err)
	}
	got, err := Do(t.Context(), p.a, call("k"), func(ctx context.Context, x *semel.Execution, tx pgx.Tx) (string, error) {
		if _, err := semel.Do(context.Background(), g, call("k"), func(context.Context, *semel.Execution) (string, error) { return "leased", nil }); err != nil {
			t.Errorf("the leased call: %v", err)
		}
		return p.pay("k", nil)(ctx, x, tx)
	})
	if err != nil || got != "leased" {
		t.Errorf("got %q, %v, want what was kept", got, err)
	}
	p.want(t)
}

func TestAtomic_HandlerFrozen_RolledBack(t *testing.T) {
	t.Parallel()
	p := newShop(t, openNew(t, &Options{MaxIdleTx: 5 * time.Second}), nil)
	ended := errors.New("")
	err := Once(t.Context(), p.a, call("k"), func(ctx context.Context, x *semel.Execution, tx pgx.Tx) error {
		if _, err := p.pay("k", nil)(ctx, x, tx); err != nil {
			return err
		}
		waitFor(t, "the server ends the transaction", func() bool {
			_, err := Do(context.Background(), p.a, call("k"), p.pay("other", nil))
			return err == nil
		})
		_, ended = tx.Exec(ctx, "SELECT 1")
		return nil
	})
	if err == nil || ended == nil {
		t.Errorf("the frozen handler got %v, and its transaction %v", err, ended)
	}
	p.want(t, "other")
}

func TestTx_OtherDatabase_ErrForeign(t *testing.T) {
	t.Parallel()
	s := openNew(t, nil)
	db := pool(t, database(t, "semel_foreign"))
	tx, err := db.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(context.Background()) }()
	if _, err := s.Tx(tx).Claim(t.Context(), proposal("k")); !errors.Is(err, ErrForeign) {
		t.Errorf("a database without the tables: %v, want ErrForeign", err)
	}
}

func TestHandlerTx_CommitOrRollback_Refused(t *testing.T) {
	t.Parallel()
	p := newShop(t, openNew(t, nil), nil)
	var kept pgx.Tx
	err := Once(t.Context(), p.a, call("k"), func(ctx context.Context, x *semel.Execution, tx pgx.Tx) error {
		kept = tx
		if tx.Commit(ctx) == nil || tx.Rollback(ctx) == nil {
			t.Error("the handler ended the transaction")
		}
		inner, err := tx.Begin(ctx)
		if err != nil {
			return err
		}
		if _, err := p.pay("undone", nil)(ctx, x, inner); err != nil {
			return err
		}
		if err := inner.Rollback(ctx); err != nil {
			return err
		}
		_, err = p.pay("k", nil)(ctx, x, tx)
		return err
	})
	if err != nil {
		t.Error(err)
	}
	p.want(t, "k")
	ctx := t.Context()
	if _, err := kept.Exec(ctx, "SELECT 1"); !errors.Is(err, pgx.ErrTxClosed) {
		t.Errorf("Exec after the end: %v", err)
	}
	if err := kept.QueryRow(ctx, "SELECT 1").Scan(new(int)); !errors.Is(err, pgx.ErrTxClosed) {
		t.Errorf("QueryRow after the end: %v", err)
	}
	if _, err := kept.Query(ctx, "SELECT 1"); !errors.Is(err, pgx.ErrTxClosed) {
		t.Errorf("Query after the end: %v", err)
	}
	if err := kept.SendBatch(ctx, &pgx.Batch{}).Close(); !errors.Is(err, pgx.ErrTxClosed) {
		t.Errorf("SendBatch after the end: %v", err)
	}
	if _, err := kept.CopyFrom(ctx, pgx.Identifier{p.s.options.Schema, "payment"}, []string{"key"}, pgx.CopyFromRows([][]any{{"ghost"}})); !errors.Is(err, pgx.ErrTxClosed) {
		t.Errorf("CopyFrom after the end: %v", err)
	}
	if err := kept.Commit(ctx); !errors.Is(err, pgx.ErrTxClosed) {
		t.Errorf("Commit after the end: %v", err)
	}
}

// A claim uses the time of the claim, however old the transaction is.
func TestTx_Clock_NotTransactionStart(t *testing.T) {
	t.Parallel()
	s := openNew(t, nil)
	tx := beginTx(t, s, pgx.TxOptions{})
	began := ask[time.Time](t, tx, "SELECT now()")
	waitFor(t, "the clock moves on", func() bool { return ask[bool](t, tx, "SELECT clock_timestamp() > now() + interval '50 ms'") })
	f, err := s.Tx(tx).Claim(t.Context(), proposal("k"))
	if err != nil || f.Now.Sub(began) < 50*time.Millisecond || f.Record.Until.Sub(f.Now) != time.Minute {
		t.Errorf("a claim at %v of a transaction that began at %v, error %v", f.Now, began, err)
	}
}
