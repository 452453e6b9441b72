package pgstore

import (
	"context"
	"database/sql"
	"errors"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store/pgstore/internal/cuttest"
	"github.com/semel-go/semel/store/pgstore/pgtest"
)

// fatal is the message with which a server that stops ends a connection.
func fatal(code string) []byte {
	data, _ := (&pgproto3.ErrorResponse{Severity: "FATAL", SeverityUnlocalized: "FATAL", Code: code, Message: "terminating connection"}).Encode(nil)
	return data
}

// commitForms are the ways to run one call in a transaction of its own. Lose runs in the
// handler, after its effect.
var commitForms = map[string]func(p *shop, ctx context.Context, key string, lose func()) error{
	"Do": func(p *shop, ctx context.Context, key string, lose func()) error {
		return Once(ctx, p.a, call(key), func(ctx context.Context, x *semel.Execution, tx pgx.Tx) error {
			_, err := p.pay(key, nil)(ctx, x, tx)
			lose()
			return err
		})
	},
	"batch": func(p *shop, ctx context.Context, key string, lose func()) error {
		return p.a.RunBatch(ctx, []semel.Call{call(key)}, func(ctx context.Context, newCalls []*PendingCall) error {
			tx, _ := TxFrom(ctx)
			_ = tx.Conn().TypeMap() // which is allowed, and the store must find out that it ended nothing
			_, err := p.pay(key, nil)(ctx, newCalls[0].Execution, tx)
			lose()
			return err
		})[0].Err
	},
	"DoSQL": func(p *shop, ctx context.Context, key string, lose func()) error {
		db := stdlib.OpenDBFromPool(p.s.appPool)
		defer func() { _ = db.Close() }()
		_, err := DoSQL(ctx, p.a, db, call(key), func(ctx context.Context, _ *semel.Execution, tx *sql.Tx) (string, error) {
			_, err := tx.ExecContext(ctx, "INSERT INTO "+p.table+" VALUES ($1)", key)
			lose()
			return "", err
		})
		return err
	},
}

// A server, or a pooler before it, ends the connection with an error instead of the answer
// to COMMIT. The error does not say whether the server has committed.
func TestAtomic_ConnectionEndedAtCommit_OutcomeFound(t *testing.T) {
	t.Parallel()
	for name, after := range map[string]bool{"committed": true, "not committed": false} {
		for form, run := range commitForms {
			for _, code := range []string{"57P01", "58000"} {
				t.Run(name+", "+form+", "+code, func(t *testing.T) {
					first := openNew(t, nil)
					cut, through := cuttest.New(t, pgtest.URL(t), after)
					cut.Last = fatal(code)
					p := newShop(t, openThrough(t, first, through), nil)
					commit := "COMMIT\x00"
					if form == "DoSQL" {
						commit = "commit\x00"
					}
					err := run(p, t.Context(), "k", func() { cut.At(commit) })
					if errors.Is(err, semel.ErrInDoubt) || after != (err == nil) {
						t.Errorf("got %v", err)
					}
					if err := run(p, t.Context(), "k", func() {}); err != nil {
						t.Errorf("the next call: %v", err)
					}
					if p.want(t, "k"); cut.Cuts.Load() != 1 {
						t.Errorf("%d cuts", cut.Cuts.Load())
					}
				})
			}
		}
	}
}

// After the server has answered COMMIT, nothing takes the transaction back: the caller gets
// its result although the server ends the connection, and cannot be asked.
func TestAtomic_ServerStopsAfterCommit_ResultReturned(t *testing.T) {
	t.Parallel()
	for _, form := range []string{"Do", "batch"} {
		t.Run(form, func(t *testing.T) {
			first := openNew(t, nil)
			cut, through := cuttest.New(t, pgtest.URL(t), true)
			cut.Until, cut.Last = "COMMIT\x00", fatal("57P01")
			p := newShop(t, openThrough(t, first, through), nil)
			if err := commitForms[form](p, t.Context(), "k", func() {
				cut.At("COMMIT\x00")
				p.s.ownPool.Close()
			}); err != nil {
				t.Errorf("a committed call: %v", err)
			}
			if n := ask[int](t, first.ownPool, "SELECT count(*) FROM "+p.table); n != 1 || cut.Cuts.Load() != 1 {
				t.Errorf("%d effects, %d cuts", n, cut.Cuts.Load())
			}
		})
	}
}

// terminateAtCommit ends the backend pid while it commits, as a fast shutdown of the server
// does, and reports whether it has. It gives up when ctx ends.
func terminateAtCommit(ctx context.Context, admin *pgxpool.Pool, pid int) (ended bool) {
	for ctx.Err() == nil && !ended {
		_ = admin.QueryRow(ctx, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid = $1 AND state = 'active' AND query ILIKE 'commit'", pid).Scan(&ended)
	}
	return ended
}

// A server that is stopped while it writes COMMIT to its disk answers COMMIT, and ends the
// connection with 57P01. No caller is told that nothing happened, and no record with an
// outcome is parked.
func TestAtomic_ServerStopsWhileItCommits_OutcomeStays(t *testing.T) {
	t.Parallel()
	srv := pgtest.Start(t, "fsync=on", "synchronous_commit=on", "commit_delay=100000", "commit_siblings=0") // a COMMIT takes 100 ms
	admin := pool(t, srv.URL())
	p := newShop(t, openAt(t, srv.URL(), nil), nil)
	for _, form := range []string{"Do", "batch"} {
		ended := false
		for i := 0; i < 20 && !ended; i++ {
			key := form + itoa(i)
			ctx, stop := context.WithCancel(t.Context())
			result, started := make(chan bool, 1), false
			err := commitForms[form](p, t.Context(), key, func() {
				if started {
					return
				}
				started = true
				pid := ask[int](t, admin, "SELECT pid FROM pg_stat_activity WHERE state = 'idle in transaction' AND query LIKE '%payment%'")
				go func() { result <- terminateAtCommit(ctx, admin, pid) }()
			})
			stop()
			ended = <-result
			n := ask[int](t, admin, "SELECT count(*) FROM "+p.table+" WHERE key = $1", key)
			if n == 1 && err != nil && !errors.Is(err, semel.ErrInDoubt) {
				t.Errorf("%s: the effect is committed, and the caller was told that it is not: %v", key, err)
			}
			if again := commitForms[form](p, t.Context(), key, func() {}); n == 1 && again != nil && !errors.Is(again, semel.ErrUnavailable) {
				t.Errorf("%s again: %v", key, again)
			}
		}
		if !ended {
			t.Errorf("%s: no backend was ended at COMMIT: this test shows nothing", form)
		}
	}
}
