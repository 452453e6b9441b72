package semel_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/driver"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/memstore"
	"github.com/semel-go/semel/sweep"
)

// Bugs that were found by reading: what a store, a token or a rerun may do.

func TestTokenInATransactionRunsNothingThatWasNotReserved(t *testing.T) {
	g := guard(t, memstore.New(nil), nil)
	ticket := reserve(t, g, ann("k"))
	tx := newTx() // swept: no record
	_, err := driver.RunIn(t.Context(), g, tx, redeem(t, g, ticket.Token), tx.effect(nil))
	if tx.effects["k"] != 0 || !errors.Is(err, semel.ErrExpired) {
		t.Errorf("%d effects, %v", tx.effects["k"], err)
	}
}

func TestCompleteInARerunDoesNotBrickTheKey(t *testing.T) {
	g := guard(t, memstore.New(nil), &semel.Options{Rerun: true})
	h := func(ctx context.Context, x *semel.Execution) (store.Outcome, error) {
		o := store.Outcome{Body: []byte("fresh")}
		if err := driver.Complete(ctx, x, o); err != nil && !errors.Is(err, errors.ErrUnsupported) {
			return store.Outcome{}, err
		}
		return o, nil
	}
	for i := range 3 {
		if _, err := g.Run(t.Context(), ann("k"), h); err != nil {
			t.Errorf("call %d: %v", i, err)
		}
	}
}

func TestStepNamedRerunDoesNotMeetTheRerun(t *testing.T) {
	st := memstore.New(nil)
	plain, again := guard(t, st, nil), guard(t, st, &semel.Options{Rerun: true})
	_, err := plain.Run(t.Context(), ann("k"), func(ctx context.Context, x *semel.Execution) (store.Outcome, error) {
		return store.Outcome{}, semel.Once(ctx, plain, x.Step("rerun"), func(context.Context, *semel.Execution) error { return nil })
	})
	if err != nil {
		t.Fatal(err)
	}
	_, err = again.Run(t.Context(), ann("k"), answer("x"))
	if err != nil {
		t.Error(err)
	}
}

func TestStepNamesDoNotCollide(t *testing.T) {
	g := guard(t, memstore.New(nil), nil)
	do := func(ctx context.Context, c semel.Call, v string) string {
		s, err := semel.Do(ctx, g, c, func(context.Context, *semel.Execution) (string, error) { return v, nil })
		if errors.Is(err, semel.ErrInvalid) {
			return v // a refusal is fine, too
		}
		return s
	}
	_, _ = g.Run(t.Context(), ann("k"), func(ctx context.Context, x *semel.Execution) (store.Outcome, error) {
		_, err := g.Run(ctx, x.Step("a"), func(ctx context.Context, x *semel.Execution) (store.Outcome, error) {
			do(ctx, x.Step("b"), "a then b")
			return store.Outcome{}, nil
		})
		if got := do(ctx, x.Step("a#b"), "a#b"); got != "a#b" {
			t.Errorf("step a#b got the result of %q", got)
		}
		return store.Outcome{}, err
	})
}

func TestRerunOfARedeemedCall(t *testing.T) {
	g := guard(t, memstore.New(nil), &semel.Options{Rerun: true})
	ticket := reserve(t, g, ann("k"))
	for i := range 2 {
		if _, err := g.Run(t.Context(), redeem(t, g, ticket.Token), answer("x")); err != nil {
			t.Errorf("delivery %d: %v", i, err)
		}
	}
}

func TestABrokenWaiterDoesNotSpin(t *testing.T) {
	for name, ret := range map[string]error{"error": errBoom, "early nil": nil} {
		t.Run(name, func(t *testing.T) {
			var gets, waits atomic.Int64
			st := memstore.New(nil)
			w := &badWaiter{hooks: hooks{Store: st}, n: &waits, err: ret}
			w.hooks.get = func(ctx context.Context, k store.Key) (store.Found, error) {
				gets.Add(1)
				return st.Get(ctx, k)
			}
			g := guard(t, w, nil)
			crash(t, st, semel.Retry, "k", time.Minute)
			_, err := g.Run(t.Context(), waiting("k", 300*time.Millisecond), never(t))
			wantErr(t, err, semel.ErrInProgress)
			if gets.Load() > 100 {
				t.Errorf("%d reads, %d waits in 300 ms", gets.Load(), waits.Load())
			}
		})
	}
}

type badWaiter struct {
	hooks
	n   *atomic.Int64
	err error
}

func (b *badWaiter) Wait(context.Context, store.Seen) error { b.n.Add(1); return b.err }

func TestReconcileAsksAllInTurn(t *testing.T) {
	st, advance := clocked()
	asked := map[string]bool{}
	g := parking(t, st, func(_ context.Context, x *semel.Execution) (semel.Verdict, error) {
		asked[x.Key()] = true
		return semel.Verdict{}, nil
	})
	for i := range 10 {
		_, _ = g.Run(t.Context(), ann(fmt.Sprint(i)), fail(errBoom))
	}
	for range 10 {
		_, _ = g.Reconcile(t.Context(), pay, 2)
		advance(time.Second)
	}
	if len(asked) != 10 {
		t.Errorf("asked after %d of 10", len(asked))
	}
}

func TestRunInKeepsATombstoneOfWhatTheStoreCannotKeep(t *testing.T) {
	g, tx := guard(t, clockless{}, nil), &smallTx{newTx()}
	_, err := driver.RunIn(t.Context(), g, tx, ann("k"), tx.effect(nil))
	if err != nil || tx.effects["k"] != 1 {
		t.Errorf("%d effects, %v", tx.effects["k"], err)
	}
}

type smallTx struct{ *fakeTx }

func (s *smallTx) Settle(ctx context.Context, l store.Lease, st store.Settlement) error {
	if len(st.Outcome.Body) > 0 {
		return store.ErrTooLarge
	}
	return s.fakeTx.Settle(ctx, l, st)
}

func TestHeadersTooLargeForTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := memstore.New(nil)
		h := &hooks{Store: st}
		h.settle = func(ctx context.Context, l store.Lease, s store.Settlement) error {
			if len(s.Outcome.Body) > 0 || len(s.Outcome.Header) > 0 {
				return store.ErrTooLarge
			}
			return st.Settle(ctx, l, s)
		}
		g := guard(t, h, &semel.Options{MaxOutcome: 100})
		_, err := g.Run(t.Context(), ann("k"), func(context.Context, *semel.Execution) (store.Outcome, error) {
			return store.Outcome{Header: []store.Header{{Name: "A", Value: strings.Repeat("x", 90)}}, Body: make([]byte, 50)}, nil
		})
		if err != nil {
			t.Errorf("the tombstone was not kept: %v", err)
		}
	})
}

func TestRenewalsOfManyLeasesOutliveAShortHang(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := memstore.New(nil)
		h := &hooks{Store: st}
		var hangUntil time.Time
		h.renew = func(ctx context.Context, held []store.Lease, d time.Duration) ([]error, error) {
			if time.Now().Before(hangUntil) { // a request that is sent now is lost
				<-ctx.Done()
				return nil, ctx.Err()
			}
			return st.Renew(ctx, held, d)
		}
		g := guard(t, h, nil)
		hangUntil = time.Now().Add(11 * time.Second) // one second of outage, at the time of the renewals
		var lost atomic.Int64
		var wg sync.WaitGroup
		for i := range 1500 {
			wg.Go(func() {
				_, err := g.Run(t.Context(), ann(fmt.Sprint(i)), func(ctx context.Context, _ *semel.Execution) (store.Outcome, error) {
					select {
					case <-ctx.Done():
						lost.Add(1)
					case <-time.After(40 * time.Second):
					}
					return store.Outcome{}, nil
				})
				_ = err
			})
		}
		wg.Wait()
		t.Logf("1 s hang: %d lost", lost.Load())
		lost.Store(0)
		hangUntil = time.Now().Add(20500 * time.Millisecond)
		for i := range 1500 {
			wg.Go(func() {
				_, _ = g.Run(t.Context(), ann(fmt.Sprint("b", i)), func(ctx context.Context, _ *semel.Execution) (store.Outcome, error) {
					select {
					case <-ctx.Done():
						lost.Add(1)
					case <-time.After(40 * time.Second):
					}
					return store.Outcome{}, nil
				})
			})
		}
		wg.Wait()
		if lost.Load() > 0 {
			t.Errorf("store back after 20.5 s of a 30 s lease: %d of 1500 lost", lost.Load())
		}
	})
}

func TestSweepRefusesBadOptions(t *testing.T) {
	for name, f := range map[string]func(ctx context.Context) error{
		"retention": func(ctx context.Context) error {
			return sweep.Run(ctx, memstore.New(nil), &sweep.Options{Retention: 1})
		},
		"store": func(ctx context.Context) error { return sweep.Run(ctx, nil, nil) },
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		if err := f(ctx); !errors.Is(err, semel.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
		cancel()
	}
}

func TestOneEndingEventACall(t *testing.T) {
	ending := func(e *events) (n int) {
		for _, event := range e.all {
			if event.EndsCall {
				n++
			}
		}
		return n
	}
	check := func(name string, e *events) {
		t.Helper()
		if n := ending(e); n != 1 {
			t.Errorf("%s: %d ending events %v", name, n, e.all)
		}
	}
	var e events
	g := guard(t, memstore.New(nil), &semel.Options{MaxAttempts: 1, Observe: e.observe})
	_, _ = g.Run(t.Context(), ann("k"), fail(errBoom))
	check("exhausted", &e)

	var e3 events
	g = guard(t, memstore.New(nil), &semel.Options{Observe: e3.observe})
	func() {
		defer func() { _ = recover() }()
		_, _ = g.Run(t.Context(), ann("k"), func(ctx context.Context, x *semel.Execution) (store.Outcome, error) {
			_ = driver.Complete(ctx, x, store.Outcome{})
			panic("later")
		})
	}()
	check("panic after Complete", &e3)
}

func TestReserveAfterASweepBeginsAnew(t *testing.T) {
	st, advance := clocked()
	g := guard(t, st, &semel.Options{Retention: time.Hour})
	_, _ = g.Run(t.Context(), ann("k"), fail(errBoom)) // released, attempt 1
	h := &hooks{Store: st}
	h.swap = func(ctx context.Context, seen store.Seen, p store.Proposal) (store.Found, error) {
		advance(time.Hour)
		if _, err := st.Sweep(ctx, "", 100); err != nil { // swept between the look and the swap
			t.Error(err)
		}
		return st.Swap(ctx, seen, p)
	}
	reserve(t, guard(t, h, &semel.Options{Retention: time.Hour}), ann("k"))
	if r := record(t, g, "k"); r.Attempt != 0 || r.LastError != "" {
		t.Errorf("the new record has attempt %d, last error %q", r.Attempt, r.LastError)
	}
}

func TestRerunWithMaxAttemptsAfterCrashes(t *testing.T) {
	st, advance := clocked()
	g := guard(t, st, &semel.Options{Rerun: true, MaxAttempts: 1})
	_, _ = g.Run(t.Context(), ann("k"), answer("first"))
	_, err := st.Claim(t.Context(), store.Proposal{Key: store.Key{Operation: "pay#rerun", Tenant: "ann", Value: "k"}, State: store.Processing, Owner: store.Owner{1}, Attempt: 1, Lease: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	advance(time.Minute)
	if _, err := g.Run(t.Context(), ann("k"), answer("fresh")); err != nil {
		t.Errorf("a crashed read fails the key: %v", err)
	}
}

func TestRerunUnderParkAfterACrash(t *testing.T) {
	_, err := semel.New(memstore.New(nil), &semel.Options{Rerun: true, OnDoubt: semel.Park})
	if err == nil {
		t.Error("Rerun with Park is accepted")
	}
}

func TestCompleteInAReconciler(t *testing.T) {
	st := memstore.New(nil)
	var e events
	g := guard(t, st, &semel.Options{OnDoubt: semel.Park, Observe: e.observe, Reconcile: func(ctx context.Context, x *semel.Execution) (semel.Verdict, error) {
		if err := driver.Complete(ctx, x, store.Outcome{Body: []byte("by complete")}); !errors.Is(err, errors.ErrUnsupported) {
			t.Error("Complete is accepted from a reconciler")
		}
		return semel.DidNotHappen(), nil
	}})
	_, _ = g.Run(t.Context(), ann("k"), fail(errBoom))
	_, _ = g.Reconcile(t.Context(), pay, 1)
	if n := e.count(semel.EventExecuted); n != 0 {
		t.Errorf("%d EventExecuted", n)
	}
}

func TestAWaitingStoresGoroutineDoesNotRace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := &okWaiter{hooks{Store: memstore.New(nil)}}
		g := guard(t, st, nil)
		for i := range 20 {
			k := fmt.Sprint(i)
			started := make(chan struct{})
			var wg sync.WaitGroup
			wg.Go(func() {
				_, _ = g.Run(t.Context(), ann(k), func(context.Context, *semel.Execution) (store.Outcome, error) {
					close(started)
					time.Sleep(2 * time.Millisecond)
					return store.Outcome{Body: []byte("one")}, nil
				})
			})
			<-started
			_, _ = g.Run(t.Context(), waiting(k, time.Minute), never(t))
			wg.Wait()
		}
	})
}

type okWaiter struct{ hooks }

func (b *okWaiter) Wait(ctx context.Context, _ store.Seen) error { <-ctx.Done(); return ctx.Err() }

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

func TestAFailedRollbackIsNoKeptFailure(t *testing.T) {
	g, tx := guard(t, clockless{}, nil), &badRollback{newTx()}
	_, err := driver.RunIn(t.Context(), g, tx, ann("k"), tx.effect(&semel.Failure{Code: "declined"}))
	if _, ok := errors.AsType[*semel.Failure](err); ok || err == nil {
		t.Errorf("the caller is told to commit (%v) with %d effects", err, tx.effects["k"])
	}
}

func TestReconcileCountsOnlyWhatIsStored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := memstore.New(nil)
		_, _ = parking(t, st, nil).Run(t.Context(), ann("k"), fail(errBoom))
		h := &hooks{Store: st, settle: func(context.Context, store.Lease, store.Settlement) error { return errBoom }}
		n, err := parking(t, h, says(semel.DidNotHappen(), nil)).Reconcile(t.Context(), pay, 1)
		if n != 0 || err == nil {
			t.Errorf("settled %d, %v; the record is %v", n, err, record(t, parking(t, st, nil), "k").State)
		}
	})
}

func TestOnePassHandsBackEveryLapsedRecord(t *testing.T) {
	for range 200 {
		st, advance := clocked()
		for i := range 60 {
			crash(t, st, semel.Retry, fmt.Sprint(i), time.Minute)
		}
		advance(time.Minute)
		if stats, err := sweep.Once(t.Context(), st, &sweep.Options{Batch: 10}); err != nil || stats.Released != 60 {
			t.Fatalf("one pass recovered %d of 60, %v", stats.Released, err)
		}
	}
}
