package semel_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/driver"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/memstore"
)

func TestRunIn_HandlerEnds_RecordAndWritesCommitTogether(t *testing.T) {
	declined := &semel.Failure{Code: "declined"}
	for name, c := range map[string]struct {
		err     error
		effects int
		kept    bool
	}{
		"success":          {nil, 1, true},
		"a final failure":  {declined, 0, true},
		"a plain error":    {errBoom, 0, false},
		"an early refusal": {semel.NoEffect(errBoom), 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			for _, policy := range []semel.Policy{semel.Retry, semel.Park} {
				g, tx := guard(t, clockless{}, &semel.Options{OnDoubt: policy}), newTx()
				_, err := driver.RunIn(t.Context(), g, tx, ann("k"), tx.effect(c.err))
				if !errors.Is(err, c.err) {
					t.Errorf("got error %v, want %v", err, c.err)
				}
				if tx.effects["k"] != c.effects || (len(tx.records) == 1) != c.kept {
					t.Errorf("%d effects and %d records; want %d effects, and a record: %v", tx.effects["k"], len(tx.records), c.effects, c.kept)
				}
				res, err := driver.RunIn(t.Context(), g, tx, ann("k"), tx.effect(nil))
				switch {
				case c.err == nil:
					wantBody(t, res, err, "paid", true)
				case c.kept:
					wantErr(t, err, declined)
				default:
					wantBody(t, res, err, "paid", false)
				}
			}
		})
	}
}

func TestRunIn_HandlerPanics_LeavesNothing(t *testing.T) {
	g, tx := guard(t, clockless{}, nil), newTx()
	func() {
		defer func() { _ = recover() }()
		_, _ = driver.RunIn(t.Context(), g, tx, ann("k"), func(context.Context, *semel.Execution) (store.Outcome, error) {
			tx.effects["k"]++
			panic("ouch")
		})
	}()
	if len(tx.records) != 0 || len(tx.effects) != 0 {
		t.Errorf("records %v and effects %v are left, want none", tx.records, tx.effects)
	}
}

func TestRunIn_KeyClaimedByAnother_ObeysDecide(t *testing.T) {
	g, tx := guard(t, clockless{}, &semel.Options{MaxAttempts: 2}), newTx()
	claim := func(policy semel.Policy, attempt int) {
		p := store.Proposal{Key: store.Key{Operation: "pay", Tenant: "ann", Value: "k"}, State: store.Processing, Policy: policy, Owner: store.Owner{1}, Attempt: attempt, Lease: time.Second}
		tx.records[p.Key] = p.Insert(tx.now, 0)
	}
	claim(semel.Retry, 1)
	call := waiting("k", time.Hour) // RunIn never waits, because its caller may hold locks
	_, err := driver.RunIn(t.Context(), g, tx, call, never(t))
	wantErr(t, err, semel.ErrInProgress)
	_, err = driver.RunIn(t.Context(), g, tx, paying("k", semel.JSON(1)), never(t))
	wantErr(t, err, semel.ErrUnverifiable)

	claim(semel.Park, 1)
	tx.now = tx.now.Add(time.Second)
	_, err = driver.RunIn(t.Context(), g, tx, ann("k"), never(t))
	wantErr(t, err, semel.ErrParked)
	claim(semel.Retry, 2)
	tx.now = tx.now.Add(time.Second)
	_, err = driver.RunIn(t.Context(), g, tx, ann("k"), never(t))
	wantErr(t, err, &semel.Failure{Code: semel.CodeAttemptsExhausted})
	claim(semel.Retry, 1)
	tx.now = tx.now.Add(time.Second)
	res, err := driver.RunIn(t.Context(), g, tx, ann("k"), tx.effect(nil)) // the lease has expired: the call takes over
	wantBody(t, res, err, "paid", false)

	_, err = driver.RunIn(t.Context(), guard(t, clockless{}, &semel.Options{Rerun: true}), tx, ann("k"), never(t))
	wantErr(t, err, semel.ErrInvalid)
}

// A handler runs two other calls in the same transaction, one of which panics. Each
// call keeps its own Execution and result.
func TestRunIn_NestedCalls_KeepTheirOwnResults(t *testing.T) {
	g, tx := guard(t, clockless{}, nil), newTx()
	for i := range 50 {
		outer, inner := fmt.Sprint("outer ", i), fmt.Sprint("inner ", i)
		var was *semel.Execution
		res, err := driver.RunIn(t.Context(), g, tx, ann(outer), func(ctx context.Context, x *semel.Execution) (store.Outcome, error) {
			func() {
				defer func() { _ = recover() }()
				_, _ = driver.RunIn(ctx, g, tx, ann("panicking "+outer), func(context.Context, *semel.Execution) (store.Outcome, error) { panic(i) })
			}()
			in, err := driver.RunIn(ctx, g, tx, ann(inner), func(context.Context, *semel.Execution) (store.Outcome, error) {
				return store.Outcome{Body: []byte(inner)}, nil
			})
			if err != nil || string(in.Body) != inner {
				t.Errorf("the inner call got %q, %v; want %q", in.Body, err, inner)
			}
			was = x
			return store.Outcome{Body: []byte(outer)}, nil
		})
		if err != nil || string(res.Body) != outer || was.Key() != outer {
			t.Errorf("the outer call got %q, %v of the key %q; want %q", res.Body, err, was.Key(), outer)
		}
	}
}

// failingTx is a transaction that cannot settle.
type failingTx struct{ *fakeTx }

func (failingTx) Settle(context.Context, store.Lease, store.Settlement) error { return errBoom }

// An error of the transaction is the error of the call.
func TestRunIn_SettleFails_CallerGetsError(t *testing.T) {
	for _, err := range []error{nil, &semel.Failure{Code: "declined"}} {
		tx := newTx()
		_, got := driver.RunIn(t.Context(), guard(t, clockless{}, nil), failingTx{tx}, ann("k"), tx.effect(err))
		wantErr(t, got, semel.ErrUnavailable)
		wantErr(t, got, errBoom)
		if len(tx.records) != 0 || len(tx.effects) != 0 {
			t.Errorf("records %v and effects %v are left, want none", tx.records, tx.effects)
		}
	}
}

// racingTx is a transaction in which another process swaps first.
type racingTx struct{ *fakeTx }

func (r racingTx) Swap(ctx context.Context, seen store.Seen, p store.Proposal) (store.Found, error) {
	other := p
	other.Owner = store.Owner{7}
	if _, err := r.fakeTx.Swap(ctx, seen, other); err != nil {
		return store.Found{}, err
	}
	return r.fakeTx.Swap(ctx, seen, p)
}

func TestRunIn_SwapLost_RunsNothing(t *testing.T) {
	tx := newTx()
	p := store.Proposal{Key: store.Key{Operation: "pay", Tenant: "ann", Value: "k"}, State: store.Processing, Owner: store.Owner{1}, Attempt: 1, Lease: time.Second}
	tx.records[p.Key] = p.Insert(tx.now, 0)
	tx.now = tx.now.Add(time.Second)
	_, err := driver.RunIn(t.Context(), guard(t, clockless{}, nil), racingTx{tx}, ann("k"), never(t))
	wantErr(t, err, semel.ErrInProgress)
}

func TestRunIn_TokenNotReserved_IsExpired(t *testing.T) {
	g := guard(t, memstore.New(nil), nil)
	ticket := reserve(t, g, ann("k"))
	tx := newTx() // without a record, as after a sweep
	_, err := driver.RunIn(t.Context(), g, tx, redeem(t, g, ticket.Token), tx.effect(nil))
	if tx.effects["k"] != 0 || !errors.Is(err, semel.ErrExpired) {
		t.Errorf("%d effects, %v; want no effect and ErrExpired", tx.effects["k"], err)
	}
}

func TestRunIn_OutcomeTooLargeForStore_LeavesTombstone(t *testing.T) {
	g, tx := guard(t, clockless{}, nil), &smallTx{newTx()}
	_, err := driver.RunIn(t.Context(), g, tx, ann("k"), tx.effect(nil))
	if err != nil || tx.effects["k"] != 1 {
		t.Errorf("%d effects, %v; want 1 effect", tx.effects["k"], err)
	}
	_, err = driver.RunIn(t.Context(), g, tx, ann("k"), never(t))
	wantErr(t, err, semel.ErrNotKept)
}

// smallTx is a transaction of a store that cannot keep a body.
type smallTx struct{ *fakeTx }

func (s *smallTx) Settle(ctx context.Context, l store.Lease, st store.Settlement) error {
	if len(st.Outcome.Body) > 0 {
		return store.ErrTooLarge
	}
	return s.fakeTx.Settle(ctx, l, st)
}

// badRollback is a transaction whose first savepoint cannot be undone.
type badRollback struct{ *fakeTx }

func (b *badRollback) Nested(ctx context.Context, fn func() error) error {
	effects := b.effects["k"]
	err := b.fakeTx.Nested(ctx, fn)
	if err != nil && effects == 0 {
		b.effects["k"] = 1 // the savepoint could not be rolled back
		return errors.Join(err, errors.New("ROLLBACK TO SAVEPOINT: connection reset"))
	}
	return err
}

func TestRunIn_RollbackFails_IsNoFailure(t *testing.T) {
	g, tx := guard(t, clockless{}, nil), &badRollback{newTx()}
	_, err := driver.RunIn(t.Context(), g, tx, ann("k"), tx.effect(&semel.Failure{Code: "declined"}))
	if _, ok := errors.AsType[*semel.Failure](err); ok || err == nil {
		t.Errorf("got error %v, with which the caller commits; %d effects were not undone", err, tx.effects["k"])
	}
}

func TestStep_InTransactionWithoutJournal_IsRefused(t *testing.T) {
	g := guard(t, memstore.New(nil), nil)
	err := semel.Once(t.Context(), g, ann("k"), func(ctx context.Context, x *semel.Execution) error {
		_, err := driver.RunIn(ctx, g, newTx(), x.Step("charge"), never(t))
		wantErr(t, err, semel.ErrInvalid)
		_, err = driver.NewTxCall(g, x.Step("charge"))
		wantErr(t, err, semel.ErrInvalid)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// The steps of a call in a transaction are undone and kept with it.
func TestStep_OfCallInTransaction_IsSavepoint(t *testing.T) {
	g := guard(t, clockless{memstore.New(nil)}, nil)
	tx := newTx()
	_, err := driver.RunIn(t.Context(), g, tx, ann("k"), func(ctx context.Context, x *semel.Execution) (store.Outcome, error) {
		effect := func(name string, err error) error {
			_, err = driver.RunIn(ctx, g, tx, x.Step(name), func(context.Context, *semel.Execution) (store.Outcome, error) {
				tx.effects[name]++
				return store.Outcome{}, err
			})
			return err
		}
		wantErr(t, effect("failed", errBoom), errBoom)
		wantErr(t, effect("kept", nil), nil)
		wantErr(t, effect("kept", nil), semel.ErrInvalid)
		if err := effect("declined", &semel.Failure{Code: "declined"}); !errors.Is(err, &semel.Failure{Code: "declined"}) {
			t.Errorf("a step that fails for good: %v", err)
		}
		return store.Outcome{}, nil
	})
	if err != nil || len(tx.effects) != 1 || tx.effects["kept"] != 1 {
		t.Errorf("the effects are %v, error %v; want kept, once", tx.effects, err)
	}
	if r := tx.records[store.Key{Operation: pay, Tenant: "ann", Value: "k"}]; len(tx.records) != 1 || r.State != store.Completed {
		t.Errorf("the records are %v", tx.records)
	}
}
