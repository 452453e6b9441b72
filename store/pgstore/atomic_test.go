package pgstore

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
)

// shop is a store, an Atomic of it, and the application's table.
type shop struct {
	s     *Store
	a     *Atomic
	table string
}

func newShop(t testing.TB, s *Store, o *semel.Options) *shop {
	t.Helper()
	a, err := NewAtomic(s, o)
	if err != nil {
		t.Fatal(err)
	}
	a.prefetchTimeout = time.Minute // a test is as slow as the machine
	if o == nil || o.StoreTimeout == 0 {
		a.storeTimeout = time.Minute
	}
	p := &shop{s, a, pgx.Identifier{s.options.Schema, "payment"}.Sanitize()}
	mustExec(t, s.appPool, "CREATE TABLE "+p.table+" (key text)")
	return p
}

// call is one of an Atomic.
func call(key string) semel.Call {
	return semel.Call{Operation: "pay", Tenant: "ann", Key: key, Payload: semel.NoPayload()}
}

// payments are the committed effects.
func (p *shop) payments(t *testing.T) []string {
	t.Helper()
	rows, err := p.s.appPool.Query(t.Context(), "SELECT key FROM "+p.table+" ORDER BY key")
	if err != nil {
		t.Fatal(err)
	}
	keys, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
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
func (p *shop) pay(key string, err error) func(context.Context, *semel.Execution, pgx.Tx) (string, error) {
	return func(ctx context.Context, _ *semel.Execution, tx pgx.Tx) (string, error) {
		if _, err := tx.Exec(ctx, "INSERT INTO "+p.table+" VALUES ($1)", key); err != nil {
			return "", err
		}
		return "receipt of " + key, err
	}
}

func (p *shop) record(t *testing.T, key string) (store.Record, error) {
	return p.a.guard.Get(t.Context(), semel.Call{Operation: "pay", Tenant: "ann", Key: key})
}

func TestAtomic_CallRepeated_EffectOnce(t *testing.T) {
	t.Parallel()
	p := newShop(t, openNew(t, nil), nil)
	for range 3 {
		got, err := Do(t.Context(), p.a, call("k"), p.pay("k", nil))
		if err != nil || got != "receipt of k" {
			t.Errorf("got %q, %v", got, err)
		}
	}
	p.want(t, "k")
	if r, err := p.record(t, "k"); err != nil || r.State != store.Completed || r.Attempt != 1 {
		t.Errorf("the record is %v, attempt %d, error %v", r.State, r.Attempt, err)
	}
}

func TestAtomic_ConcurrentDuplicates_EffectOnce(t *testing.T) {
	t.Parallel()
	p := newShop(t, openNew(t, nil), nil)
	o := p.s.options
	second, err := NewAtomic(openAt(t, p.s.appPool.Config().ConnString(), &o), nil)
	if err != nil {
		t.Fatal(err)
	}
	for round := range 10 {
		key := "k" + itoa(round)
		var all sync.WaitGroup
		for i := range 12 {
			a := []*Atomic{p.a, second}[i%2]
			all.Go(func() {
				c := call(key)
				c.Wait = 2 * time.Minute
				got, err := Do(t.Context(), a, c, p.pay(key, nil))
				if err != nil || got != "receipt of "+key {
					t.Errorf("got %q, %v", got, err)
				}
			})
		}
		all.Wait()
	}
	if got := p.payments(t); len(got) != 10 {
		t.Errorf("10 keys had %d effects: %q", len(got), got)
	}
}

func TestAtomic_DuplicateOfOpenTransaction_InProgress(t *testing.T) {
	t.Parallel()
	p := newShop(t, openNew(t, nil), nil)
	err := Once(t.Context(), p.a, call("k"), func(ctx context.Context, x *semel.Execution, tx pgx.Tx) error {
		var e *semel.Error
		_, err := Do(t.Context(), p.a, call("k"), p.pay("k", nil))
		if !errors.Is(err, semel.ErrInProgress) || !errors.As(err, &e) || e.RetryAfter <= 0 {
			t.Errorf("a duplicate in flight: %v, want ErrInProgress with a time", err)
		}
		_, err = p.pay("k", nil)(ctx, x, tx)
		return err
	})
	if err != nil {
		t.Error(err)
	}
	p.want(t, "k")
}

func TestAtomic_HandlerFails_RollsBackAndCountsAttempt(t *testing.T) {
	t.Parallel()
	p := newShop(t, openNew(t, nil), nil)
	down := errors.New("down")
	for attempt := 1; attempt <= 3; attempt++ {
		_, err := Do(t.Context(), p.a, call("k"), func(ctx context.Context, x *semel.Execution, tx pgx.Tx) (string, error) {
			if x.Attempt() != attempt {
				t.Errorf("attempt %d says that it is %d", attempt, x.Attempt())
			}
			return p.pay("k", down)(ctx, x, tx)
		})
		if !errors.Is(err, down) {
			t.Errorf("got %v, want the handler's error", err)
		}
		p.want(t)
		if r, err := p.record(t, "k"); err != nil || r.State != store.Released || r.Attempt != attempt || r.LastError != "down" {
			t.Errorf("after attempt %d the record is %v, attempt %d, %q, error %v", attempt, r.State, r.Attempt, r.LastError, err)
		}
	}
	_, err := Do(t.Context(), p.a, call("k"), p.pay("k", semel.NoEffect(down)))
	if r, _ := p.record(t, "k"); !errors.Is(err, down) || r.Attempt != 3 {
		t.Errorf("after NoEffect: error %v, attempt %d, want 3", err, r.Attempt)
	}
	if _, err := Do(t.Context(), p.a, call("k"), p.pay("k", nil)); err != nil {
		t.Errorf("the next call: %v", err)
	}
	p.want(t, "k")
	if r, err := p.record(t, "k"); err != nil || r.State != store.Completed || r.Attempt != 4 {
		t.Errorf("in the end the record is %v, attempt %d, error %v", r.State, r.Attempt, err)
	}
}

func TestAtomic_AttemptsExhausted_EndsFailed(t *testing.T) {
	t.Parallel()
	p := newShop(t, openNew(t, nil), &semel.Options{MaxAttempts: 2})
	down := errors.New("down")
	for range 2 {
		if _, err := Do(t.Context(), p.a, call("k"), p.pay("k", down)); !errors.Is(err, down) {
			t.Errorf("got %v, want the handler's error", err)
		}
	}
	var f *semel.Failure
	if _, err := Do(t.Context(), p.a, call("k"), p.pay("k", nil)); !errors.As(err, &f) {
		t.Errorf("after the last attempt: %v, want a failure", err)
	}
	p.want(t)
}

func TestAtomic_Failure_StoredWithoutEffect(t *testing.T) {
	t.Parallel()
	p := newShop(t, openNew(t, nil), nil)
	declined := &semel.Failure{Code: "declined", Message: "no"}
	for range 2 {
		if _, err := Do(t.Context(), p.a, call("k"), p.pay("k", declined)); !errors.Is(err, declined) {
			t.Errorf("got %v, want the failure", err)
		}
	}
	p.want(t)
	if _, err := Do(t.Context(), p.a, call("k"), p.pay("k", nil)); !errors.Is(err, declined) {
		t.Errorf("a duplicate of a failed call: %v, want the failure", err)
	}
	p.want(t)
}

func TestAtomic_HandlerPanics_RollsBack(t *testing.T) {
	t.Parallel()
	p := newShop(t, openNew(t, nil), nil)
	func() {
		defer func() {
			if v := recover(); v != "a bug" {
				t.Errorf("recovered %v", v)
			}
		}()
		_ = Once(t.Context(), p.a, call("k"), func(ctx context.Context, x *semel.Execution, tx pgx.Tx) error {
			if _, err := p.pay("k", nil)(ctx, x, tx); err != nil {
				t.Error(err)
			}
			panic("a bug")
		})
	}()
	p.want(t)
	if r, err := p.record(t, "k"); err != nil || r.Attempt != 1 || r.State != store.Released {
		t.Errorf("after a panic the record is %v, attempt %d, error %v", r.State, r.Attempt, err)
	}
	if _, err := Do(t.Context(), p.a, call("k"), p.pay("k", nil)); err != nil {
		t.Errorf("after a panic: %v", err)
	}
}

func TestAtomic_CommitFails_NoEffect(t *testing.T) {
	t.Parallel()
	p := newShop(t, openNew(t, nil), nil)
	child := pgx.Identifier{p.s.options.Schema, "child"}.Sanitize()
	mustExec(t, p.s.appPool, "CREATE TABLE "+child+" (id int PRIMARY KEY, parent int REFERENCES "+child+" DEFERRABLE INITIALLY DEFERRED)")
	err := Once(t.Context(), p.a, call("k"), func(ctx context.Context, x *semel.Execution, tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "INSERT INTO "+child+" VALUES (1, 2)"); err != nil {
			return err
		}
		_, err := p.pay("k", nil)(ctx, x, tx)
		return err
	})
	if err == nil || errors.Is(err, semel.ErrUnavailable) || !strings.Contains(err.Error(), "foreign key") {
		t.Errorf("got %v, want the commit's error, and not ErrUnavailable", err)
	}
	p.want(t)
	if _, err := Do(t.Context(), p.a, call("k"), p.pay("k", nil)); err != nil {
		t.Errorf("the next call: %v", err)
	}
}

// A handler that hides a statement's error cannot have it committed in part.
func TestAtomic_HandlerHidesFailedStatement_NotCommitted(t *testing.T) {
	t.Parallel()
	p := newShop(t, openNew(t, nil), nil)
	err := Once(t.Context(), p.a, call("k"), func(ctx context.Context, x *semel.Execution, tx pgx.Tx) error {
		if _, err := p.pay("k", nil)(ctx, x, tx); err != nil {
			return err
		}
		_, _ = tx.Exec(ctx, "SELECT 1 / 0")
		return nil
	})
	if !errors.Is(err, errHiddenFailure) || errors.Is(err, semel.ErrUnavailable) {
		t.Errorf("got %v, want that a statement has failed", err)
	}
	p.want(t)
	if r, err := p.record(t, "k"); err != nil || r.State != store.Released || r.Attempt != 1 {
		t.Errorf("the record is %v, attempt %d, %v; want a failed attempt", r.State, r.Attempt, err)
	}
}

func TestAtomic_KeyExpired_RunsAgain(t *testing.T) {
	t.Parallel()
	p := newShop(t, openFixedClock(t), nil)
	for range 2 {
		if _, err := Do(t.Context(), p.a, call("k"), p.pay("k", nil)); err != nil {
			t.Fatal(err)
		}
		advance(t, p.s, 25*time.Hour)
	}
	p.want(t, "k", "k")
}

func TestAtomic_CallInsideHandler_JoinsTransaction(t *testing.T) {
	t.Parallel()
	p := newShop(t, openNew(t, nil), nil)
	late := errors.New("late")
	outer := func(err error) error {
		return Once(t.Context(), p.a, call("outer"), func(ctx context.Context, x *semel.Execution, _ pgx.Tx) error {
			if _, err := Do(ctx, p.a, x.Step("inner"), p.pay("inner", nil)); err != nil {
				return err
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

func TestTxFrom_InsideHandler_ReturnsTransaction(t *testing.T) {
	t.Parallel()
	p := newShop(t, openNew(t, nil), nil)
	if _, ok := TxFrom(t.Context()); ok {
		t.Error("a transaction outside of a handler")
	}
	var runner semel.Runner = p.a
	_, err := runner.Run(t.Context(), call("k"), func(ctx context.Context, x *semel.Execution) (store.Outcome, error) {
		tx, ok := TxFrom(ctx)
		if !ok {
			t.Fatal("no transaction")
		}
		_, err := p.pay("k", nil)(ctx, x, tx)
		return store.Outcome{Code: 201}, err
	})
	if err != nil {
		t.Error(err)
	}
	p.want(t, "k")
}

// A consumer asks it how late a duplicate may come.
func TestAtomic_Retention_IsTheOption(t *testing.T) {
	t.Parallel()
	a, err := NewAtomic(openNew(t, nil), &semel.Options{Retention: 7 * time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	if got := a.Retention(); got != 7*time.Hour {
		t.Errorf("it is %v", got)
	}
}

func TestNewAtomic_LeaseOptions_Refused(t *testing.T) {
	t.Parallel()
	s := openNew(t, nil)
	for name, o := range map[string]semel.Options{
		"OnDoubt": {OnDoubt: semel.Park}, "Lease": {Lease: time.Second}, "Rerun": {Rerun: true},
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
	if _, err := NewAtomic(s, &semel.Options{Retention: time.Hour, MaxOutcome: 100, MaxAttempts: 3}); err != nil {
		t.Errorf("options that have a meaning: %v", err)
	}
	if _, err := NewAtomic(nil, nil); err == nil {
		t.Error("a nil store was taken")
	}
}

// nothing is a handler without an effect.
func nothing(context.Context, *semel.Execution, pgx.Tx) error { return nil }
