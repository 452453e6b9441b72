package pgstore

import (
	"context"
	"errors"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/pgstore/internal/cuttest"
	"github.com/semel-go/semel/store/pgstore/pgtest"
)

// All writes of a failed handler are undone, with each method of pgx.Tx.
func TestRunBatch_HandlerFails_WritesUndone(t *testing.T) {
	t.Parallel()
	for name, write := range map[string]func(ctx context.Context, tx pgx.Tx, p *shop) error{
		"Exec": func(ctx context.Context, tx pgx.Tx, p *shop) error {
			_, err := tx.Exec(ctx, "INSERT INTO "+p.table+" VALUES ('bad')")
			return err
		},
		"Query": func(ctx context.Context, tx pgx.Tx, p *shop) error {
			rows, err := tx.Query(ctx, "INSERT INTO "+p.table+" VALUES ('bad') RETURNING key")
			rows.Close()
			return errors.Join(err, rows.Err())
		},
		"QueryRow": func(ctx context.Context, tx pgx.Tx, p *shop) error {
			return tx.QueryRow(ctx, "INSERT INTO "+p.table+" VALUES ('bad') RETURNING key").Scan(new(string))
		},
		"SendBatch": func(ctx context.Context, tx pgx.Tx, p *shop) error {
			b := &pgx.Batch{}
			b.Queue("INSERT INTO " + p.table + " VALUES ('bad')")
			return tx.SendBatch(ctx, b).Close()
		},
		"CopyFrom": func(ctx context.Context, tx pgx.Tx, p *shop) error {
			_, err := tx.CopyFrom(ctx, pgx.Identifier{p.s.options.Schema, "payment"}, []string{"key"}, pgx.CopyFromRows([][]any{{"bad"}}))
			return err
		},
		"Begin": func(ctx context.Context, tx pgx.Tx, p *shop) error {
			return pgx.BeginFunc(ctx, tx, func(tx pgx.Tx) error {
				_, err := tx.Exec(ctx, "INSERT INTO "+p.table+" VALUES ('bad')")
				return err
			})
		},
		"Conn": func(ctx context.Context, tx pgx.Tx, p *shop) error {
			_, err := tx.Conn().Exec(ctx, "INSERT INTO "+p.table+" VALUES ('bad')")
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := newShop(t, openNew(t, nil), nil)
			poison := errors.New("poison")
			ends := p.a.RunBatch(t.Context(), poll("a", "bad", "b"), func(ctx context.Context, newCalls []*PendingCall) error {
				tx, _ := TxFrom(ctx)
				for _, f := range newCalls {
					if f.Index == 1 {
						return errors.Join(write(ctx, tx, p), poison)
					}
					if _, err := p.pay(f.Execution.Key(), nil)(ctx, f.Execution, tx); err != nil {
						return err
					}
				}
				return nil
			})
			if ends[0].Err != nil || !errors.Is(ends[1].Err, poison) || ends[2].Err != nil {
				t.Errorf("%v, %v, %v", ends[0].Err, ends[1].Err, ends[2].Err)
			}
			p.want(t, "a", "b")
		})
	}
}

// A handler whose joined call found its key taken has not failed: it uses up no attempt. A
// handler that returns the ErrInProgress of a call elsewhere has failed.
func TestRunBatch_InnerCallInProgress_CountsAttemptUnlessJoined(t *testing.T) {
	t.Parallel()
	p := newShop(t, openNew(t, nil), nil)
	defer p.holdKey(t, "inner")()
	elsewhere := reserved(t, p)
	for key, inner := range map[string]func(context.Context) error{
		"joined":    func(ctx context.Context) error { return Once(ctx, p.a, call("inner"), nil) },
		"elsewhere": elsewhere,
	} {
		ends := p.a.RunBatch(t.Context(), poll("before "+key, key, "after "+key), func(ctx context.Context, newCalls []*PendingCall) error {
			for _, f := range newCalls {
				if f.Execution.Key() == key {
					return inner(ctx)
				}
			}
			return nil
		})
		if ends[0].Err != nil || !errors.Is(ends[1].Err, semel.ErrInProgress) || ends[2].Err != nil {
			t.Errorf("%s: %v, %v, %v", key, ends[0].Err, ends[1].Err, ends[2].Err)
		}
		r, err := p.record(t, key)
		if key == "joined" && !errors.Is(err, store.ErrNotFound) || key == "elsewhere" && (err != nil || r.Attempt != 1) {
			t.Errorf("the record of %s is %v, attempt %d, error %v", key, r.State, r.Attempt, err)
		}
	}
}

// A COMMIT without an answer is found out by a call that it was to commit, and
// not by one that failed.
func TestRunBatch_CommitUnansweredAndCallFailed_OutcomeFound(t *testing.T) {
	t.Parallel()
	first := openNew(t, nil)
	c, through := cuttest.New(t, pgtest.URL(t), true)
	p := newShop(t, openThrough(t, first, through), nil)
	poison := errors.New("poison")
	c.At("COMMIT")
	ends := p.a.RunBatch(t.Context(), poll("bad", "a", "b"), func(ctx context.Context, newCalls []*PendingCall) error {
		tx, _ := TxFrom(ctx)
		newCalls[0].Err = poison
		for _, f := range newCalls[1:] {
			if _, err := p.pay(f.Execution.Key(), nil)(ctx, f.Execution, tx); err != nil {
				return err
			}
		}
		return nil
	})
	if !errors.Is(ends[0].Err, poison) || ends[1].Err != nil || ends[2].Err != nil {
		t.Errorf("%v, %v, %v", ends[0].Err, ends[1].Err, ends[2].Err)
	}
	if p.want(t, "a", "b"); c.Cuts.Load() != 1 {
		t.Errorf("%d cuts", c.Cuts.Load())
	}
}

// The first statement on a connection fails. ROLLBACK TO is not prepared on it, and a
// failed transaction cannot prepare.
func TestRunBatch_FirstStatementFails_OthersSucceed(t *testing.T) {
	t.Parallel()
	for _, keys := range [][]string{{"bad"}, {"bad", "a", "b"}} {
		t.Run("", func(t *testing.T) {
			w := newWorker(newShop(t, openNew(t, nil), nil))
			run := w.runAll
			mustExec(t, w.p.s.appPool, "ALTER TABLE "+w.p.table+" ADD CHECK (key <> 'bad')")
			w.p.s.appPool.Reset()
			calls := poll(keys...)
			wantEnds(t, calls, run(t.Context(), calls), append([]string{"check constraint"}, repeated("", len(keys)-1)...)...)
			w.p.want(t, keys[1:]...)
			if r, err := w.p.record(t, "bad"); err != nil || r.State != store.Released || r.Attempt != 1 {
				t.Errorf("its record is %v, attempt %d, error %v", r.State, r.Attempt, err)
			}
		})
	}
}
