package pgstore

import (
	"context"
	"database/sql"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/pgstore/internal/handlertx"
)

// leaveOpen begins a query, and reads none or one of its rows.
var leaveOpen = map[string]func(ctx context.Context, tx pgx.Tx) error{
	"QueryRow without Scan": func(ctx context.Context, tx pgx.Tx) error {
		tx.QueryRow(ctx, "SELECT 1")
		return nil
	},
	"Query without Close": func(ctx context.Context, tx pgx.Tx) error {
		// The server sends the first rows, and then works long for the next one.
		rows, err := tx.Query(ctx, "SELECT CASE WHEN i > 1000 THEN pg_sleep(30)::text ELSE repeat('x', 1000) END FROM generate_series(1, 1001) i")
		if err == nil {
			rows.Next()
		}
		return err
	},
	"a batch without Close": func(ctx context.Context, tx pgx.Tx) error {
		b := &pgx.Batch{}
		b.Queue("SELECT 1")
		tx.SendBatch(ctx, b)
		return nil
	},
	"Conn": func(ctx context.Context, tx pgx.Tx) error {
		tx.Conn().QueryRow(ctx, "SELECT 1")
		return nil
	},
}

// wantUnread checks the error of a handler that left rows open, and that it is no outage.
func wantUnread(t *testing.T, err error) {
	t.Helper()
	if _, kept := errors.AsType[*semel.Failure](err); !errors.Is(err, handlertx.ErrUnread) || errors.Is(err, semel.ErrUnavailable) || kept {
		t.Errorf("the call ends with %v", err)
	}
}

// A query that the handler has left open is the handler's fault, and no outage of the store.
// patient is a call that waits for its key: the server notices after a moment that the
// connection of an earlier one is closed. The failed attempt may not be noted then either.
func patient(key string) semel.Call {
	c := call(key)
	c.Wait = time.Minute
	return c
}

func TestAtomic_HandlerLeavesRowsOpen_CountsAttempt(t *testing.T) {
	t.Parallel()
	later := errors.New("later")
	for form, leave := range leaveOpen {
		for result, returned := range map[string]error{"nil": nil, "an error": later, "a Failure": &semel.Failure{Code: "declined"}} {
			t.Run(form+", returns "+result, func(t *testing.T) {
				t.Parallel()
				p, runs := newShop(t, openNew(t, nil), &semel.Options{MaxAttempts: 2}), 0
				for {
					err := Once(t.Context(), p.a, patient("k"), func(ctx context.Context, x *semel.Execution, tx pgx.Tx) error {
						runs++
						if _, err := p.pay("k", nil)(ctx, x, tx); err != nil {
							return err
						}
						return errors.Join(returned, leave(ctx, tx))
					})
					if f, ok := errors.AsType[*semel.Failure](err); ok && f.Code == semel.CodeAttemptsExhausted && runs > 1 {
						break
					}
					wantUnread(t, err)
					if errors.Is(returned, later) && !errors.Is(err, later) {
						t.Errorf("the handler's own error is lost: %v", err)
					}
					if runs == 20 {
						t.Fatal("no attempt counts")
					}
				}
				p.want(t)
			})
		}
	}
}

func TestAtomic_HandlerLeavesRowsOpenWithNoEffect_CountsNoAttempt(t *testing.T) {
	p := newShop(t, openNew(t, nil), nil)
	err := Once(t.Context(), p.a, call("k"), func(ctx context.Context, _ *semel.Execution, tx pgx.Tx) error {
		tx.QueryRow(ctx, "SELECT 1")
		return semel.NoEffect(errors.New("closed today"))
	})
	wantUnread(t, err)
	if r, err := p.record(t, "k"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("the record is %v, attempt %d, %v", r.State, r.Attempt, err)
	}
}

func TestRunBatch_OneCallLeavesRowsOpen_OthersCommit(t *testing.T) {
	t.Parallel()
	for form, leave := range leaveOpen {
		t.Run(form, func(t *testing.T) {
			t.Parallel()
			p := newShop(t, openNew(t, nil), &semel.Options{MaxAttempts: 2})
			calls := poll("a", "bad", "c")
			for exhausted, n := false, 0; !exhausted; n++ {
				ended := p.a.RunBatch(t.Context(), calls, func(ctx context.Context, newCalls []*PendingCall) error {
					if err := writeRows(p, calls)(ctx, newCalls); err != nil {
						return err
					}
					for _, c := range newCalls {
						if tx, _ := TxFrom(ctx); c.Execution.Key() == "bad" {
							return leave(ctx, tx)
						}
					}
					return nil
				})
				if errors.Is(errors.Join(ended[0].Err, ended[1].Err, ended[2].Err), semel.ErrInProgress) && n < 100 {
					continue // the server has not noticed yet that a connection is closed
				}
				if ended[0].Err != nil || ended[2].Err != nil {
					t.Fatalf("the other calls end with %v and %v", ended[0].Err, ended[2].Err)
				}
				if exhausted = errors.Is(ended[1].Err, &semel.Failure{Code: semel.CodeAttemptsExhausted}); !exhausted {
					wantUnread(t, ended[1].Err)
				}
				if n == 100 {
					t.Fatal("no attempt counts")
				}
			}
			p.want(t, "a", "c")
		})
	}
}

// A handler that joins the transaction of another call, or of the caller, cannot commit
// anything any more, but no outage is reported.
func TestAtomic_JoinedHandlerLeavesRowsOpen_NothingCommits(t *testing.T) {
	t.Parallel()
	p := newShop(t, openNew(t, nil), nil)
	inner := func(ctx context.Context, run semel.Runner) error {
		return semel.Once(ctx, run, call("inner"), func(ctx context.Context, x *semel.Execution) error {
			tx, _ := TxFrom(ctx)
			tx.QueryRow(ctx, "SELECT 1")
			return nil
		})
	}
	wantUnread(t, Once(t.Context(), p.a, call("outer"), func(ctx context.Context, x *semel.Execution, tx pgx.Tx) error {
		if _, err := p.pay("outer", nil)(ctx, x, tx); err != nil {
			return err
		}
		err := inner(ctx, p.a)
		wantUnread(t, err)
		return err
	}))
	wantUnread(t, pgx.BeginFunc(t.Context(), p.s.appPool, func(tx pgx.Tx) error {
		if _, err := p.pay("own", nil)(t.Context(), nil, tx); err != nil {
			return err
		}
		return inner(t.Context(), p.a.In(tx))
	}))
	p.want(t)
}

func TestDoSQL_HandlerLeavesRowsOpen_CountsAttempt(t *testing.T) {
	t.Parallel()
	p := newSQLShop(t, nil)
	leave := func(ctx context.Context, _ *semel.Execution, tx *sql.Tx) (string, error) {
		rows, err := tx.QueryContext(ctx, "SELECT generate_series(1, 100000)")
		if err == nil {
			rows.Next()
		}
		return "", err
	}
	counts := func(key string, fn func(ctx context.Context, x *semel.Execution, tx *sql.Tx) (string, error)) {
		t.Helper()
		for range 20 {
			_, err := DoSQL(t.Context(), p.a, p.db, patient(key), fn)
			wantUnread(t, err)
			if r, err := p.record(t, key); err == nil && r.State == store.Released && r.Attempt > 0 {
				return
			}
		}
		t.Errorf("%s: no attempt counts", key)
	}
	counts("k", leave)
	counts("outer", func(ctx context.Context, x *semel.Execution, tx *sql.Tx) (string, error) {
		if _, err := p.paySQL("outer", nil)(ctx, x, tx); err != nil {
			return "", err
		}
		_, err := DoSQL(ctx, p.a, p.db, call("inner"), leave)
		wantUnread(t, err)
		return "", err
	})
	p.want(t)
}

// The handler commits with its connection, and then leaves rows open.
func TestAtomic_HandlerCommitsAndLeavesRowsOpen_Parked(t *testing.T) {
	t.Parallel()
	p := newSQLShop(t, nil)
	for name, script := range map[string]string{"commits": "COMMIT", "begins again": "COMMIT; BEGIN"} {
		for form, run := range map[string]func(key string) error{
			"DoSQL": func(key string) error {
				_, err := DoSQL(t.Context(), p.a, p.db, call(key), func(ctx context.Context, x *semel.Execution, tx *sql.Tx) (string, error) {
					if _, err := p.paySQL(key, nil)(ctx, x, tx); err != nil {
						return "", err
					}
					if _, err := tx.ExecContext(ctx, script); err != nil {
						return "", err
					}
					_, err := tx.QueryContext(ctx, "SELECT 1")
					return "", err
				})
				return err
			},
			"Conn": func(key string) error {
				return Once(t.Context(), p.a, call(key), p.commitAndLeave(key, script))
			},
			"batch": func(key string) error {
				return p.a.RunBatch(t.Context(), poll(key), func(ctx context.Context, newCalls []*PendingCall) error {
					tx, _ := TxFrom(ctx)
					return p.commitAndLeave(key, script)(ctx, newCalls[0].Execution, tx)
				})[0].Err
			},
		} {
			key := form + ", " + name
			if err := run(key); !errors.Is(err, semel.ErrInDoubt) {
				t.Errorf("%s: got %v, want ErrInDoubt", key, err)
			}
			if r, err := p.record(t, key); err != nil || r.State != store.Unknown {
				t.Errorf("%s: the record is %v, %v", key, r.State, err)
			}
		}
	}
}

func (p *shop) commitAndLeave(key, script string) func(context.Context, *semel.Execution, pgx.Tx) error {
	return func(ctx context.Context, x *semel.Execution, tx pgx.Tx) error {
		if _, err := p.pay(key, nil)(ctx, x, tx); err != nil {
			return err
		}
		conn := tx.Conn()
		if _, err := conn.PgConn().Exec(ctx, script).ReadAll(); err != nil {
			return err
		}
		conn.QueryRow(ctx, "SELECT 1")
		return nil
	}
}

func TestStep_HandlerLeavesRowsOpen_StepRunsAgain(t *testing.T) {
	t.Parallel()
	p := newShop(t, openNew(t, nil), nil)
	g, leave := leased(t, p.s, nil), true
	run := func() (step error) {
		_ = semel.Once(t.Context(), g, call("k"), func(ctx context.Context, x *semel.Execution) error {
			step = Once(ctx, p.a, x.Step("pay"), func(ctx context.Context, x *semel.Execution, tx pgx.Tx) error {
				if leave {
					tx.QueryRow(ctx, "SELECT 1")
				}
				_, err := p.pay("k", nil)(ctx, x, tx)
				if leave {
					return nil
				}
				return err
			})
			return step
		})
		return step
	}
	wantUnread(t, run())
	leave = false
	for n := 0; ; n++ {
		err := run()
		if err == nil {
			break
		}
		if !errors.Is(err, semel.ErrInProgress) || n == 1000 { // the server notices a closed connection after a moment
			t.Fatal(err)
		}
	}
	p.want(t, "k")
}
