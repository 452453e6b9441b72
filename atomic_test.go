package semel_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/driver"
	"github.com/semel-go/semel/store"
)

// fakeTx is a transaction on a map, for the rules of RunIn alone; the stores'
// own tests run it on real databases.
type fakeTx struct {
	records map[store.Key]store.Record
	effects map[string]int
	at      time.Time
}

func newTx() *fakeTx {
	return &fakeTx{map[store.Key]store.Record{}, map[string]int{}, time.Date(2026, 11, 20, 0, 0, 0, 0, time.UTC)}
}

func (f *fakeTx) Claim(_ context.Context, p store.Proposal) (store.Found, error) {
	r, ok := f.records[p.Key]
	if !ok {
		r = p.Insert(f.at, 0)
		f.records[p.Key] = r
	}
	return store.Found{Record: r, Won: !ok, Now: f.at}, nil
}

func (f *fakeTx) Swap(_ context.Context, seen store.Seen, p store.Proposal) (store.Found, error) {
	r := f.records[p.Key]
	won := r.Seen() == seen
	if won {
		r = p.Replace(&r, f.at)
		f.records[p.Key] = r
	}
	return store.Found{Record: r, Won: won, Now: f.at}, nil
}

func (f *fakeTx) Settle(_ context.Context, l store.Lease, s store.Settlement) error {
	r, ok := f.records[l.Key]
	if !ok || r.Lease() != l || r.State != store.Processing {
		return store.ErrLeaseLost
	}
	f.records[l.Key] = s.Apply(r, f.at)
	return nil
}

func (f *fakeTx) Nested(_ context.Context, fn func() error) error {
	records, effects := maps.Clone(f.records), maps.Clone(f.effects)
	done := false
	defer func() {
		if !done {
			f.records, f.effects = records, effects
		}
	}()
	err := fn()
	done = err == nil
	return err
}

// effect is a handler that writes in the transaction, and then returns err.
func (f *fakeTx) effect(err error) semel.Handler {
	return func(ctx context.Context, x *semel.Execution) (store.Outcome, error) {
		f.effects[x.Key()]++
		if cerr := driver.Complete(ctx, x, store.Outcome{}); !errors.Is(cerr, errors.ErrUnsupported) {
			return store.Outcome{}, errors.New("Complete before the commit must be refused")
		}
		return store.Outcome{Body: []byte("paid")}, err
	}
}

func TestInATransactionRecordAndEffectStandOrFallTogether(t *testing.T) {
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
					t.Errorf("got %v", err)
				}
				if tx.effects["k"] != c.effects || (len(tx.records) == 1) != c.kept {
					t.Errorf("%d effects, %d records", tx.effects["k"], len(tx.records))
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

func TestAPanicInATransactionLeavesNothing(t *testing.T) {
	g, tx := guard(t, clockless{}, nil), newTx()
	func() {
		defer func() { _ = recover() }()
		_, _ = driver.RunIn(t.Context(), g, tx, ann("k"), func(context.Context, *semel.Execution) (store.Outcome, error) {
			tx.effects["k"]++
			panic("ouch")
		})
	}()
	if len(tx.records) != 0 || len(tx.effects) != 0 {
		t.Errorf("left %v, %v", tx.records, tx.effects)
	}
}

func TestInATransactionOthersClaimsAreRespected(t *testing.T) {
	g, tx := guard(t, clockless{}, &semel.Options{MaxAttempts: 2}), newTx()
	claim := func(policy semel.Policy, attempt int) {
		p := store.Proposal{Key: store.Key{Operation: "pay", Tenant: "ann", Value: "k"}, State: store.Processing, Policy: policy, Owner: store.Owner{1}, Attempt: attempt, Lease: time.Second}
		tx.records[p.Key] = p.Insert(tx.at, 0)
	}
	claim(semel.Retry, 1)
	call := waiting("k", time.Hour) // it never waits, for its caller may hold locks
	_, err := driver.RunIn(t.Context(), g, tx, call, never(t))
	wantErr(t, err, semel.ErrInProgress)
	_, err = driver.RunIn(t.Context(), g, tx, paying("k", semel.JSON(1)), never(t))
	wantErr(t, err, semel.ErrUnverifiable)

	claim(semel.Park, 1)
	tx.at = tx.at.Add(time.Second)
	_, err = driver.RunIn(t.Context(), g, tx, ann("k"), never(t))
	wantErr(t, err, semel.ErrParked)
	claim(semel.Retry, 2)
	tx.at = tx.at.Add(time.Second)
	_, err = driver.RunIn(t.Context(), g, tx, ann("k"), never(t))
	wantErr(t, err, &semel.Failure{Code: semel.CodeAttemptsExhausted})
	claim(semel.Retry, 1)
	tx.at = tx.at.Add(time.Second)
	res, err := driver.RunIn(t.Context(), g, tx, ann("k"), tx.effect(nil)) // a lapsed claim is taken over
	wantBody(t, res, err, "paid", false)

	_, err = driver.RunIn(t.Context(), guard(t, clockless{}, &semel.Options{Rerun: true}), tx, ann("k"), never(t))
	wantErr(t, err, semel.ErrInvalid)
}

// clockless is the store of a Guard that only runs in transactions.
type clockless struct{ store.Store }

// The memory of a run is used again. A handler that runs another call has a
// run of its own, and one that panics gives nothing back.
func TestRunsInEachOtherDoNotShareMemory(t *testing.T) {
	g, tx := guard(t, clockless{}, nil), newTx()
	for i := range 50 {
		outer, inner := fmt.Sprint("outer ", i), fmt.Sprint("inner ", i)
		var was *semel.Execution
		res, err := driver.RunIn(t.Context(), g, tx, ann(outer), func(ctx context.Context, x *semel.Execution) (store.Outcome, error) {
			func() {
				defer func() { _ = recover() }()
				_, _ = driver.RunIn(ctx, g, tx, ann("panics "+outer), func(context.Context, *semel.Execution) (store.Outcome, error) { panic(i) })
			}()
			in, err := driver.RunIn(ctx, g, tx, ann(inner), func(context.Context, *semel.Execution) (store.Outcome, error) {
				return store.Outcome{Body: []byte(inner)}, nil
			})
			if err != nil || string(in.Body) != inner {
				t.Errorf("%s: %q, %v", inner, in.Body, err)
			}
			was = x
			return store.Outcome{Body: []byte(outer)}, nil
		})
		if err != nil || string(res.Body) != outer || was.Key() != outer {
			t.Errorf("%s: %q of %s, %v", outer, res.Body, was.Key(), err)
		}
	}
}
