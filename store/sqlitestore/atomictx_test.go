package sqlitestore

import (
	"context"
	"database/sql"
	"errors"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
)

// in runs a call in a transaction of the application's.
func (p *shop) in(t *testing.T, tx *sql.Tx, key string, err error) error {
	t.Helper()
	return semel.Once(t.Context(), p.a.In(tx), call(key), func(ctx context.Context, x *semel.Execution) error {
		tx, _ := TxFrom(ctx)
		_, perr := pay(key, err)(ctx, x, tx)
		return perr
	})
}

func (p *shop) begin(t *testing.T) *sql.Tx {
	t.Helper()
	tx, err := p.app.Begin()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tx.Rollback() })
	return tx
}

func TestIn_CallerCommits_RecordIsKept(t *testing.T) {
	t.Parallel()
	p := openShop(t, nil)
	tx := p.begin(t)
	if err := p.in(t, tx, "a", nil); err != nil {
		t.Fatal(err)
	}
	if err := p.in(t, tx, "a", errors.New("runs again")); err != nil {
		t.Errorf("a duplicate in the same transaction: %v", err)
	}
	p.want(t)
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	p.want(t)
	tx = p.begin(t)
	failed := errors.New("failed")
	if err := p.in(t, tx, "b", failed); !errors.Is(err, failed) {
		t.Errorf("got %v", err)
	}
	if err := p.in(t, tx, "a", nil); err != nil {
		t.Errorf("after a failed call in the same transaction: %v", err)
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	p.want(t, "a")
}

func TestIn_TransactionOfAnotherFile_IsForeign(t *testing.T) {
	t.Parallel()
	p, q := openShop(t, nil), openShop(t, nil)
	if err := p.in(t, q.begin(t), "k", nil); !errors.Is(err, ErrForeign) {
		t.Errorf("got %v, want ErrForeign", err)
	}
	_, app := file(t, "CREATE TABLE payment (key TEXT)")
	tx, err := app.Begin()
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	if err := p.in(t, tx, "k", nil); !errors.Is(err, ErrForeign) {
		t.Errorf("a database without Semel's tables: %v, want ErrForeign", err)
	}
}

func TestIn_TransactionReadFirst_ErrorSaysHowToBegin(t *testing.T) {
	t.Parallel()
	p := openShop(t, nil)
	deferred := application(t, p.s, "_pragma=busy_timeout(1000)")
	tx, err := deferred.Begin()
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	var n int
	if err := tx.QueryRow("SELECT count(*) FROM payment").Scan(&n); err != nil {
		t.Fatal(err)
	}
	claim(t, p.s, "somebody else writes")
	_, err = p.s.Tx(tx).Claim(t.Context(), proposal("k"))
	if !errors.Is(err, ErrBusy) || !strings.Contains(err.Error(), "BEGIN IMMEDIATE") {
		t.Errorf("got %v, want ErrBusy that says BEGIN IMMEDIATE", err)
	}
}

// If the end of a context interrupted a write, SQLite would roll the whole
// transaction back, and commit the application's next write at once.
func TestIn_ContextEnds_TransactionStays(t *testing.T) {
	t.Parallel()
	p := openShop(t, nil)
	deferred := application(t, p.s, "_pragma=busy_timeout(10000)")
	tx, err := deferred.Begin()
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	release := holdLock(t, p.s)
	ctx, cancel := context.WithCancel(t.Context())
	got := make(chan error)
	go func() {
		_, err := p.a.In(tx).Run(ctx, call("k"), func(context.Context, *semel.Execution) (store.Outcome, error) {
			return store.Outcome{}, nil
		})
		got <- err
	}()
	until(t, true, "sqlitestore.unprepared.exec(", "sqliteDefaultBusyCallback(") // the lock
	cancel()
	until(t, false, "sqlite.interruptOnDone.") // it has interrupted, or never will
	release()
	if err := <-got; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want the context's error", err)
	}
	if _, err := tx.Exec("INSERT INTO payment VALUES ('of the transaction')"); err != nil {
		t.Error(err)
	}
	if err := tx.Rollback(); err != nil {
		t.Error(err)
	}
	p.want(t)
}

// The transaction of a handler that heeds no context must not keep others from
// writing for longer than MaxTx: a renewal that waits for it comes in time.
func TestRenew_ManyHandlers_IsNotStarved(t *testing.T) {
	t.Parallel()
	const most = 3 * time.Second
	p := openShop(t, &Options{MaxTx: most})
	held := claim(t, p.s, "leased")
	stuck, let, done := make(chan time.Time, 1), make(chan struct{}), make(chan error, 1)
	go func() {
		done <- Once(context.Background(), p.a, call("k"), func(ctx context.Context, x *semel.Execution, tx *sql.Tx) error {
			stuck <- time.Now()
			rows, err := tx.QueryContext(ctx, "SELECT 1 UNION SELECT 2") // left open, too
			if err != nil || !rows.Next() {
				return errors.Join(err, errors.New("no rows"))
			}
			defer rows.Close()
			<-let
			if !errors.Is(context.Cause(ctx), ErrTxTimeout) {
				t.Errorf("the handler's context ended with %v, want ErrTxTimeout", context.Cause(ctx))
			}
			_, err = pay("late", nil)(context.WithoutCancel(ctx), x, tx)
			if err == nil {
				t.Error("a handler wrote after its transaction had ended")
			}
			return nil
		})
	}()
	start := <-stuck
	errs, err := p.s.Renew(t.Context(), []store.Lease{held.Lease()}, time.Minute)
	if err != nil || errs[0] != nil {
		t.Errorf("the renewal got %v, %v", errs, err)
	}
	if took := time.Since(start); took < most/2 {
		t.Errorf("the renewal took %v; the handler held no lock", took)
	}
	claim(t, p.s, "and other writes go on, while the handler still runs")
	if _, err := Do(t.Context(), p.a, call("next"), pay("next", nil)); err != nil {
		t.Errorf("another handler's transaction: %v", err)
	}
	close(let)
	if err := <-done; !errors.Is(err, ErrTxTimeout) {
		t.Errorf("the stuck call got %v, want ErrTxTimeout", err)
	}
	p.want(t, "next")
}

func TestRenew_HandlersQueued_WaitsForOne(t *testing.T) {
	t.Parallel()
	c := newClock()
	step := func() time.Time { c.advance(time.Millisecond); return c.Now() } // the order of transactions
	p := openShop(t, &Options{MaxTx: time.Minute, Now: step})
	held := claim(t, p.s, "leased")
	running, let := make(chan struct{}, 10), make(chan struct{})
	results := make(chan error, 7)
	for i := range 6 {
		go func() {
			results <- Once(context.Background(), p.a, call(itoa(i)), func(context.Context, *semel.Execution, *sql.Tx) error {
				running <- struct{}{}
				<-let
				return nil
			})
		}()
	}
	<-running // one runs, and five wait or will
	go func() {
		_, err := p.s.Renew(context.Background(), []store.Lease{held.Lease()}, time.Minute)
		results <- err
	}()
	atTheGate(t)
	close(let)
	for range 7 {
		if err := <-results; err != nil {
			t.Error(err)
		}
	}
	var before int
	err := p.app.QueryRow(`SELECT count(*) FROM semel_record WHERE operation = 'pay' AND created <
		(SELECT updated FROM semel_record WHERE key = 'leased')`).Scan(&before)
	if err != nil || before != 1 {
		t.Errorf("the renewal came after %d handlers, error %v; want after the one that ran", before, err)
	}
}

// atTheGate waits until the writer waits at the gate, which nothing but its
// stack tells.
func atTheGate(t *testing.T) { until(t, true, " [select", "(*gate).enter(") }

// until waits until a goroutine's stack holds all of the texts, or none does.
func until(t *testing.T, is bool, what ...string) {
	t.Helper()
	stacks := make([]byte, 1<<20)
	for deadline := time.Now().Add(time.Minute); ; runtime.Gosched() {
		found := false
		for one := range strings.SplitSeq(string(stacks[:runtime.Stack(stacks, true)]), "\n\n") {
			lacks := func(w string) bool { return !strings.Contains(one, w) }
			found = found || !slices.ContainsFunc(what, lacks)
		}
		if found == is {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain for a goroutine with %q: %v", what, is)
		}
	}
}

func TestAtomic_ContextEnds_RollsBack(t *testing.T) {
	t.Parallel()
	p := openShop(t, nil)
	ctx, cancel := context.WithCancel(context.Background())
	err := Once(ctx, p.a, call("k"), func(ctx context.Context, x *semel.Execution, tx *sql.Tx) error {
		if _, err := pay("k", nil)(ctx, x, tx); err != nil {
			return err
		}
		cancel()
		claim(t, p.s, "others write as soon as it has gone")
		return nil
	})
	if err == nil {
		t.Error("a call whose context had ended was committed")
	}
	p.want(t)
}

// A record that a duplicate read before it had the lock may be replaced when it
// gets the lock. The duplicate returns the answer of the call it waited for.
func TestAtomic_RecordIsBeingReplaced_DuplicateWaits(t *testing.T) {
	t.Parallel()
	over := map[string]store.Settlement{
		"an expired record": completion("before"),
		"a released one":    {State: store.Released, Attempt: 1, Keep: time.Hour},
		"a lapsed one":      {},
	}
	for name, end := range over {
		t.Run(name, func(t *testing.T) {
			c := newClock()
			p := openShop(t, &Options{Now: c.Now, MaxTx: time.Minute})
			key := store.Key{Operation: "pay", Tenant: "ann", Value: "k"}
			f, err := p.s.Claim(t.Context(), store.Proposal{Key: key, State: store.Processing, Owner: newOwner(), Attempt: 1, Lease: time.Minute})
			if err != nil || !f.Won {
				t.Fatal(f.Won, err)
			}
			if end.State != 0 {
				if err := p.s.Settle(t.Context(), f.Record.Lease(), end); err != nil {
					t.Fatal(err)
				}
			}
			c.advance(2 * time.Hour)
			running, let := make(chan struct{}), make(chan struct{})
			results := make(chan error, 2)
			go func() {
				_, err := Do(context.Background(), p.a, call("k"), func(ctx context.Context, x *semel.Execution, tx *sql.Tx) (string, error) {
					close(running)
					<-let
					return pay("k", nil)(ctx, x, tx)
				})
				results <- err
			}()
			<-running
			go func() {
				got, err := Do(context.Background(), p.a, call("k"), pay("twice", nil))
				if err == nil && got != "receipt of k" {
					err = errors.New(got)
				}
				results <- err
			}()
			until(t, true, " [select", "(*gate).enterHandler(")
			close(let)
			for range 2 {
				if err := <-results; err != nil {
					t.Error(err)
				}
			}
			p.want(t, "k")
		})
	}
}
