package pgstore

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/pgstore/internal/pgwire"
	"github.com/semel-go/semel/store/pgstore/pgtest"
)

// lossyStore is a connection that is lost, with the answer, by a request that has a
// text; then is called when that request is on its way.
type lossyStore struct {
	net.Conn
	text *atomic.Pointer[string] // nil: none, any more
	then func()
	lost atomic.Bool
}

func (l *lossyStore) Write(b []byte) (int, error) {
	text := l.text.Load()
	if text == nil || !bytes.Contains(b, []byte(*text)) {
		return l.Conn.Write(b)
	}
	l.text.Store(nil)
	l.lost.Store(true) // first: a Read may begin at once
	n, err := l.Conn.Write(b)
	l.then()
	return n, err
}

func (l *lossyStore) Read(b []byte) (int, error) {
	if l.lost.Load() {
		return 0, io.ErrUnexpectedEOF
	}
	return l.Conn.Read(b)
}

// Run finds out the outcome of a COMMIT even if the caller leaves meanwhile, because a
// caller that sees a failure may repeat the work with another key.
func TestAtomic_CallerLeavesAtCommit_OutcomeFound(t *testing.T) {
	t.Parallel()
	var text atomic.Pointer[string]
	var c *smallPool
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	c = newSmallPool(t, pgtest.URL(t), 1, func(cfg *pgxpool.Config) {
		cfg.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeExec // so that each request has its text
		dial := cfg.ConnConfig.DialFunc
		cfg.ConnConfig.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
			conn, err := dial(ctx, network, addr)
			return &lossyStore{Conn: conn, text: &text, then: func() {
				waitFor(t, "the server has committed", func() bool { _, err := c.record(t, "k"); return err == nil })
				leave()
			}}, err
		}
	})
	commit := commitStatement
	text.Store(&commit)
	if got, err := Do(ctx, c.a, call("k"), c.pay("k", nil)); err != nil || got != "receipt of k" {
		t.Errorf("a commit that got through: %q, %v", got, err)
	}
	if text.Load() != nil || ctx.Err() == nil {
		t.Error("no commit was lost: this test shows nothing")
	}
	c.want(t, "k")
}

// Between the loss of a commit's answer and the question what came of it another
// may have had the key: that it is settled says nothing of this run.
func TestAtomic_OtherOwnerSettled_NotOwnCommit(t *testing.T) {
	t.Parallel()
	p := newShop(t, openNew(t, nil), nil)
	mine := proposal("k")
	mine.Key = store.Key{Operation: "pay", Tenant: "ann", Value: "k"}
	if _, err := Do(t.Context(), p.a, call("k"), p.pay("k", nil)); err != nil {
		t.Fatal(err)
	}
	if is, err := p.s.committedAndSettled(t.Context(), &mine); is || err != nil {
		t.Errorf("another's record: it is one's own %v, error %v", is, err)
	}
	r, err := p.record(t, "k")
	if err != nil {
		t.Fatal(err)
	}
	mine.Owner = r.Owner
	if is, err := p.s.committedAndSettled(t.Context(), &mine); !is || err != nil {
		t.Errorf("one's own record: it is one's own %v, error %v", is, err)
	}
}

// A handler that takes longer than its callers wait fails each time. These attempts
// count; otherwise it would run for ever.
func TestAtomic_CallerLeaves_CountsAttempt(t *testing.T) {
	t.Parallel()
	p := newShop(t, openNew(t, nil), &semel.Options{MaxAttempts: 2})
	for attempt := 1; attempt <= 2; attempt++ {
		ctx, leave := context.WithCancel(t.Context())
		_, err := Do(ctx, p.a, call("k"), func(ctx context.Context, x *semel.Execution, tx pgx.Tx) (string, error) {
			if _, err := p.pay("k", nil)(ctx, x, tx); err != nil {
				t.Error(err)
			}
			leave()
			<-ctx.Done()
			return "", ctx.Err()
		})
		if !errors.Is(err, context.Canceled) {
			t.Errorf("attempt %d: %v, want the handler's error", attempt, err)
		}
		if r, err := p.record(t, "k"); err != nil || r.Attempt != attempt || r.State != store.Released {
			t.Errorf("after attempt %d the record is %v, attempt %d, error %v", attempt, r.State, r.Attempt, err)
		}
	}
	if _, err := Do(t.Context(), p.a, call("k"), p.pay("k", nil)); err == nil {
		t.Error("it ran a third time")
	}
	p.want(t)
}

// A unique violation of the application's own says nothing of the key: the
// handler runs once, and its error is the caller's.
func TestAtomic_HandlerUniqueViolation_IsHandlerError(t *testing.T) {
	t.Parallel()
	p := newShop(t, openNew(t, nil), nil)
	mustExec(t, p.s.appPool, "ALTER TABLE "+p.table+" ADD UNIQUE (key)")
	mustExec(t, p.s.appPool, "INSERT INTO "+p.table+" VALUES ('k')")
	ran := 0
	_, err := Do(t.Context(), p.a, call("k"), func(ctx context.Context, x *semel.Execution, tx pgx.Tx) (string, error) {
		ran++
		return p.pay("k", nil)(ctx, x, tx)
	})
	if ran != 1 || pgwire.Code(err) != pgwire.UniqueViolation || errors.Is(err, semel.ErrInProgress) || errors.Is(err, semel.ErrUnavailable) {
		t.Errorf("it ran %d times, and failed by %v; want the handler's error", ran, err)
	}
	if r, err := p.record(t, "k"); err != nil || r.Attempt != 1 || r.State != store.Released {
		t.Errorf("the record is %v, attempt %d, error %v", r.State, r.Attempt, err)
	}
	in := p.a.In(beginTx(t, p.s, txDefaults))
	_, err = semel.Do(t.Context(), in, call("in"), func(ctx context.Context, x *semel.Execution) (string, error) {
		tx, _ := TxFrom(ctx)
		return p.pay("k", nil)(ctx, x, tx)
	})
	if pgwire.Code(err) != pgwire.UniqueViolation || errors.Is(err, semel.ErrInProgress) {
		t.Errorf("in the caller's transaction: %v, want the handler's error", err)
	}
}

// A transaction that conflicts each time ends after pgwire.Tries. It is no attempt,
// because the call may not be the cause.
func TestAtomic_AlwaysRefused_EndsUnavailable(t *testing.T) {
	t.Parallel()
	p := newShop(t, openNew(t, nil), nil)
	ran := 0
	_, err := Do(t.Context(), p.a, call("k"), func(ctx context.Context, _ *semel.Execution, tx pgx.Tx) (string, error) {
		if ran++; ran > 3*pgwire.Tries {
			return "", errors.New("enough")
		}
		_, err := tx.Exec(ctx, "DO $$ BEGIN RAISE EXCEPTION 'again' USING ERRCODE = '40001'; END $$")
		return "", err
	})
	if ran != pgwire.Tries || !errors.Is(err, semel.ErrUnavailable) || pgwire.Code(err) != pgwire.SerializationFailure {
		t.Errorf("it ran %d times, want %d, and ended by %v", ran, pgwire.Tries, err)
	}
	if _, err := p.record(t, "k"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("a record was left: %v", err)
	}
}

// A commit that the server refuses because of others has not happened: the
// handler runs again, and the caller sees nothing of it.
func TestAtomic_CommitConflicts_RunsAgain(t *testing.T) {
	t.Parallel()
	c := newSmallPool(t, pgtest.URL(t), 1, nil)
	fn := pgx.Identifier{c.s.options.Schema, "refuse"}.Sanitize()
	seen := pgx.Identifier{c.s.options.Schema, "seen"}.Sanitize()
	mustExec(t, c.app, "CREATE SEQUENCE "+seen) // is not rolled back
	mustExec(t, c.app, "CREATE FUNCTION "+fn+`() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
		IF nextval('`+strings.ReplaceAll(seen, "'", "''")+`') = 1 THEN RAISE EXCEPTION 'again' USING ERRCODE = '40001'; END IF; RETURN NULL; END $$`)
	mustExec(t, c.app, "CREATE CONSTRAINT TRIGGER refuse AFTER INSERT ON "+c.table+" DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION "+fn+"()")
	ran := 0
	got, err := Do(t.Context(), c.a, call("k"), func(ctx context.Context, x *semel.Execution, tx pgx.Tx) (string, error) {
		if ran++; x.Attempt() != 1 {
			t.Errorf("run %d is attempt %d", ran, x.Attempt())
		}
		return c.pay("k", nil)(ctx, x, tx)
	})
	if err != nil || got != "receipt of k" || ran != 2 {
		t.Errorf("it ran %d times: %q, %v", ran, got, err)
	}
	c.want(t, "k")
}

// Between the rollback of an attempt and the record of it, the key looks free. A
// waiter must not run the handler then.
func TestAtomic_WaiterAfterFailure_WaitsForRecord(t *testing.T) {
	t.Parallel()
	type waits struct{}
	looksAgain, rolledBack := make(chan struct{}), make(chan struct{})
	var looks atomic.Int32 // of the waiter
	p := newShop(t, openNew(t, &Options{Connections: 1}), &semel.Options{TxHolder: func(ctx context.Context, holder string) string {
		if ctx.Value(waits{}) != nil && looks.Add(1) == 2 { // it has found the key taken
			close(looksAgain)
			<-rolledBack
		}
		return holder
	}})
	p.a.recordDelay = 3 * time.Second // in which the record of the attempt has to be there, too
	waiting := call("k")
	waiting.Wait = time.Minute
	down := errors.New("down")
	ran, goOn, failed := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	go func() {
		_, err := Do(t.Context(), p.a, call("k"), func(context.Context, *semel.Execution, pgx.Tx) (string, error) {
			close(ran)
			<-goOn
			return "", down
		})
		failed <- err
	}()
	<-ran
	held, err := p.s.ownPool.Acquire(t.Context()) // for the record of the attempt
	if err != nil {
		t.Fatal(err)
	}
	waiter := make(chan error, 1)
	go func() {
		_, err := Do(context.WithValue(t.Context(), waits{}, true), p.a, waiting, p.pay("waiter", nil))
		waiter <- err
	}()
	<-looksAgain
	close(goOn)
	waitFor(t, "the first is rolled back", func() bool { return p.s.appPool.Stat().AcquiredConns() == 0 })
	before := p.s.appPool.Stat().AcquireCount()
	close(rolledBack)
	waitFor(t, "the waiter has looked, and held back", func() bool {
		is := p.s.appPool.Stat()
		return is.AcquireCount() > before && is.AcquiredConns() == 0
	})
	p.want(t)
	held.Release()
	if err := <-failed; !errors.Is(err, down) {
		t.Errorf("the first: %v", err)
	}
	if err := <-waiter; !errors.Is(err, semel.ErrReleased) {
		t.Errorf("who waited for it: %v, want ErrReleased", err)
	}
	p.want(t)
}
