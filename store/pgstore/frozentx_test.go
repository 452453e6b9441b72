package pgstore

import (
	"context"
	"database/sql"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store/pgstore/internal/cuttest"
	"github.com/semel-go/semel/store/pgstore/pgtest"
)

// frozenShop is a shop whose connection freezes when a text is sent.
func frozenShop(t *testing.T) (p *shop, cut *cuttest.Cutter, url string) {
	t.Helper()
	first := openNew(t, nil)
	cut, url = cuttest.New(t, pgtest.URL(t), false)
	cut.Freeze = true
	return newShop(t, openThrough(t, first, url), &semel.Options{StoreTimeout: 2 * time.Second}), cut, url
}

// endsInTime fails if a call that nobody cancels does not end.
func endsInTime(t *testing.T, call func(ctx context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- call(ctx) }()
	select {
	case err := <-ended:
		t.Logf("ended: %v", err)
	case <-time.After(2 * time.Minute): // StoreTimeout is 2 s
		t.Error("the call has no end, although each request to the store has a limit")
	}
}

// The statements between the claim and COMMIT are the store's, too.
func TestAtomic_ServerFreezesInLaterAttempt_CallEnds(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{"at the settlement": "SET state = $4", "at the savepoint before the handler": "SAVEPOINT semel_1"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, cut, _ := frozenShop(t)
			down := errors.New("down")
			if err := Once(t.Context(), p.a, call("k"), func(context.Context, *semel.Execution, pgx.Tx) error { return down }); !errors.Is(err, down) {
				t.Fatal(err)
			}
			cut.At(text)
			endsInTime(t, func(ctx context.Context) error {
				return Once(ctx, p.a, call("k"), func(context.Context, *semel.Execution, pgx.Tx) error { return nil })
			})
			if cut.Cuts.Load() == 0 {
				t.Error("nothing froze, so the test shows nothing")
			}
		})
	}
}

func TestDoSQL_ServerFreezesAtRollback_CallEnds(t *testing.T) {
	t.Parallel()
	p, cut, url := frozenShop(t)
	cfg, err := pgx.ParseConfig(url)
	if err != nil {
		t.Fatal(err)
	}
	db := stdlib.OpenDB(*cfg)
	one := func(ctx context.Context) error {
		_, err := DoSQL(ctx, p.a, db, call("k"), func(context.Context, *semel.Execution, *sql.Tx) (int, error) { return 1, nil })
		return err
	}
	if err := one(t.Context()); err != nil {
		t.Fatal(err)
	}
	cut.At("rollback")
	endsInTime(t, one) // a duplicate: BEGIN, the claim, ROLLBACK
	if cut.Cuts.Load() == 0 {
		t.Error("nothing froze, so the test shows nothing")
	}
}

// A batch without records asks whether its handler has committed.
func TestRunBatch_ServerFreezesAtTheOnlyCheck_CallEnds(t *testing.T) {
	t.Parallel()
	p, cut, _ := frozenShop(t)
	cut.At("pg_current_xact_id_if_assigned")
	endsInTime(t, func(ctx context.Context) error {
		return p.a.RunBatch(ctx, []semel.Call{call("k")}, func(ctx context.Context, newCalls []*PendingCall) error {
			tx, _ := TxFrom(ctx)
			_ = tx.Conn()
			newCalls[0].Err = semel.NoEffect(errors.New("nothing done"))
			return nil
		})[0].Err
	})
	if cut.Cuts.Load() == 0 {
		t.Error("nothing froze, so the test shows nothing")
	}
}
