package pgstore

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/pgstore/internal/handlertx"
	"github.com/semel-go/semel/store/pgstore/internal/pgwire"
)

// sqlShop is a shop whose handlers use database/sql.
type sqlShop struct {
	*shop
	db *sql.DB
}

func newSQLShop(t *testing.T, o *semel.Options) *sqlShop {
	t.Helper()
	p := newShop(t, openNew(t, nil), o)
	db := stdlib.OpenDB(*p.s.appPool.Config().ConnConfig)
	t.Cleanup(func() {
		if n := db.Stats().InUse; n != 0 {
			t.Errorf("%d connections are in use at the end", n)
		}
		_ = db.Close()
	})
	return &sqlShop{p, db}
}

// paySQL is a handler whose effect is a row, and whose result is err.
func (p *sqlShop) paySQL(key string, err error) func(context.Context, *semel.Execution, *sql.Tx) (string, error) {
	return func(ctx context.Context, _ *semel.Execution, tx *sql.Tx) (string, error) {
		if _, err := tx.ExecContext(ctx, "INSERT INTO "+p.table+" VALUES ($1)", key); err != nil {
			return "", err
		}
		return "receipt of " + key, err
	}
}

func (p *sqlShop) run(t *testing.T, key string, err error) (string, error) {
	return DoSQL(t.Context(), p.a, p.db, call(key), p.paySQL(key, err))
}

func (p *sqlShop) wantRecord(t *testing.T, key string, state store.State, attempt int) {
	t.Helper()
	if r, err := p.record(t, key); err != nil || r.State != state || r.Attempt != attempt {
		t.Errorf("the record of %s is %v, attempt %d, error %v; want %v, attempt %d", key, r.State, r.Attempt, err, state, attempt)
	}
}

func TestDoSQL_Duplicate_GetsTheResultOfTheFirst(t *testing.T) {
	t.Parallel()
	p := newSQLShop(t, nil)
	for range 3 {
		if got, err := p.run(t, "k", nil); err != nil || got != "receipt of k" {
			t.Errorf("got %q, %v", got, err)
		}
	}
	if got, err := Do(t.Context(), p.a, call("k"), p.pay("k", nil)); err != nil || got != "receipt of k" {
		t.Errorf("by Do: %q, %v", got, err)
	}
	p.want(t, "k")
	p.wantRecord(t, "k", store.Completed, 1)
}

func TestDoSQL_HandlerFails_RollsBackAndCountsTheAttempt(t *testing.T) {
	t.Parallel()
	p := newSQLShop(t, nil)
	down := errors.New("down")
	for attempt := 1; attempt <= 2; attempt++ {
		if _, err := p.run(t, "k", down); !errors.Is(err, down) {
			t.Errorf("got %v", err)
		}
		p.want(t)
		p.wantRecord(t, "k", store.Released, attempt)
	}
	if _, err := p.run(t, "k", nil); err != nil {
		t.Error(err)
	}
	p.want(t, "k")
	p.wantRecord(t, "k", store.Completed, 3)
}

func TestDoSQL_Failure_IsKeptWithoutTheEffect(t *testing.T) {
	t.Parallel()
	p := newSQLShop(t, nil)
	declined := &semel.Failure{Code: "declined", Message: "no funds"}
	for range 2 {
		_, err := p.run(t, "k", declined)
		if f, ok := errors.AsType[*semel.Failure](err); !ok || f.Code != "declined" {
			t.Errorf("got %v", err)
		}
	}
	p.want(t)
	p.wantRecord(t, "k", store.Failed, 1)
}

func TestDoSQL_HandlerPanics_RollsBackAndCountsTheAttempt(t *testing.T) {
	t.Parallel()
	p := newSQLShop(t, nil)
	func() {
		defer func() {
			if v := recover(); v != "a bug" {
				t.Errorf("recovered %v", v)
			}
		}()
		_, _ = DoSQL(t.Context(), p.a, p.db, call("k"), func(ctx context.Context, x *semel.Execution, tx *sql.Tx) (string, error) {
			_, _ = p.paySQL("k", nil)(ctx, x, tx)
			panic("a bug")
		})
	}()
	p.want(t)
	p.wantRecord(t, "k", store.Released, 1)
	if _, err := p.run(t, "k", nil); err != nil {
		t.Error(err)
	}
	p.want(t, "k")
}

// refuseCommits makes the server refuse each COMMIT with an effect of key.
func (p *shop) refuseCommits(t *testing.T, key string) {
	t.Helper()
	refuse := p.s.quoted() + ".refuse()"
	mustExec(t, p.s.appPool, "CREATE FUNCTION "+refuse+" RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'refused' USING ERRCODE = 'P0001'; END $$")
	mustExec(t, p.s.appPool, "CREATE CONSTRAINT TRIGGER refuse AFTER INSERT ON "+p.table+" DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN (NEW.key = '"+key+"') EXECUTE FUNCTION "+refuse)
}

func TestAtomic_CommitRefused_CountsAttempt(t *testing.T) {
	t.Parallel()
	p := newSQLShop(t, &semel.Options{MaxAttempts: 2})
	p.refuseCommits(t, "bad")
	for name, run := range map[string]func(c semel.Call) (string, error){
		"Do":    func(c semel.Call) (string, error) { return Do(t.Context(), p.a, c, p.pay("bad", nil)) },
		"DoSQL": func(c semel.Call) (string, error) { return DoSQL(t.Context(), p.a, p.db, c, p.paySQL("bad", nil)) },
	} {
		for attempt := 1; attempt <= 2; attempt++ {
			if _, err := run(call(name)); pgwire.Code(err) != "P0001" || errors.Is(err, semel.ErrUnavailable) || errors.Is(err, semel.ErrInDoubt) {
				t.Errorf("%s: %v", name, err)
			}
			p.wantRecord(t, name, store.Released, attempt)
		}
		_, err := run(call(name))
		if f, ok := errors.AsType[*semel.Failure](err); !ok || f.Code != semel.CodeAttemptsExhausted {
			t.Errorf("%s: after the last attempt: %v", name, err)
		}
	}
	p.want(t)
}

func TestDoSQL_ConcurrentDuplicates_OneEffect(t *testing.T) {
	t.Parallel()
	p := newSQLShop(t, nil)
	var ran atomic.Int64
	var all sync.WaitGroup
	for range 16 {
		all.Go(func() {
			c := call("k")
			c.Wait = time.Minute
			got, err := DoSQL(t.Context(), p.a, p.db, c, func(ctx context.Context, x *semel.Execution, tx *sql.Tx) (string, error) {
				ran.Add(1)
				return p.paySQL("k", nil)(ctx, x, tx)
			})
			if err != nil || got != "receipt of k" {
				t.Errorf("got %q, %v", got, err)
			}
		})
	}
	all.Wait()
	p.want(t, "k")
	// A duplicate that read just before the commit, and took the lock just after it, runs
	// once more, and is undone by the unique index.
	if n := ran.Load(); n > 2 {
		t.Errorf("the handler ran %d times", n)
	}
}

func TestDoSQL_SerializationFailure_RunsAgain(t *testing.T) {
	t.Parallel()
	p := newSQLShop(t, nil)
	ran := 0
	if _, err := DoSQL(t.Context(), p.a, p.db, call("k"), func(ctx context.Context, x *semel.Execution, tx *sql.Tx) (string, error) {
		if ran++; ran == 1 {
			_, err := tx.ExecContext(ctx, "DO $$ BEGIN RAISE EXCEPTION 'again' USING ERRCODE = '40001'; END $$")
			return "", err
		}
		return p.paySQL("k", nil)(ctx, x, tx)
	}); err != nil || ran != 2 {
		t.Errorf("it ran %d times: %v", ran, err)
	}
	p.want(t, "k")
	p.wantRecord(t, "k", store.Completed, 1)
}

func TestDoSQL_HandlerEndsTheTransaction_IsAnError(t *testing.T) {
	t.Parallel()
	p := newSQLShop(t, nil)
	for name, end := range map[string]func(*sql.Tx) error{"commit": (*sql.Tx).Commit, "rollback": (*sql.Tx).Rollback} {
		_, err := DoSQL(t.Context(), p.a, p.db, call(name), func(ctx context.Context, x *semel.Execution, tx *sql.Tx) (string, error) {
			got, err := p.paySQL(name, nil)(ctx, x, tx)
			return got, errors.Join(err, end(tx))
		})
		if !errors.Is(err, handlertx.ErrEnded) {
			t.Errorf("%s: %v", name, err)
		}
		p.wantRecord(t, name, map[string]store.State{"commit": store.Unknown, "rollback": store.Released}[name], 1)
	}
	if _, err := p.run(t, "commit", nil); !errors.Is(err, semel.ErrParked) {
		t.Errorf("a call whose effect may be there: %v", err)
	}
	p.want(t, "commit")
	if _, err := p.run(t, "after", nil); err != nil {
		t.Errorf("the next call: %v", err)
	}
}

func TestDoSQL_AfterTheHandler_TransactionIsClosed(t *testing.T) {
	t.Parallel()
	p := newSQLShop(t, nil)
	var left *sql.Tx
	for _, said := range []error{nil, errors.New("down")} {
		_, _ = DoSQL(t.Context(), p.a, p.db, call("k"), func(_ context.Context, _ *semel.Execution, tx *sql.Tx) (string, error) {
			left = tx
			return "", said
		})
		if _, err := left.ExecContext(t.Context(), "INSERT INTO "+p.table+" VALUES ('ghost')"); !errors.Is(err, sql.ErrTxDone) {
			t.Errorf("a statement after the run: %v", err)
		}
	}
	p.want(t)
}

func TestDoSQL_CallerLeaves_NothingIsLeft(t *testing.T) {
	t.Parallel()
	p := newSQLShop(t, nil)
	ctx, leave := context.WithCancel(t.Context())
	_, err := DoSQL(ctx, p.a, p.db, call("k"), func(ctx context.Context, x *semel.Execution, tx *sql.Tx) (string, error) {
		got, err := p.paySQL("k", nil)(ctx, x, tx)
		leave()
		return got, err
	})
	if err == nil {
		t.Error("no error")
	}
	p.want(t)
	if _, err := p.run(t, "k", nil); err != nil {
		t.Errorf("the same call again: %v", err)
	}
	p.want(t, "k")
}

func TestDoSQL_InsideDoSQL_JoinsTheTransaction(t *testing.T) {
	t.Parallel()
	p := newSQLShop(t, nil)
	back := errors.New("all is rolled back")
	for _, said := range []error{back, nil} {
		_, err := DoSQL(t.Context(), p.a, p.db, call("outer"), func(ctx context.Context, _ *semel.Execution, outer *sql.Tx) (string, error) {
			if _, err := DoSQL(ctx, p.a, p.db, call("inner"), func(ctx context.Context, x *semel.Execution, tx *sql.Tx) (string, error) {
				if tx != outer {
					t.Error("it has another transaction")
				}
				return p.paySQL("inner", nil)(ctx, x, tx)
			}); err != nil {
				t.Error(err)
			}
			if _, err := DoSQL(ctx, p.a, p.db, call("outer"), p.paySQL("itself", nil)); !errors.Is(err, semel.ErrInProgress) {
				t.Errorf("its own key: %v", err)
			}
			if _, err := Do(ctx, p.a, call("pgx"), p.pay("pgx", nil)); !errors.Is(err, errNoPgxTx) {
				t.Errorf("Do inside DoSQL: %v", err)
			}
			return "", said
		})
		if !errors.Is(err, said) {
			t.Error(err)
		}
	}
	p.want(t, "inner")
	if err := Once(t.Context(), p.a, call("by pgx"), func(ctx context.Context, _ *semel.Execution, _ pgx.Tx) error {
		if _, err := DoSQL(ctx, p.a, p.db, call("sql"), p.paySQL("sql", nil)); err == nil {
			t.Error("DoSQL inside Do: no error")
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
	if got := p.payments(t); !slices.Equal(got, []string{"inner"}) {
		t.Errorf("committed effects are %q", got)
	}
}

func TestDoSQL_DatabaseOfAnotherStore_IsForeign(t *testing.T) {
	t.Parallel()
	p := newSQLShop(t, nil)
	other := stdlib.OpenDBFromPool(pool(t, database(t, "semel_foreign_sql")))
	t.Cleanup(func() { _ = other.Close() })
	if _, err := DoSQL(t.Context(), p.a, other, call("k"), p.paySQL("k", nil)); !errors.Is(err, ErrForeign) {
		t.Errorf("got %v, want ErrForeign", err)
	}
	if _, err := DoSQL(t.Context(), p.a, nil, call("k"), p.paySQL("k", nil)); err == nil {
		t.Error("a nil sql.DB was taken")
	}
}
