package pgstore

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/pgstore/internal/cuttest"
	"github.com/semel-go/semel/store/pgstore/internal/handlertx"
	"github.com/semel-go/semel/store/pgstore/internal/pgwire"
	"github.com/semel-go/semel/store/pgstore/pgtest"
)

// useConnInRows uses tx.Conn() while rows are open, which ends nothing.
func useConnInRows(ctx context.Context, tx pgx.Tx) error {
	rows, err := tx.Query(ctx, "SELECT 1")
	if err != nil {
		return fmt.Errorf("query: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		_ = tx.Conn().TypeMap()
	}
	if err := rows.Err(); err != nil {
		return fmt.Errorf("rows: %w", err)
	}
	return nil
}

// onConnInRows runs a script on the connection, which it gets while rows are open, so that the
// id of the transaction is not known.
func onConnInRows(script string) func(ctx context.Context, tx pgx.Tx) {
	return func(ctx context.Context, tx pgx.Tx) {
		rows, _ := tx.Query(ctx, "SELECT 1")
		conn := tx.Conn()
		rows.Close()
		_, _ = conn.PgConn().Exec(ctx, script).ReadAll()
	}
}

// A handler that uses Conn while rows are open ends nothing, and its id is not known.
func TestCommit_RefusedAfterConnInRows_NotParked(t *testing.T) {
	p := newShop(t, openNew(t, nil), nil)
	p.refuseCommits(t, "bad")
	t.Run("Once", func(t *testing.T) {
		_, err := Do(t.Context(), p.a, call("one"), func(ctx context.Context, x *semel.Execution, tx pgx.Tx) (string, error) {
			if err := useConnInRows(ctx, tx); err != nil {
				t.Error(err)
			}
			return p.pay("bad", nil)(ctx, x, tx)
		})
		if pgwire.Code(err) != "P0001" || errors.Is(err, semel.ErrInDoubt) {
			t.Errorf("got %v", err)
		}
		if r, err := p.record(t, "one"); err != nil || r.State != store.Released {
			t.Errorf("the record is %v, %v", r.State, err)
		}
	})
	t.Run("batch", func(t *testing.T) {
		ends := p.a.RunBatch(t.Context(), poll("a", "b", "bad", "c"), func(ctx context.Context, newCalls []*PendingCall) error {
			tx, _ := TxFrom(ctx)
			if err := useConnInRows(ctx, tx); err != nil {
				t.Error(err)
			}
			for _, f := range newCalls {
				if _, err := tx.Exec(ctx, "INSERT INTO "+p.table+" VALUES ($1)", f.Execution.Key()); err != nil {
					return err
				}
			}
			return nil
		})
		for i, k := range []string{"a", "b", "bad", "c"} {
			r, err := p.record(t, k)
			if want := store.Completed; k != "bad" && r.State != want {
				t.Errorf("%s: the record is %v, %v; the call: %v", k, r.State, err, ends[i].Err)
			}
		}
	})
}

// A handler that uses Conn while rows are open, and then fails, has ended nothing.
func TestAtomic_HandlerFailsAfterConnInRows_NotParked(t *testing.T) {
	down := errors.New("the bank is down")
	for name, result := range map[string]error{"plain error": down, "Failure": semel.Final(down), "NoEffect": semel.NoEffect(down)} {
		t.Run(name, func(t *testing.T) {
			p := newShop(t, openNew(t, nil), nil)
			err := Once(t.Context(), p.a, call("k"), func(ctx context.Context, _ *semel.Execution, tx pgx.Tx) error {
				if err := useConnInRows(ctx, tx); err != nil {
					t.Error(err)
				}
				return result
			})
			if r, _ := p.record(t, "k"); errors.Is(err, semel.ErrInDoubt) || r.State == store.Unknown {
				t.Errorf("the call: %v; the record is %v", err, r.State)
			}
		})
	}
	t.Run("one call of a batch", func(t *testing.T) {
		p := newShop(t, openNew(t, nil), nil)
		keys := []string{"a", "b", "bad", "c"}
		ends := p.a.RunBatch(t.Context(), poll(keys...), func(ctx context.Context, newCalls []*PendingCall) error {
			tx, _ := TxFrom(ctx)
			if err := useConnInRows(ctx, tx); err != nil {
				t.Error(err)
			}
			for _, f := range newCalls {
				if f.Execution.Key() == "bad" {
					return down
				}
			}
			return nil
		})
		for i, k := range keys {
			want := store.Completed
			if k == "bad" {
				want = store.Released
			}
			if r, err := p.record(t, k); r.State != want {
				t.Errorf("%s: the record is %v, %v; the call: %v", k, r.State, err, ends[i].Err)
			}
		}
	})
}

// A handler that gets Conn while rows are open can commit by it, and panic.
func TestAtomic_HandlerCommitsByConnInRowsAndPanics_Parked(t *testing.T) {
	t.Parallel()
	forms := map[string]func(ctx context.Context, p *shop, handler func(ctx context.Context, tx pgx.Tx)){
		"Once": func(ctx context.Context, p *shop, handler func(ctx context.Context, tx pgx.Tx)) {
			_ = Once(ctx, p.a, call("k"), func(ctx context.Context, _ *semel.Execution, tx pgx.Tx) error { handler(ctx, tx); return nil })
		},
		"batch": func(ctx context.Context, p *shop, handler func(ctx context.Context, tx pgx.Tx)) {
			p.a.RunBatch(ctx, []semel.Call{call("k")}, func(ctx context.Context, _ []*PendingCall) error {
				tx, _ := TxFrom(ctx)
				handler(ctx, tx)
				return nil
			})
		},
	}
	for name, run := range forms {
		t.Run(name, func(t *testing.T) {
			p := newShop(t, openNew(t, nil), nil)
			func() {
				defer func() { _ = recover() }()
				run(t.Context(), p, func(ctx context.Context, tx pgx.Tx) {
					if _, err := tx.Exec(ctx, "INSERT INTO "+p.table+" VALUES ('k')"); err != nil {
						t.Error(err)
					}
					rows, err := tx.Query(ctx, "SELECT 1")
					if err != nil {
						t.Error(err)
					}
					conn := tx.Conn()
					rows.Close()
					if _, err := conn.Exec(ctx, "COMMIT"); err != nil {
						t.Error(err)
					}
					panic("after its own COMMIT")
				})
			}()
			if r, err := p.record(t, "k"); r.State != store.Unknown {
				t.Errorf("the record is %v, %v; the handler has committed its effect", r.State, err)
			}
		})
	}
}

// Another server, or the same one after a restart, may give the id of the transaction to
// another one, which it commits.
func TestFate_ServerStartedSince_NotKnown(t *testing.T) {
	s := openNew(t, nil)
	p := newShop(t, s, nil)
	var id handlertx.ID
	if err := application(t, s).QueryRow(t.Context(), handlertx.CurrentID).Scan(&id.XID, &id.Server); err != nil {
		t.Fatal(err)
	}
	for server, want := range map[string]bool{id.Server: true, "0": false} {
		own := p.a.newOwnTx()
		own.finished.Lend(handlertx.ID{XID: id.XID, Server: server})
		if committed, known := own.fate(t.Context()); committed != want || known != want {
			t.Errorf("committed %v, known %v; want both %v", committed, known, want)
		}
	}
}

// The handler returns a final failure, its connection is closed, and the server answers
// only the second question. Nothing is recorded, so the failure must not be final.
func TestEnded_FateKnownLate_FailureIsNotReturned(t *testing.T) {
	first := openNew(t, nil)
	cut, through := cuttest.New(t, pgtest.URL(t), false)
	cut.Freeze = true
	p := newShop(t, openAt(t, through, &Options{Schema: first.options.Schema}), &semel.Options{StoreTimeout: 2 * time.Second})
	cut.At("pg_xact_status")
	go func() {
		waitFor(t, "asked", func() bool { return cut.Cuts.Load() > 0 })
		cut.At("no such text")
	}()
	err := Once(t.Context(), p.a, call("k"), func(ctx context.Context, _ *semel.Execution, tx pgx.Tx) error {
		_ = tx.Conn().TypeMap()
		_, _ = tx.Exec(ctx, "INSERT INTO "+p.table+" VALUES ('k')")
		_, _ = tx.Exec(ctx, "SELECT pg_terminate_backend(pg_backend_pid())")
		return &semel.Failure{Code: "declined"}
	})
	r, rerr := p.record(t, "k")
	if f, ok := errors.AsType[*semel.Failure](err); ok || !errors.Is(err, semel.ErrUnavailable) || rerr != nil || r.State == store.Failed {
		t.Errorf("the caller got %v, a final failure %v; the record is %v, %v", err, f, r.State, rerr)
	}
}

// A transaction of the caller whose snapshot is older than the claim does not see the
// record. The lease is held all the same, so the other steps go on.
func TestStep_InOldSnapshot_OtherStepsGoOn(t *testing.T) {
	p := newShop(t, openNew(t, nil), nil)
	g := leased(t, p.s, nil)
	tx, err := p.s.appPool.BeginTx(t.Context(), pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(context.Background()) }()
	if _, err := tx.Exec(t.Context(), "SELECT count(*) FROM "+p.table); err != nil {
		t.Fatal(err)
	}
	err = semel.Once(t.Context(), g, call("k"), func(ctx context.Context, x *semel.Execution) error {
		if _, err := semel.Do(ctx, p.a.In(tx), x.Step("pay"), func(context.Context, *semel.Execution) (string, error) { return "", nil }); !errors.Is(err, semel.ErrLeaseLost) {
			t.Errorf("in the old snapshot: error %v, want ErrLeaseLost", err)
		}
		_ = tx.Rollback(ctx)
		_, err := Do(ctx, p.a, x.Step("pay"), p.pay("k", nil))
		return err
	})
	if err != nil {
		t.Errorf("a step in a new transaction: %v", err)
	}
	p.want(t, "k")
}

// A handler gets Conn while rows are open, commits and begins another transaction with it, and
// then leaves rows open, panics, or asks for Conn again.
func TestAtomic_HandlerCommitsAndBeginsByConnInRows_Parked(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(ctx context.Context, tx pgx.Tx) error{
		"rows are open": func(ctx context.Context, tx pgx.Tx) error { _, err := tx.Query(ctx, "SELECT 1"); return err },
		"panic":         func(context.Context, pgx.Tx) error { panic("after its own COMMIT") },
		"Conn again":    func(_ context.Context, tx pgx.Tx) error { _ = tx.Conn().TypeMap(); return nil },
	} {
		for form, run := range map[string]func(p *shop, fn func(ctx context.Context, tx pgx.Tx) error) error{
			"Once": func(p *shop, fn func(ctx context.Context, tx pgx.Tx) error) error {
				return Once(t.Context(), p.a, call("k"), func(ctx context.Context, _ *semel.Execution, tx pgx.Tx) error { return fn(ctx, tx) })
			},
			"batch": func(p *shop, fn func(ctx context.Context, tx pgx.Tx) error) error {
				return p.a.RunBatch(t.Context(), poll("k"), func(ctx context.Context, _ []*PendingCall) error {
					tx, _ := TxFrom(ctx)
					return fn(ctx, tx)
				})[0].Err
			},
		} {
			t.Run(name+", "+form, func(t *testing.T) {
				p := newShop(t, openNew(t, nil), nil)
				func() {
					defer func() { _ = recover() }()
					if err := run(p, func(ctx context.Context, tx pgx.Tx) error {
						if _, err := tx.Exec(ctx, "INSERT INTO "+p.table+" VALUES ('k')"); err != nil {
							t.Error(err)
						}
						onConnInRows("COMMIT; BEGIN")(ctx, tx)
						return end(ctx, tx)
					}); !errors.Is(err, semel.ErrInDoubt) {
						t.Errorf("got %v, want ErrInDoubt", err)
					}
				}()
				if r, err := p.record(t, "k"); r.State != store.Unknown {
					t.Errorf("the record is %v, %v; the handler has committed its effect", r.State, err)
				}
			})
		}
	}
}
