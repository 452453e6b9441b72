package pgstore

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/pgstore/internal/cuttest"
	"github.com/semel-go/semel/store/pgstore/pgtest"
)

// acquires counts the connections that were asked of a pool.
type acquires struct{ begun atomic.Int64 }

func (a *acquires) TraceAcquireStart(ctx context.Context, _ *pgxpool.Pool, _ pgxpool.TraceAcquireStartData) context.Context {
	a.begun.Add(1)
	return ctx
}

func (*acquires) TraceAcquireEnd(context.Context, *pgxpool.Pool, pgxpool.TraceAcquireEndData) {}

func (*acquires) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	return ctx
}

func (*acquires) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// A step that waits for a connection must not hold up the steps that have the connections.
func TestStep_MoreAtOnceThanConnections_AllCommit(t *testing.T) {
	t.Parallel()
	const conns, steps = 2, 4
	var asked acquires
	c := newSmallPool(t, pgtest.URL(t), conns, func(cfg *pgxpool.Config) { cfg.ConnConfig.Tracer = &asked })
	g := leased(t, c.s, nil)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var names []string
	err := semel.Once(ctx, g, call("k"), func(ctx context.Context, x *semel.Execution) error {
		before := asked.begun.Load()
		var all sync.WaitGroup
		errs := make([]error, steps)
		for i := range steps {
			name := fmt.Sprint("step ", i)
			names = append(names, name)
			all.Go(func() {
				_, errs[i] = Do(ctx, c.a, x.Step(name), func(ctx context.Context, x *semel.Execution, tx pgx.Tx) (string, error) {
					waitFor(t, "a step waits for a connection", func() bool { return asked.begun.Load() > before+conns })
					return c.pay(name, nil)(ctx, x, tx)
				})
			})
		}
		all.Wait()
		return errors.Join(errs...)
	})
	if err != nil {
		t.Error(err)
	}
	c.want(t, names...)
}

// The server is still committing the step when its client is cut off and uses it again.
func TestStep_UsedAgainWhileItCommits_HasEffectOnce(t *testing.T) {
	t.Parallel()
	first := openNew(t, nil)
	cut, through := cuttest.New(t, pgtest.URL(t), true)
	cut.AtOnce = true
	p := newShop(t, openThrough(t, first, through), nil)
	p.a.cleanupTimeout = 500 * time.Millisecond
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
	g := leased(t, p.s, &semel.Options{OnDoubt: semel.Park})
	err = semel.Once(t.Context(), g, call("k"), func(ctx context.Context, x *semel.Execution) error {
		cut.At("COMMIT")
		_, err := Do(ctx, p.a, x.Step("pay"), p.pay("k", nil))
		if !errors.Is(err, semel.ErrInDoubt) {
			t.Errorf("a COMMIT that is under way, and cut off: %v", err)
		}
		var opened sync.WaitGroup
		defer opened.Wait()
		opened.Go(func() {
			waitFor(t, "the second use waits for the first", func() bool {
				var waits bool
				err := first.ownPool.QueryRow(ctx, "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND position($1 IN query) > 0)", "INSERT INTO "+schema+".semel_step").Scan(&waits)
				return err != nil || waits
			})
			_ = gate.Rollback(ctx)
		})
		receipt, err := Do(ctx, p.a, x.Step("pay"), p.pay("k", nil))
		if receipt != "receipt of k" {
			t.Errorf("the second use: %q, %v", receipt, err)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	p.want(t, "k")
}

// Another transaction has recorded the step, and the one of the caller cannot run again.
func TestStep_RecordedMeanwhileInTransactionOfCaller_IsChanged(t *testing.T) {
	t.Parallel()
	p := newShop(t, openNew(t, nil), nil)
	g := leased(t, p.s, nil)
	err := semel.Once(t.Context(), g, call("k"), func(ctx context.Context, x *semel.Execution) error {
		use := func() (string, error) {
			var receipt string
			err := pgx.BeginFunc(ctx, p.s.appPool, func(tx pgx.Tx) error {
				var err error
				receipt, err = semel.Do(ctx, p.a.In(tx), x.Step("pay"), func(ctx context.Context, x *semel.Execution) (string, error) {
					recordElsewhere(t, p, g, "pay")
					return p.pay("k", nil)(ctx, x, tx)
				})
				return err
			})
			return receipt, err
		}
		if receipt, err := use(); !errors.Is(err, store.ErrChanged) {
			t.Errorf("a step that another has recorded: %q, %v; want ErrChanged", receipt, err)
		}
		receipt, err := use()
		if receipt != "elsewhere" {
			t.Errorf("the next use: %q, %v", receipt, err)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	p.want(t)
}

// recordElsewhere records a step of the call "k" outside of any transaction, as a COMMIT
// does whose client has given it up.
func recordElsewhere(t *testing.T, p *shop, g *semel.Guard, name string) {
	t.Helper()
	r, err := g.Get(t.Context(), call("k"))
	if err == nil {
		err = p.s.RecordStep(t.Context(), r.Lease(), store.Step{Name: name, Outcome: store.Outcome{Codec: "json", Body: []byte(`"elsewhere"`)}})
	}
	if err != nil {
		t.Error(err)
	}
}

func TestStep_NameUsedTwice_InTransactions_IsInvalid(t *testing.T) {
	t.Parallel()
	p := newShop(t, openNew(t, nil), nil)
	g := leased(t, p.s, nil)
	err := semel.Once(t.Context(), g, call("k"), func(ctx context.Context, x *semel.Execution) error {
		if _, err := Do(ctx, p.a, x.Step("pay"), p.pay("one", nil)); err != nil {
			t.Error(err)
		}
		receipt, err := Do(ctx, p.a, x.Step("pay"), p.pay("two", nil))
		if !errors.Is(err, semel.ErrInvalid) {
			t.Errorf("the second use: %q, %v; want ErrInvalid", receipt, err)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	p.want(t, "one")
}
