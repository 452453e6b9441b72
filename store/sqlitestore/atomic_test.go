package sqlitestore

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
)

// shop is a store, an Atomic of it, and the application's table.
type shop struct {
	s   *Store
	a   *Atomic
	app *sql.DB
}

func openShop(t *testing.T, o *Options) *shop {
	t.Helper()
	s := openNew(t, o)
	a, err := NewAtomic(s, nil)
	if err != nil {
		t.Fatal(err)
	}
	app := application(t, s, immediate+"&_pragma=foreign_keys(1)")
	mustExec(t, app, "CREATE TABLE payment (key TEXT)")
	return &shop{s, a, app}
}

// payments are the committed effects.
func (p *shop) payments(t *testing.T) []string {
	t.Helper()
	rows, err := p.app.Query("SELECT key FROM payment ORDER BY key")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	keys := []string{}
	for rows.Next() {
		var key string
		if err := rows.Scan(&key); err != nil {
			t.Fatal(err)
		}
		keys = append(keys, key)
	}
	return keys
}

func (p *shop) want(t *testing.T, keys ...string) {
	t.Helper()
	if got := p.payments(t); !slices.Equal(got, keys) && len(got)+len(keys) > 0 {
		t.Errorf("committed effects are %q, want %q", got, keys)
	}
}

// pay is a handler whose effect is a row, and whose result is err.
func pay(key string, err error) func(context.Context, *semel.Execution, *sql.Tx) (string, error) {
	return func(ctx context.Context, _ *semel.Execution, tx *sql.Tx) (string, error) {
		if _, err := tx.ExecContext(ctx, "INSERT INTO payment VALUES (?)", key); err != nil {
			return "", err
		}
		return "receipt of " + key, err
	}
}

func TestAtomic_Duplicate_EffectHappensOnce(t *testing.T) {
	t.Parallel()
	p := openShop(t, nil)
	for range 3 {
		got, err := Do(t.Context(), p.a, call("k"), pay("k", nil))
		if err != nil || got != "receipt of k" {
			t.Errorf("got %q, %v", got, err)
		}
	}
	p.want(t, "k")
}

func TestAtomic_ConcurrentCalls_OneHasEffect(t *testing.T) {
	t.Parallel()
	p := openShop(t, nil)
	other := openAt(t, p.s.path, nil)
	second, err := NewAtomic(other, nil)
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for i := range 24 {
		a := []*Atomic{p.a, second}[i%2]
		all.Go(func() {
			got, err := Do(t.Context(), a, call("k"), pay("k", nil))
			if err != nil || got != "receipt of k" {
				t.Errorf("got %q, %v", got, err)
			}
		})
	}
	all.Wait()
	p.want(t, "k")
}

func TestAtomic_HandlerFails_NothingIsCommitted(t *testing.T) {
	t.Parallel()
	p := openShop(t, nil)
	down := errors.New("down")
	if _, err := Do(t.Context(), p.a, call("k"), pay("k", down)); !errors.Is(err, down) {
		t.Errorf("got %v, want the handler's error", err)
	}
	p.want(t)
	if _, err := p.a.g.Get(t.Context(), semel.Call{Operation: "pay", Tenant: "ann", Key: "k"}); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("a record was left: %v", err)
	}
	if _, err := Do(t.Context(), p.a, call("k"), pay("k", nil)); err != nil {
		t.Errorf("the next call: %v", err)
	}
	p.want(t, "k")
}

func TestAtomic_RecordExpired_RunsAgain(t *testing.T) {
	t.Parallel()
	c := newClock()
	p := openShop(t, &Options{Now: c.Now})
	for range 2 {
		if _, err := Do(t.Context(), p.a, call("k"), pay("k", nil)); err != nil {
			t.Fatal(err)
		}
		c.advance(25 * time.Hour)
	}
	p.want(t, "k", "k")
}

func TestAtomic_FinalFailure_IsKeptAndWritesRolledBack(t *testing.T) {
	t.Parallel()
	p := openShop(t, nil)
	declined := &semel.Failure{Code: "declined", Message: "no"}
	for range 2 {
		if _, err := Do(t.Context(), p.a, call("k"), pay("k", declined)); !errors.Is(err, declined) {
			t.Errorf("got %v, want the failure", err)
		}
	}
	p.want(t)
	if _, err := Do(t.Context(), p.a, call("k"), pay("k", nil)); !errors.Is(err, declined) {
		t.Errorf("a duplicate of a failed call: %v, want the failure", err)
	}
	p.want(t)
}

func TestAtomic_HandlerPanics_RollsBackAndPanics(t *testing.T) {
	t.Parallel()
	p := openShop(t, nil)
	func() {
		defer func() {
			if v := recover(); v != "a bug" {
				t.Errorf("recovered %v", v)
			}
		}()
		_ = Once(t.Context(), p.a, call("k"), func(ctx context.Context, x *semel.Execution, tx *sql.Tx) error {
			if _, err := pay("k", nil)(ctx, x, tx); err != nil {
				t.Error(err)
			}
			panic("a bug")
		})
	}()
	p.want(t)
	if _, err := Do(t.Context(), p.a, call("k"), pay("k", nil)); err != nil {
		t.Errorf("after a panic: %v", err)
	}
}

func TestAtomic_CommitFails_NothingHappened(t *testing.T) {
	t.Parallel()
	p := openShop(t, &Options{Pragmas: []string{"foreign_keys = on"}})
	mustExec(t, p.app, "CREATE TABLE parent (id INTEGER PRIMARY KEY)")
	mustExec(t, p.app, "CREATE TABLE child (parent INTEGER REFERENCES parent DEFERRABLE INITIALLY DEFERRED)")
	err := Once(t.Context(), p.a, call("k"), func(ctx context.Context, x *semel.Execution, tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, "INSERT INTO child VALUES (1)"); err != nil {
			return err
		}
		_, err := pay("k", nil)(ctx, x, tx)
		return err
	})
	if err == nil || errors.Is(err, semel.ErrUnavailable) || !strings.Contains(err.Error(), "FOREIGN KEY") {
		t.Errorf("got %v, want the commit's error: the handler's writes are the cause, and not the store", err)
	}
	if errors.Is(err, semel.ErrInDoubt) {
		t.Errorf("%v: what SQLite refuses to commit has not happened", err)
	}
	p.want(t)
	if _, err := Do(t.Context(), p.a, call("k"), pay("k", nil)); err != nil {
		t.Errorf("the next call: %v", err)
	}
}

func TestAtomic_Replay_BeginsNoTransaction(t *testing.T) {
	t.Parallel()
	p := openShop(t, &Options{BusyTimeout: 20 * time.Millisecond})
	if _, err := Do(t.Context(), p.a, call("k"), pay("k", nil)); err != nil {
		t.Fatal(err)
	}
	defer holdLock(t, p.s)()
	if got, err := Do(t.Context(), p.a, call("k"), pay("k", nil)); err != nil || got != "receipt of k" {
		t.Errorf("beside another's lock a duplicate got %q, %v", got, err)
	}
	_, err := Do(t.Context(), p.a, call("new"), pay("new", nil))
	if !errors.Is(err, semel.ErrUnavailable) || !errors.Is(err, ErrBusy) {
		t.Errorf("beside another's lock a new call got %v, want ErrUnavailable around ErrBusy", err)
	}
}

func TestAtomic_CallInHandler_JoinsTransaction(t *testing.T) {
	t.Parallel()
	p := openShop(t, nil)
	late := errors.New("late")
	outer := func(err error) error {
		return Once(t.Context(), p.a, call("outer"), func(ctx context.Context, x *semel.Execution, tx *sql.Tx) error {
			if _, err := Do(ctx, p.a, x.Step("inner"), pay("inner", nil)); err != nil {
				return err
			}
			if _, err := p.s.Claim(ctx, proposal("outside")); err == nil || !strings.Contains(err.Error(), "transaction") {
				t.Errorf("a claim outside of the handler's transaction: %v, want an error at once", err)
			}
			return err
		})
	}
	if err := outer(late); !errors.Is(err, late) {
		t.Errorf("got %v", err)
	}
	p.want(t)
	if err := outer(nil); err != nil {
		t.Error(err)
	}
	p.want(t, "inner")
}

func TestTxFrom_InHandler_ReturnsTransaction(t *testing.T) {
	t.Parallel()
	p := openShop(t, nil)
	if _, ok := TxFrom(t.Context()); ok {
		t.Error("a transaction outside of a handler")
	}
	var runner semel.Runner = p.a
	_, err := runner.Run(t.Context(), call("k"), func(ctx context.Context, x *semel.Execution) (store.Outcome, error) {
		tx, ok := TxFrom(ctx)
		if !ok {
			t.Fatal("no transaction")
		}
		_, err := pay("k", nil)(ctx, x, tx)
		return store.Outcome{Code: 201}, err
	})
	if err != nil {
		t.Error(err)
	}
	p.want(t, "k")
}

// A consumer asks it how late a duplicate may come.
func TestAtomic_Retention_IsThatOfOptions(t *testing.T) {
	t.Parallel()
	a, err := NewAtomic(openNew(t, nil), &semel.Options{Retention: 7 * time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	if got := a.Retention(); got != 7*time.Hour {
		t.Errorf("it is %v", got)
	}
}

func TestNewAtomic_LeaseOptions_AreRefused(t *testing.T) {
	t.Parallel()
	s := openNew(t, nil)
	for name, o := range map[string]semel.Options{
		"OnDoubt": {OnDoubt: semel.Park}, "Lease": {Lease: time.Second}, "MaxAttempts": {MaxAttempts: 1}, "Rerun": {Rerun: true},
		"Reservation": {Reservation: 1}, "MaxWaiters": {MaxWaiters: 1}, "SettleTimeout": {SettleTimeout: 1}, "UnprotectedOnOutage": {UnprotectedOnOutage: true},
		"Backoff": {Backoff: func(int) time.Duration { return 0 }},
		"Reconcile": {Reconcile: func(context.Context, *semel.Execution) (semel.Verdict, error) {
			return semel.Verdict{}, nil
		}},
	} {
		if _, err := NewAtomic(s, &o); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v, want an error that names it", name, err)
		}
	}
	if _, err := NewAtomic(s, &semel.Options{Retention: time.Hour, MaxOutcome: 100}); err != nil {
		t.Errorf("options that have a meaning: %v", err)
	}
	if _, err := NewAtomic(nil, nil); err == nil {
		t.Error("a nil store was taken")
	}
}
