package semel_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/driver"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/memstore"
)

// stepTx is a transaction that keeps steps. A nil function has no step, or keeps it.
type stepTx struct {
	*fakeTx
	steps  func() ([]store.Step, error)
	record func(store.Step) error
}

func (s *stepTx) Steps(context.Context, store.Lease) ([]store.Step, error) {
	if s.steps == nil {
		return nil, nil
	}
	return s.steps()
}

func (s *stepTx) RecordStep(_ context.Context, _ store.Lease, step store.Step) error {
	if s.record == nil {
		return nil
	}
	return s.record(step)
}

// inTx runs a step in a transaction.
func inTx(ctx context.Context, g *semel.Guard, x *semel.Execution, name string, tx *stepTx, fn semel.Handler) error {
	tx.fakeTx = newTx()
	_, err := driver.RunIn(ctx, g, tx, x.Step(name), fn)
	return err
}

// Transactions need something that only one can have, such as a connection, or the lock of
// a file. A step that waits for it must not hold up the one that has it.
func TestStep_WaitsForItsTransaction_OtherStepsEnd(t *testing.T) {
	g := guard(t, memstore.New(nil), nil)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	names := []string{"a", "b", "c"}
	err := semel.Once(ctx, g, ann("k"), func(ctx context.Context, x *semel.Execution) error {
		var once sync.Once
		lock, asked, errs := make(chan struct{}, 1), make(chan struct{}, len(names)), make(chan error)
		for _, name := range names {
			go func() {
				err := inTx(ctx, g, x, name, &stepTx{steps: func() ([]store.Step, error) {
					asked <- struct{}{}
					select {
					case lock <- struct{}{}:
						return nil, nil
					case <-ctx.Done():
						return nil, ctx.Err()
					}
				}}, func(context.Context, *semel.Execution) (store.Outcome, error) {
					once.Do(func() {
						<-asked
						<-asked // another step waits for the lock
					})
					return store.Outcome{}, nil
				})
				if err == nil {
					<-lock
				}
				errs <- err
			}()
		}
		var all error
		for range names {
			all = errors.Join(all, <-errs)
		}
		return all
	})
	if err != nil {
		t.Error(err)
	}
}

// A transaction must not repeat the effect that the step may have had outside of one.
func TestStep_InDoubtUnderPark_RunsInNoTransaction(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, st := range map[string]store.Store{
			"its function failed":    memstore.New(nil),
			"its record is not kept": &journalless{memstore.New(nil), func() error { return errBoom }},
		} {
			g := guard(t, st, &semel.Options{OnDoubt: semel.Park, SettleTimeout: time.Second})
			_ = semel.Once(t.Context(), g, ann("k"), func(ctx context.Context, x *semel.Execution) error {
				runs, result := 0, errBoom
				if name == "its record is not kept" {
					result = nil
				}
				if err := once(ctx, g, x, "pay", &runs, result); err == nil {
					t.Errorf("%s: no error", name)
				}
				wantErr(t, inTx(ctx, g, x, "pay", &stepTx{}, never(t)), semel.ErrParked)
				return errBoom
			})
		}
	})
}

// A transaction whose end is not known may still commit.
func TestStep_InOpenTransaction_IsNotRunOutsideUnderPark(t *testing.T) {
	g := guard(t, memstore.New(nil), &semel.Options{OnDoubt: semel.Park})
	_ = semel.Once(t.Context(), g, ann("k"), func(ctx context.Context, x *semel.Execution) error {
		if err := inTx(ctx, g, x, "pay", &stepTx{}, answer("paid")); err != nil {
			t.Error(err)
		}
		// The next transaction does not see it, and fails.
		wantErr(t, inTx(ctx, g, x, "pay", &stepTx{}, fail(errBoom)), errBoom)
		_, err := g.Run(ctx, x.Step("pay"), never(t))
		wantErr(t, err, semel.ErrParked)
		return errBoom
	})
}

func TestStep_RecordedByOtherTransaction_IsChangedAndReplayedNext(t *testing.T) {
	g := guard(t, memstore.New(nil), &semel.Options{OnDoubt: semel.Park})
	err := semel.Once(t.Context(), g, ann("k"), func(ctx context.Context, x *semel.Execution) error {
		err := inTx(ctx, g, x, "pay", &stepTx{record: func(store.Step) error { return store.ErrStepRecorded }}, answer("paid"))
		wantErr(t, err, store.ErrChanged)
		return inTx(ctx, g, x, "pay", &stepTx{steps: func() ([]store.Step, error) { return []store.Step{{Name: "pay"}}, nil }}, never(t))
	})
	if err != nil {
		t.Error(err)
	}
}

func TestStep_LeaseLostInTransaction_NextStepDoesNotBegin(t *testing.T) {
	g := guard(t, memstore.New(nil), nil)
	_ = semel.Once(t.Context(), g, ann("k"), func(ctx context.Context, x *semel.Execution) error {
		err := inTx(ctx, g, x, "pay", &stepTx{record: func(store.Step) error { return store.ErrLeaseLost }}, answer("paid"))
		wantErr(t, err, semel.ErrLeaseLost)
		_, err = g.Run(ctx, x.Step("mail"), never(t))
		wantErr(t, err, semel.ErrLeaseLost)
		return err
	})
}

// A process that was frozen wakes up after its lease has ended. Its context ends with the
// next check of the heartbeat, and until then only the clock shows it.
func TestStep_DeadlineOfLeaseHasPassed_DoesNotBegin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := memstore.New(nil)
		h := &hooks{Store: st, renew: func(context.Context, []store.Lease, time.Duration) ([]error, error) { return nil, errBoom }}
		h.claim = func(ctx context.Context, p store.Proposal) (store.Found, error) {
			defer time.Sleep(500 * time.Millisecond) // the deadline is between two checks, one second apart
			return st.Claim(ctx, p)
		}
		g := guard(t, h, &semel.Options{Lease: 24 * time.Second})
		start := time.Now()
		err := semel.Once(t.Context(), g, ann("k"), func(ctx context.Context, x *semel.Execution) error {
			time.Sleep(20*time.Second - time.Since(start))
			if ctx.Err() != nil {
				t.Error("the context has ended before the check, so that this shows nothing")
			}
			_, err := g.Run(ctx, x.Step("pay"), never(t))
			wantErr(t, err, semel.ErrLeaseLost)
			wantErr(t, context.Cause(ctx), semel.ErrLeaseLost)
			return err
		})
		wantErr(t, err, semel.ErrLeaseLost)
	})
}

// As above: the time until which all leases of an invocation end.
func TestStep_EndOfLeasesHasPassed_DoesNotBegin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := guard(t, memstore.New(nil), &semel.Options{Lease: time.Minute})
		ctx, cancel := driver.LeaseUntil(t.Context(), time.Now().Add(10*time.Second))
		defer cancel()
		_ = semel.Once(ctx, g, ann("k"), func(_ context.Context, x *semel.Execution) error {
			time.Sleep(10 * time.Second)
			_, err := g.Run(t.Context(), x.Step("pay"), never(t)) // a context that does not end, in place of a timer that is late
			wantErr(t, err, semel.ErrLeaseLost)
			return err
		})
	})
}

// Semel does not learn whether the caller has committed its transactions, so that their
// steps count as soon as they are recorded.
func TestStep_TooMany_InTransactionsOfCaller_IsRefusedBeforeItRuns(t *testing.T) {
	g := guard(t, memstore.New(nil), nil)
	err := semel.Once(t.Context(), g, ann("k"), func(ctx context.Context, x *semel.Execution) error {
		var seen []store.Step
		steps := func() ([]store.Step, error) { return seen, nil }
		for i := range store.MaxSteps {
			name := fmt.Sprint(i)
			var err error
			if i < store.MaxSteps-20 {
				_, err = g.Run(ctx, x.Step(name), answer("paid"))
			} else {
				err = inTx(ctx, g, x, name, &stepTx{steps: steps}, answer("paid"))
			}
			if err != nil {
				return err
			}
			if i < store.MaxSteps-10 { // committed; the others are in transactions that are open
				seen = append(seen, store.Step{Name: name})
			}
		}
		_, err := g.Run(ctx, x.Step("more"), never(t))
		wantErr(t, err, semel.ErrInvalid)
		wantErr(t, inTx(ctx, g, x, "more", &stepTx{steps: steps}, never(t)), semel.ErrInvalid)
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// The caller of Semel rolls back a transaction, and Semel does not learn that.
func TestStep_LargeStepRolledBack_LaterResultIsKept(t *testing.T) {
	g := guard(t, memstore.New(nil), nil)
	large := func(context.Context, *semel.Execution) (store.Outcome, error) {
		return store.Outcome{Codec: "raw", Body: make([]byte, 600_000)}, nil
	}
	_ = semel.Once(t.Context(), g, ann("k"), func(ctx context.Context, x *semel.Execution) error {
		if err := inTx(ctx, g, x, "a", &stepTx{}, large); err != nil {
			t.Error(err)
		}
		if _, err := g.Run(ctx, x.Step("b"), large); err != nil {
			t.Error(err)
		}
		return errBoom
	})
	err := semel.Once(t.Context(), g, ann("k"), func(ctx context.Context, x *semel.Execution) error {
		res, err := g.Run(ctx, x.Step("b"), never(t))
		if len(res.Outcome.Body) != 600_000 {
			t.Errorf("the result of b has %d bytes", len(res.Outcome.Body))
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}
