package pgstore

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/pgstore/internal/cuttest"
	"github.com/semel-go/semel/store/pgstore/internal/handlertx"
	"github.com/semel-go/semel/store/pgstore/pgtest"
)

// The handler commits by itself, and the store does not answer when its key is to be
// parked: the call does not say that the key is parked.
func TestAtomic_HandlerCommitsAndKeyCannotBeParked_Unavailable(t *testing.T) {
	t.Parallel()
	commits := func(ctx context.Context, p *shop, tx pgx.Tx) error {
		_, err := tx.Conn().Exec(ctx, "INSERT INTO "+p.table+" VALUES ('k'); COMMIT")
		return err
	}
	for form, run := range map[string]func(p *shop) error{
		"Once": func(p *shop) error {
			return Once(t.Context(), p.a, call("k"), func(ctx context.Context, _ *semel.Execution, tx pgx.Tx) error { return commits(ctx, p, tx) })
		},
		"DoSQL": func(p *shop) error {
			_, err := DoSQL(t.Context(), p.a, stdlib.OpenDBFromPool(p.s.appPool), call("k"), func(ctx context.Context, _ *semel.Execution, tx *sql.Tx) (int, error) {
				_, err := tx.ExecContext(ctx, "INSERT INTO "+p.table+" VALUES ('k')")
				return 1, errors.Join(err, tx.Commit())
			})
			return err
		},
		"batch": func(p *shop) error {
			return p.a.RunBatch(t.Context(), poll("k"), func(ctx context.Context, _ []*PendingCall) error {
				tx, _ := TxFrom(ctx)
				return commits(ctx, p, tx)
			})[0].Err
		},
	} {
		t.Run(form, func(t *testing.T) {
			t.Parallel()
			first := openNew(t, nil)
			cut, through := cuttest.New(t, pgtest.URL(t), false)
			cut.Freeze = true
			p := newShop(t, openAt(t, through, &Options{Schema: first.options.Schema}), &semel.Options{StoreTimeout: 2 * time.Second})
			cut.At("semel_doubt (record)")
			err := run(p)
			if !errors.Is(err, semel.ErrUnavailable) || !errors.Is(err, semel.ErrInDoubt) || !errors.Is(err, handlertx.ErrEnded) {
				t.Errorf("the call: %v; want ErrUnavailable, in doubt, with the rule", err)
			}
			if strings.Contains(err.Error(), "is parked") {
				t.Errorf("the key is not parked, and the error says so: %v", err)
			}
			cut.At("no such text")
			if r, err := p.record(t, "k"); r.State == store.Unknown || cut.Cuts.Load() == 0 {
				t.Errorf("the record is %v, %v; %d cuts: this test shows nothing", r.State, err, cut.Cuts.Load())
			}
			p.want(t, "k")
		})
	}
}

// The key is not parked, because another call has claimed it after the handler's COMMIT.
func TestAtomic_HandlerCommitsAndAnotherClaims_ErrorDoesNotSayParked(t *testing.T) {
	t.Parallel()
	p := newShop(t, openNew(t, nil), nil)
	err := Once(t.Context(), p.a, call("k"), func(ctx context.Context, _ *semel.Execution, tx pgx.Tx) error {
		if _, err := tx.Conn().Exec(ctx, "INSERT INTO "+p.table+" VALUES ('k'); COMMIT"); err != nil {
			return err
		}
		if _, err := Do(t.Context(), p.a, call("k"), p.pay("again", nil)); err != nil {
			t.Error(err)
		}
		return nil
	})
	if !errors.Is(err, semel.ErrUnavailable) || !errors.Is(err, semel.ErrInDoubt) || strings.Contains(err.Error(), "is parked") {
		t.Errorf("the call: %v; want ErrUnavailable, in doubt, and no word that the key is parked", err)
	}
	if r, err := p.record(t, "k"); r.State != store.Completed {
		t.Errorf("the record is %v, %v; want the outcome of the other call", r.State, err)
	}
}
