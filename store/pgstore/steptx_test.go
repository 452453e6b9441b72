package pgstore

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
)

// leased makes a Guard of a store, for calls whose steps are transactions.
func leased(t *testing.T, s *Store, o *semel.Options) *semel.Guard {
	t.Helper()
	g, err := semel.New(s, o)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// recordedSteps are the names of the steps of a call's record.
func recordedSteps(t *testing.T, g *semel.Guard, s *Store, key string) (names []string) {
	t.Helper()
	r, err := g.Get(t.Context(), call(key))
	if err != nil {
		t.Fatal(err)
	}
	steps, err := s.Steps(t.Context(), r.Lease())
	if err != nil {
		t.Fatal(err)
	}
	for i := range steps {
		names = append(names, steps[i].Name)
	}
	return names
}

// The step and its writes commit in one transaction, although the call is leased.
func TestStep_InTransactionOfLeasedCall_HasEffectOnce(t *testing.T) {
	p := newShop(t, openNew(t, nil), nil)
	g := leased(t, p.s, &semel.Options{OnDoubt: semel.Park})
	later := errors.New("later")
	run := func(step, result error) (receipt string, err error) {
		return receipt, semel.Once(t.Context(), g, call("k"), func(ctx context.Context, x *semel.Execution) error {
			var err error
			if receipt, err = Do(ctx, p.a, x.Step("pay"), p.pay("k", step)); err != nil {
				if step != nil && errors.Is(err, step) {
					return semel.NoEffect(err) // it is undone
				}
				return err
			}
			return result
		})
	}
	if _, err := run(later, nil); !errors.Is(err, later) {
		t.Errorf("a step that fails: %v", err)
	}
	p.want(t)
	if _, err := run(nil, semel.NoEffect(later)); !errors.Is(err, later) {
		t.Errorf("a call that fails after its step: %v", err)
	}
	p.want(t, "k")
	if names := recordedSteps(t, g, p.s, "k"); len(names) != 1 {
		t.Errorf("the steps %q are recorded", names)
	}
	if receipt, err := run(nil, nil); err != nil || receipt != "receipt of k" {
		t.Errorf("the replayed step: %q, %v", receipt, err)
	}
	p.want(t, "k")
}

func TestStep_FailureInTransaction_IsKeptWithoutItsWrites(t *testing.T) {
	p := newShop(t, openNew(t, nil), nil)
	g := leased(t, p.s, nil)
	later, runs := errors.New("later"), 0
	for range 2 {
		err := semel.Once(t.Context(), g, call("k"), func(ctx context.Context, x *semel.Execution) error {
			_, err := Do(ctx, p.a, x.Step("pay"), func(ctx context.Context, x *semel.Execution, tx pgx.Tx) (string, error) {
				runs++
				return p.pay("k", &semel.Failure{Code: "declined"})(ctx, x, tx)
			})
			if f, ok := errors.AsType[*semel.Failure](err); !ok || f.Code != "declined" {
				t.Errorf("the step returns %v", err)
			}
			return later
		})
		if !errors.Is(err, later) {
			t.Error(err)
		}
	}
	if p.want(t); runs != 1 {
		t.Errorf("the step ran %d times", runs)
	}
}

// Another process takes the call over while the step's transaction is open.
func TestStep_LeaseLostInTransaction_IsRolledBack(t *testing.T) {
	p := newShop(t, openNew(t, nil), nil)
	g := leased(t, p.s, nil)
	err := semel.Once(t.Context(), g, call("k"), func(ctx context.Context, x *semel.Execution) error {
		_, err := Do(ctx, p.a, x.Step("pay"), func(ctx context.Context, x *semel.Execution, tx pgx.Tx) (string, error) {
			takeOver(t, p)
			return p.pay("k", nil)(ctx, x, tx)
		})
		return err
	})
	if !errors.Is(err, semel.ErrLeaseLost) {
		t.Errorf("got %v, want ErrLeaseLost", err)
	}
	p.want(t)
}

// A step of a call of Atomic is a savepoint. Nothing is recorded of it.
func TestStep_OfAtomicCall_IsSavepoint(t *testing.T) {
	p := newShop(t, openNew(t, nil), nil)
	g := leased(t, p.s, nil)
	later := errors.New("later")
	run := func(result error) error {
		return Once(t.Context(), p.a, call("k"), func(ctx context.Context, x *semel.Execution, _ pgx.Tx) error {
			if _, err := Do(ctx, p.a, x.Step("undone"), p.pay("undone", later)); !errors.Is(err, later) {
				t.Errorf("a step that fails: %v", err)
			}
			if _, err := Do(ctx, p.a, x.Step("kept"), p.pay("kept", nil)); err != nil {
				t.Errorf("a step: %v", err)
			}
			if _, err := Do(ctx, p.a, x.Step("kept"), p.pay("twice", nil)); !errors.Is(err, semel.ErrInvalid) {
				t.Errorf("a name that is used twice: %v", err)
			}
			if err := semel.Once(ctx, g, x.Step("leased"), func(context.Context, *semel.Execution) error { return nil }); !errors.Is(err, semel.ErrInvalid) {
				t.Errorf("a step outside of the transaction: %v", err)
			}
			return result
		})
	}
	if err := run(later); !errors.Is(err, later) {
		t.Error(err)
	}
	p.want(t)
	for range 2 {
		if err := run(nil); err != nil {
			t.Error(err)
		}
		p.want(t, "kept")
	}
	if names := recordedSteps(t, g, p.s, "k"); len(names) != 0 {
		t.Errorf("the steps %q are recorded", names)
	}
}

// A call of Atomic takes over from leased attempts, and must not repeat their steps.
func TestStep_OfAtomicCallAfterLeasedAttempt_IsReplayed(t *testing.T) {
	p := newShop(t, openNew(t, nil), nil)
	g := leased(t, p.s, nil)
	later := errors.New("later")
	err := semel.Once(t.Context(), g, call("k"), func(ctx context.Context, x *semel.Execution) error {
		_, err := Do(ctx, p.a, x.Step("pay"), p.pay("k", nil))
		return errors.Join(err, later)
	})
	if !errors.Is(err, later) {
		t.Fatal(err)
	}
	receipt, err := Do(t.Context(), p.a, call("k"), func(ctx context.Context, x *semel.Execution, _ pgx.Tx) (string, error) {
		return Do(ctx, p.a, x.Step("pay"), p.pay("k", nil))
	})
	if err != nil || receipt != "receipt of k" {
		t.Errorf("got %q, %v", receipt, err)
	}
	p.want(t, "k")
}

// takeOver claims the key "k" in place of its owner.
func takeOver(t *testing.T, p *shop) {
	t.Helper()
	f, err := p.s.Get(t.Context(), store.Key{Operation: "pay", Tenant: "ann", Value: "k"})
	if r := f.Record; err == nil {
		f, err = p.s.Swap(t.Context(), r.Seen(), store.Proposal{Key: r.Key, State: store.Processing, Owner: store.Owner{1}, Lease: r.Until.Sub(f.Now)})
	}
	if err != nil || !f.Won {
		t.Fatalf("takeover: won %v, error %v", f.Won, err)
	}
}

func countSteps(t *testing.T, s *Store) (n int) {
	t.Helper()
	if err := s.appPool.QueryRow(t.Context(), "SELECT count(*) FROM "+s.quoted()+".semel_step").Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// expiredWithStep makes a completed record with a step, which has expired.
func expiredWithStep(t *testing.T, s *Store, p store.Proposal) store.Record {
	t.Helper()
	f, err := s.Claim(t.Context(), p)
	if err != nil || !f.Won {
		t.Fatalf("claim: won %v, error %v", f.Won, err)
	}
	if err := s.RecordStep(t.Context(), f.Record.Lease(), store.Step{Name: "s"}); err != nil {
		t.Fatal(err)
	}
	if err := s.Settle(t.Context(), f.Record.Lease(), store.Settlement{State: store.Completed, Keep: time.Hour}); err != nil {
		t.Fatal(err)
	}
	advance(t, s, 2*time.Hour)
	f, err = s.Get(t.Context(), p.Key)
	if err != nil {
		t.Fatal(err)
	}
	return f.Record
}

func stepProposal(value string) store.Proposal {
	return store.Proposal{
		Key: store.Key{Operation: "pay", Tenant: "ann", Value: value}, State: store.Processing, Owner: store.Owner{1}, Attempt: 1, Lease: time.Minute,
	}
}

func TestStep_RecordGone_RowsAreDeleted(t *testing.T) {
	s := openFixedClock(t)
	r := expiredWithStep(t, s, stepProposal("k"))
	next := stepProposal("k")
	next.Owner, next.Restart = store.Owner{2}, true
	f, err := s.Swap(t.Context(), r.Seen(), next)
	if n := countSteps(t, s); err != nil || !f.Won || n != 0 || f.Record.Created == r.Created {
		t.Errorf("a restart: won %v, error %v; %d steps are left", f.Won, err, n)
	}
	expiredWithStep(t, s, stepProposal("k2"))
	res, err := s.Sweep(t.Context(), "", 100)
	if n := countSteps(t, s); err != nil || res.Deleted != 1 || n != 0 {
		t.Errorf("a sweep: %d deleted, error %v; %d steps are left", res.Deleted, err, n)
	}
	r = expiredWithStep(t, s, stepProposal("k3"))
	err = s.Erase(t.Context(), r.Seen())
	if n := countSteps(t, s); err != nil || n != 0 {
		t.Errorf("an erasure: error %v; %d steps are left", err, n)
	}
}

// The new owner must see the step, because its transaction commits.
func TestStep_TakeoverDuringItsTransaction_WaitsForCommit(t *testing.T) {
	s := openNew(t, nil)
	f, err := s.Claim(t.Context(), stepProposal("k"))
	if err != nil {
		t.Fatal(err)
	}
	tx, err := s.appPool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(context.Background())
	if err := s.Tx(tx).(store.Journal).RecordStep(t.Context(), f.Record.Lease(), store.Step{Name: "s"}); err != nil {
		t.Fatal(err)
	}
	next := stepProposal("k")
	next.Owner = store.Owner{2}
	taken := make(chan store.Found, 1)
	go func() {
		f, err := s.Swap(t.Context(), f.Record.Seen(), next)
		if err != nil || !f.Won {
			t.Errorf("takeover: won %v, error %v", f.Won, err)
		}
		taken <- f
	}()
	waitFor(t, "the takeover to wait for the lock", func() bool {
		var waiting bool
		err := s.ownPool.QueryRow(t.Context(), "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock')").Scan(&waiting)
		return err != nil || waiting || len(taken) > 0
	})
	if len(taken) > 0 {
		t.Fatal("the takeover did not wait for the transaction of the step")
	}
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	owner := <-taken
	if steps, err := s.Steps(t.Context(), owner.Record.Lease()); err != nil || len(steps) != 1 {
		t.Errorf("the new owner reads the steps %v, error %v", steps, err)
	}
}
