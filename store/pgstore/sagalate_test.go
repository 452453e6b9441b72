package pgstore

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/saga"
	"github.com/semel-go/semel/store/pgstore/internal/cuttest"
	"github.com/semel-go/semel/store/pgstore/pgtest"
)

// The server is still committing a StepIn when its client is cut off, and the deadline of
// the saga passes. A compensation in the same run would find nothing to undo, and the
// COMMIT would land after it.
func TestSaga_StepInCommitsAfterDeadline_IsUndoneAfterItsCommit(t *testing.T) {
	t.Parallel()
	first := openNew(t, nil)
	cut, through := cuttest.New(t, pgtest.URL(t), true)
	cut.AtOnce = true
	p := newShop(t, openThrough(t, first, through), nil)
	schema := first.quoted()
	mustExec(t, first.ownPool, "CREATE TABLE "+schema+".gate AS SELECT 1 AS open")
	mustExec(t, first.ownPool, "CREATE FUNCTION "+schema+".wait() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM FROM "+schema+".gate FOR SHARE; RETURN NULL; END $$")
	mustExec(t, first.ownPool, "CREATE CONSTRAINT TRIGGER wait AFTER INSERT ON "+p.table+" DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION "+schema+".wait()")
	gate, err := first.ownPool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = gate.Rollback(context.Background()) }()
	if _, err := gate.Exec(t.Context(), "SELECT FROM "+schema+".gate FOR UPDATE"); err != nil {
		t.Fatal(err)
	}
	undone := make(chan int64, 20) // more than UndoAttempts
	s, err := saga.New(leased(t, p.s, nil), saga.Definition[string, string]{
		Name: "order", Steps: []string{"book"}, Deadline: 10 * time.Second,
		Run: func(ctx context.Context, r *saga.Run, _ string) (string, error) {
			v, err := saga.StepIn(ctx, r, p.a, "book", func(ctx context.Context, at saga.At) (string, error) {
				tx, _ := TxFrom(ctx)
				_, err := tx.Exec(ctx, "INSERT INTO "+p.table+" VALUES ($1)", at.Key())
				cut.At("COMMIT")
				return "booked", err
			}, func(ctx context.Context, at saga.At, _ string) error {
				tag, err := first.ownPool.Exec(ctx, "DELETE FROM "+p.table+" WHERE key = $1", at.StepKey())
				undone <- tag.RowsAffected()
				return err
			})
			if errors.Is(err, semel.ErrInDoubt) {
				<-ctx.Done() // the deadline
			}
			return v, err
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() {
		_, err := s.Do(t.Context(), "ann", "1", "in")
		for err != nil {
			if _, failed := errors.AsType[*semel.Failure](err); failed || errors.Is(err, semel.ErrParked) || t.Context().Err() != nil {
				break
			}
			_, err = s.Do(t.Context(), "ann", "1", "in")
		}
		ended <- err
	}()
	rows := int64(-1)
	waitFor(t, "the saga undoes the step, or waits for its transaction", func() bool {
		select {
		case rows = <-undone:
			return true
		default:
			return ask[int](t, first.ownPool, "SELECT count(*) FROM pg_locks l JOIN pg_stat_activity a USING (pid) WHERE NOT l.granted AND a.query LIKE '%' || $1 || '%'", schema) > 0
		}
	})
	_ = gate.Rollback(t.Context())
	err = <-ended
	if f, ok := errors.AsType[*semel.Failure](err); !ok || f.Code != saga.CodeDeadline {
		t.Errorf("the saga: %v, want the failure of the deadline", err)
	}
	if rows < 0 && len(undone) > 0 {
		rows = <-undone
	}
	if rows != 1 {
		t.Errorf("the compensation removed %d rows, want 1", rows)
	}
	p.want(t)
}
