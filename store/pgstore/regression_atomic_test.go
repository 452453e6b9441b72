package pgstore

import (
	"context"
	"encoding/hex"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/pgstore/internal/cuttest"
	"github.com/semel-go/semel/store/pgstore/internal/table"
	"github.com/semel-go/semel/store/pgstore/pgtest"
)

// NoEffect around a Failure says that nothing happened, and nothing is kept.
func TestAtomic_FailureInsideNoEffect_NotStored(t *testing.T) {
	t.Parallel()
	p := newShop(t, openNew(t, nil), nil)
	plain := errors.New("plain")
	_, err := Do(t.Context(), p.a, call("k"), p.pay("k", plain))
	if !errors.Is(err, plain) {
		t.Fatal(err)
	}
	if _, err = Do(t.Context(), p.a, call("k"), p.pay("k", semel.NoEffect(&semel.Failure{Code: "x"}))); err == nil {
		t.Error("the failure is not told")
	}
	if r, _ := p.record(t, "k"); r.State != store.Released || r.Attempt != 1 {
		t.Errorf("the record is %v after %d attempts", r.State, r.Attempt)
	}
	_, err = Do(t.Context(), p.a, call("k"), p.pay("k", nil))
	if err != nil {
		t.Errorf("3rd: %v", err)
	}
}

// Being told that somebody else is at it is not a failure.
func TestAtomic_InnerCallInProgress_CountsNoAttempt(t *testing.T) {
	t.Parallel()
	p := newShop(t, openNew(t, nil), &semel.Options{MaxAttempts: 3})
	n := 0
	// another transaction has "inner" in flight
	other := beginTx(t, p.s, txDefaults)
	if _, err := semel.Do(t.Context(), p.a.In(other), call("inner"), func(ctx context.Context, x *semel.Execution) (string, error) { return "", nil }); err != nil {
		t.Fatal(err)
	}
	outer := func(wait time.Duration) error {
		c := call("outer")
		c.Wait = wait
		_, err := Do(t.Context(), p.a, c, func(ctx context.Context, x *semel.Execution, tx pgx.Tx) (string, error) {
			if n++; x.Attempt() != 1 {
				t.Errorf("run %d is attempt %d", n, x.Attempt())
			}
			if n == 5 { // there would be no more than 3 attempts
				if err := other.Rollback(ctx); err != nil {
					t.Error(err)
				}
			}
			return Do(ctx, p.a, call("inner"), p.pay("inner", nil))
		})
		return err
	}
	if err := outer(0); !errors.Is(err, semel.ErrInProgress) || n != 1 {
		t.Errorf("the handler ran %d times: %v", n, err)
	}
	if err := outer(2 * time.Minute); err != nil || n != 5 {
		t.Errorf("the handler ran %d times, the last when inner was free: %v", n, err)
	}
	p.want(t, "inner")
}

// A savepoint that was not sent is not rolled back on the server.
func TestIn_CallCanceled_OthersSucceed(t *testing.T) {
	t.Parallel()
	p := newShop(t, openNew(t, nil), nil)
	tx := beginTx(t, p.s, txDefaults)
	in := p.a.In(tx)
	pay := func(key string) semel.Handler {
		return func(ctx context.Context, x *semel.Execution) (store.Outcome, error) {
			_, err := p.pay(key, nil)(ctx, x, tx)
			return store.Outcome{}, err
		}
	}
	if _, err := in.Run(t.Context(), call("a"), pay("a")); err != nil {
		t.Fatal(err)
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := in.Run(over, call("b"), pay("b")); !errors.Is(err, semel.ErrCanceled) {
		t.Errorf("cancelled: %v", err)
	}
	if _, err := in.Run(t.Context(), call("c"), pay("c")); err != nil {
		t.Errorf("the next: %v", err)
	}
	if err := tx.Commit(t.Context()); err != nil {
		t.Errorf("commit: %v", err)
	}
	p.want(t, "a", "c")
}

// A refusal that was too large to keep must not read as a success.
func TestAtomic_OutcomeTooLarge_KeepsCode(t *testing.T) {
	t.Parallel()
	p := newShop(t, openNew(t, nil), &semel.Options{MaxOutcome: 1000})
	h := func(ctx context.Context, x *semel.Execution) (store.Outcome, error) {
		return store.Outcome{Code: 422, Body: make([]byte, 5000)}, nil
	}
	if _, err := p.a.Run(t.Context(), call("k"), h); err != nil {
		t.Fatal(err)
	}
	tx := beginTx(t, p.s, txDefaults)
	for name, r := range map[string]semel.Runner{"Run": p.a, "In": p.a.In(tx)} {
		if res, err := r.Run(t.Context(), call("k"), h); res.Outcome.Code != 422 || !errors.Is(err, semel.ErrNotKept) {
			t.Errorf("%s: the duplicate's status is %d, %v", name, res.Outcome.Code, err)
		}
	}
}

// The caller must not take it for the handler's.
func TestIn_InsertFails_Unavailable(t *testing.T) {
	t.Parallel()
	p := newShop(t, openNew(t, nil), nil)
	s := p.s
	mustExec(t, s.appPool, "CREATE FUNCTION "+s.quoted()+".no() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'full' USING ERRCODE = '53100'; END $$")
	mustExec(t, s.appPool, "CREATE TRIGGER no BEFORE INSERT ON "+s.quoted()+".semel_record FOR EACH ROW EXECUTE FUNCTION "+s.quoted()+".no()")
	tx := beginTx(t, s, txDefaults)
	_, err := semel.Do(t.Context(), p.a.In(tx), call("k"), func(ctx context.Context, x *semel.Execution) (string, error) { return "x", nil })
	if !errors.Is(err, semel.ErrUnavailable) {
		t.Errorf("the store's error is not ErrUnavailable: %T", err)
	}
}

// As it does under a Guard.
func TestAtomic_KeySweptMeanwhile_RunsAgain(t *testing.T) {
	t.Parallel()
	first := openNew(t, nil)
	cfg := first.ownPool.Config()
	cfg.MaxConns = 8
	sw := &sweeper{}
	cfg.ConnConfig.Tracer = sw
	app, err := pgxpool.NewWithConfig(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer app.Close()
	s, err := open(t.Context(), first.ownPool.Config(), app, &Options{Schema: first.options.Schema})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	p := newShop(t, s, &semel.Options{Retention: time.Millisecond})
	if _, err := Do(t.Context(), p.a, call("k"), p.pay("k", nil)); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "it has expired", func() bool { r, err := p.record(t, "k"); return err != nil || r.Expired(time.Now()) })
	sw.do = func() {
		sw.do = func() {}
		if res, err := first.Sweep(context.Background(), "", 100); err != nil || res.Deleted != 1 {
			t.Errorf("%d were swept, %v", res.Deleted, err)
		}
	}
	_, err = Do(t.Context(), p.a, call("k"), p.pay("k", nil))
	if err != nil {
		t.Errorf("an expired key that is swept meanwhile: %v", err)
	}
}

// PgBouncer answers for a server that it has lost, and does not know.
func TestAtomic_PoolerLosesCommit_OutcomeFound(t *testing.T) {
	t.Parallel()
	first := openNew(t, nil)
	c, cut := cuttest.New(t, pgtest.URL(t), true)
	c.Until = "COMMIT\x00"
	s := openThrough(t, first, pgtest.Bouncer(t, cut))
	p := newShop(t, s, nil)
	prepared := s.appPool.Config().ConnConfig.DefaultQueryExecMode == pgx.QueryExecModeCacheStatement
	for i := range 5 {
		key := itoa(i)
		sent := "receipt of " + key
		if !prepared { // pgx then sends bytes as text
			sent = hex.EncodeToString([]byte(sent))
		}
		for range 3 { // then what the pooler lets be prepared is
			_, _ = Do(t.Context(), p.a, call("warm"), p.pay("warm", semel.NoEffect(errors.New("no effect"))))
		}
		c.At(sent) // PgBouncer may send COMMIT alone, after it
		for _, when := range []string{"an ambiguous commit behind PgBouncer", "the next call"} {
			if got, err := Do(t.Context(), p.a, call(key), p.pay(key, nil)); err != nil || got != "receipt of "+key {
				t.Errorf("%s: %q, %v", when, got, err)
			}
		}
	}
	if n := len(p.payments(t)); n != 5 || c.Cuts.Load() != 5 {
		t.Errorf("%d cuts, %d effects of 5 keys", c.Cuts.Load(), n)
	}
}

// The connection may be another's by then.
func TestHandlerTx_SavepointAfterHandler_Closed(t *testing.T) {
	t.Parallel()
	p := newShop(t, openNew(t, nil), nil)
	var leaked pgx.Tx
	if _, err := Do(t.Context(), p.a, call("k"), func(ctx context.Context, x *semel.Execution, tx pgx.Tx) (string, error) {
		var err error
		leaked, err = tx.Begin(ctx)
		return "", err
	}); err != nil {
		t.Fatal(err)
	}
	_, err := leaked.Exec(t.Context(), "INSERT INTO "+p.table+" VALUES ('late')")
	if err == nil {
		t.Errorf("a savepoint of a transaction that has ended writes: %q", p.payments(t))
	}
}

// A crowd that waits must not run a failing handler once each.
func TestAtomic_WaitersAfterFailure_GetFailure(t *testing.T) {
	t.Parallel()
	const crowd = 8
	type caller struct{}
	var looks [crowd]atomic.Int64
	var runs, waiting atomic.Int64
	p := newShop(t, openNew(t, nil), &semel.Options{MaxAttempts: 5, TxHolder: func(ctx context.Context, holder string) string {
		if looks[ctx.Value(caller{}).(int)].Add(1) == 2 { // it has found the key taken
			waiting.Add(1)
		}
		return holder
	}})
	p.a.recordDelay = 10 * time.Second // the record of the failure may be late
	var all sync.WaitGroup
	for i := range crowd {
		all.Go(func() {
			c := call("k")
			c.Wait = 5 * time.Minute
			_, _ = Do(context.WithValue(t.Context(), caller{}, i), p.a, c, func(ctx context.Context, x *semel.Execution, tx pgx.Tx) (string, error) {
				runs.Add(1)
				waitFor(t, "the others wait", func() bool { return waiting.Load() == crowd-1 })
				return "", errors.New("down")
			})
		})
	}
	all.Wait()
	if runs.Load() != 1 {
		t.Errorf("the handler ran %d times", runs.Load())
	}
}

// It is an effort and no promise, on a connection that others need.
func TestAtomic_AttemptRecord_WaitsForNoLock(t *testing.T) {
	first := openNew(t, nil)
	app, err := pgxpool.NewWithConfig(t.Context(), sized(first.ownPool.Config(), 40))
	if err != nil {
		t.Fatal(err)
	}
	defer app.Close()
	s, err := New(t.Context(), app, &Options{Schema: first.options.Schema, LockTimeout: 10 * time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	p := newShop(t, s, nil)
	down := errors.New("down")
	var all sync.WaitGroup
	var got atomic.Int64
	done := make(chan struct{})
	for i := range 16 {
		key := itoa(i)
		if _, err := Do(t.Context(), p.a, call(key), p.pay(key, down)); !errors.Is(err, down) {
			t.Fatal(err)
		}
		all.Go(func() {
			_, _ = Do(t.Context(), p.a, call(key), func(ctx context.Context, x *semel.Execution, _ pgx.Tx) (string, error) {
				ready := make(chan struct{})
				all.Go(func() { // as the next try does: it gets the row when this one has rolled back
					tx, err := app.Begin(t.Context())
					if err != nil {
						t.Error(err)
						return
					}
					defer func() { _ = tx.Rollback(context.Background()) }()
					close(ready)
					if _, err := tx.Exec(t.Context(), "SELECT FROM "+s.quoted()+".semel_record WHERE id = $1 FOR UPDATE", table.ID(store.Key{Operation: "pay", Tenant: "ann", Value: key})); err != nil {
						t.Error(err)
					}
					got.Add(1)
					<-done
				})
				<-ready
				waitFor(t, "the next try waits for the row", func() bool {
					return ask[int](t, first.ownPool, "SELECT count(*)::int FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE 'SELECT FROM%FOR UPDATE'") > 0
				})
				return "", down
			})
		})
	}
	waitFor(t, "the next tries have the rows", func() bool { return got.Load() == 16 })
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if _, err := s.Get(ctx, testKey("stranger")); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("a stranger's Get: %v", err)
	}
	close(done)
	all.Wait()
}

// sweeper sweeps in front of a swap.
type sweeper struct{ do func() }

func (s *sweeper) TraceBatchStart(ctx context.Context, c *pgx.Conn, d pgx.TraceBatchStartData) context.Context {
	return ctx
}
func (s *sweeper) TraceBatchQuery(context.Context, *pgx.Conn, pgx.TraceBatchQueryData) {}
func (s *sweeper) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData)     {}
func (s *sweeper) TraceQueryStart(ctx context.Context, c *pgx.Conn, d pgx.TraceQueryStartData) context.Context {
	if strings.Contains(d.SQL, "SET owner") {
		s.do()
	}
	return ctx
}
func (s *sweeper) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}
