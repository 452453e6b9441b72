package pgstore

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/pgstore/internal/pgwire"
)

// The first statement of a handler is not sent, because its own context has ended. The
// handler then writes with another context, and fails. The savepoint was not sent with
// the first statement, and must come before the second one.
func TestRunBatch_StatementTimesOut_LaterStatementsUndone(t *testing.T) {
	t.Parallel()
	poison := errors.New("poison")
	for _, keys := range [][]string{{"bad"}, {"a", "bad", "b"}} {
		p := newShop(t, openNew(t, nil), nil)
		work := func(ctx context.Context, key string) error {
			tx, _ := TxFrom(ctx)
			if key == "bad" {
				late, cancel := context.WithCancel(ctx)
				cancel()
				if _, err := tx.Exec(late, "SELECT 1"); !errors.Is(err, context.Canceled) {
					t.Error(err)
				}
			}
			_, err := tx.Exec(ctx, "INSERT INTO "+p.table+" VALUES ($1)", key)
			if key == "bad" {
				err = errors.Join(err, poison)
			}
			return err
		}
		ends := p.a.RunBatch(t.Context(), poll(keys...), func(ctx context.Context, newCalls []*PendingCall) error {
			for _, f := range newCalls {
				if err := work(ctx, f.Execution.Key()); err != nil {
					return err
				}
			}
			return nil
		})
		var want []string
		for i, e := range ends {
			bad := keys[i] == "bad"
			if bad != errors.Is(e.Err, poison) || !bad && e.Err != nil {
				t.Errorf("%q: %v", keys[i], e.Err)
			}
			if !bad {
				want = append(want, keys[i])
			}
		}
		p.want(t, want...)
		if r, err := p.record(t, "bad"); err != nil || r.State != store.Released || r.Attempt != 1 {
			t.Errorf("its record is %v, attempt %d, error %v", r.State, r.Attempt, err)
		}
	}
}

// A batch of one call begins with a savepoint, so that a failing handler runs once.
// Conflicts of one call are not an outage for the calls after it.
func TestRunBatch_SingleCallFails_RunsOnceOthersContinue(t *testing.T) {
	t.Parallel()
	p := newShop(t, openNew(t, nil), nil)
	w := newWorker(p)
	w.fail["bad"] = errors.New("poison")
	wantEnds(t, poll("bad"), w.runAll(t.Context(), poll("bad")), "poison")
	if w.runs["bad"] != 1 {
		t.Errorf("it ran %d times", w.runs["bad"])
	}
	p.a.savepointBatches.Store(0)
	calls := poll("a", "meets", "b")
	ends := p.a.RunBatch(t.Context(), calls, func(ctx context.Context, newCalls []*PendingCall) error {
		tx, _ := TxFrom(ctx)
		for _, f := range newCalls {
			sql := "INSERT INTO " + p.table + " VALUES ('" + f.Execution.Key() + "')"
			if f.Execution.Key() == "meets" {
				sql = "DO $$ BEGIN RAISE EXCEPTION 'again' USING ERRCODE = '40001'; END $$"
			}
			if _, err := tx.Exec(ctx, sql); err != nil {
				return err
			}
		}
		return nil
	})
	if ends[0].Err != nil || !errors.Is(ends[1].Err, semel.ErrUnavailable) || ends[2].Err != nil {
		t.Errorf("%v, %v, %v", ends[0].Err, ends[1].Err, ends[2].Err)
	}
	p.want(t, "a", "b")
}

func TestRefusedForContent_EachCode(t *testing.T) {
	t.Parallel()
	for code, want := range map[string]bool{
		"22012": true, "23505": true, "P0001": true, "54000": true, "SHOP1": true, // of a trigger's own
		"40001": false, "53200": false, "55P03": false, "57P01": false, "08006": false, "42P01": false, "25006": false, "XX000": false, "1": false,
	} {
		if is := pgwire.RefusedForContent(fmt.Errorf("commit: %w", &pgconn.PgError{Code: code})); is != want {
			t.Errorf("%s: %v, want %v", code, is, want)
		}
	}
	if pgwire.RefusedForContent(nil) || pgwire.RefusedForContent(errors.New("cut")) {
		t.Error("an error that is not the server's is one for content")
	}
}
