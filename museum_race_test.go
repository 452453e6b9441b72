package semel_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/driver"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/memstore"
	"github.com/semel-go/semel/sweep"
)

// The tests in the files museum_*_test.go were each written for a seeded bug
// of test/museum that nothing else caught.

// outrun is a store in which somebody else's swap always comes first.
func outrun(st store.Store) *hooks {
	h := &hooks{Store: st}
	h.swap = func(ctx context.Context, seen store.Seen, p store.Proposal) (store.Found, error) {
		other := p
		other.Owner = store.Owner{7}
		if _, err := st.Swap(ctx, seen, other); err != nil {
			return store.Found{}, err
		}
		return st.Swap(ctx, seen, p)
	}
	return h
}

// Rule 3.
func TestALostRaceRunsNothing(t *testing.T) {
	st, advance := clocked()
	crash(t, st, semel.Retry, "k", time.Second)
	advance(time.Second)
	_, err := guard(t, outrun(st), nil).Run(t.Context(), ann("k"), never(t))
	wantErr(t, err, semel.ErrInProgress)
}

// Rules 3 and 17.
func TestAReconcilerThatLostTheRaceIsNotAsked(t *testing.T) {
	st := memstore.New(nil)
	_, err := parking(t, st, nil).Run(t.Context(), ann("k"), fail(errBoom))
	wantErr(t, err, semel.ErrParked)
	g := parking(t, outrun(st), func(context.Context, *semel.Execution) (semel.Verdict, error) {
		t.Error("asked, though another holds the claim")
		return semel.Verdict{}, nil
	})
	if n, err := g.Reconcile(t.Context(), pay, 1); n != 0 || err != nil {
		t.Errorf("settled %d, %v", n, err)
	}
	wantState(t, g, "k", store.Processing)
}

// racingTx is a transaction in which somebody else's swap came first.
type racingTx struct{ *fakeTx }

func (r racingTx) Swap(ctx context.Context, seen store.Seen, p store.Proposal) (store.Found, error) {
	other := p
	other.Owner = store.Owner{7}
	if _, err := r.fakeTx.Swap(ctx, seen, other); err != nil {
		return store.Found{}, err
	}
	return r.fakeTx.Swap(ctx, seen, p)
}

func TestALostRaceInATransactionRunsNothing(t *testing.T) {
	tx := newTx()
	p := store.Proposal{Key: store.Key{Operation: "pay", Tenant: "ann", Value: "k"}, State: store.Processing, Owner: store.Owner{1}, Attempt: 1, Lease: time.Second}
	tx.records[p.Key] = p.Insert(tx.at, 0)
	tx.at = tx.at.Add(time.Second)
	_, err := driver.RunIn(t.Context(), guard(t, clockless{}, nil), racingTx{tx}, ann("k"), never(t))
	wantErr(t, err, semel.ErrInProgress)
}

// renewing is a store whose owners renew between a sweep's look and its change.
type renewing struct{ store.Store }

func (r renewing) Sweep(ctx context.Context, from store.Cursor, limit int) (store.SweepResult, error) {
	res, err := r.Store.Sweep(ctx, from, limit)
	for _, lapsed := range res.Lapsed {
		if _, err := r.Renew(ctx, []store.Lease{lapsed.Lease()}, time.Minute); err != nil {
			return res, err
		}
	}
	return res, err
}

// Rule 3: what is changed is what was judged, and not what is there by then.
func TestASweepRecoversOnlyWhatItJudged(t *testing.T) {
	st, advance := clocked()
	crash(t, st, semel.Park, "k", time.Second)
	advance(time.Second)
	stats, err := sweep.Once(t.Context(), renewing{st}, nil)
	if err != nil || stats != (sweep.Stats{}) {
		t.Errorf("swept %+v, %v", stats, err)
	}
	wantState(t, guard(t, st, nil), "k", store.Processing)
}

// Rules 1 and 14: the key may have begun anew, with another payload, while the
// call waited.
func TestAWaiterIsJudgedAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := memstore.New(nil)
		g := guard(t, st, nil)
		mine, theirs := hashed(t, nil, semel.JSON(1)), hashed(t, nil, semel.JSON(2))
		claim := func(fp store.Fingerprint) store.Proposal {
			return store.Proposal{
				Key: store.Key{Operation: "pay", Tenant: "ann", Value: "k"}, State: store.Processing, Owner: store.Owner{1}, Attempt: 1,
				Lease: time.Hour, Fingerprint: fp,
			}
		}
		f, err := st.Claim(t.Context(), claim(mine))
		if err != nil {
			t.Fatal(err)
		}
		got := make(chan error)
		go func() {
			call := paying("k", semel.JSON(1))
			call.Wait = time.Minute
			_, err := g.Run(t.Context(), call, never(t))
			got <- err
		}()
		synctest.Wait()
		anew := claim(theirs)
		anew.Owner, anew.Restart = store.Owner{2}, true
		if f, err = st.Swap(t.Context(), f.Record.Seen(), anew); err != nil || !f.Won {
			t.Fatal(f, err)
		}
		if err := st.Settle(t.Context(), f.Record.Lease(), store.Settlement{State: store.Completed, Attempt: 1, Keep: time.Hour}); err != nil {
			t.Fatal(err)
		}
		wantErr(t, <-got, semel.ErrMismatch)
	})
}

// hashed is the fingerprint that a Guard with options o keeps of a payload.
func hashed(t testing.TB, o *semel.Options, p semel.Payload) store.Fingerprint {
	t.Helper()
	g := guard(t, memstore.New(nil), o)
	if _, err := g.Run(t.Context(), paying("k", p), answer("")); err != nil {
		t.Fatal(err)
	}
	return record(t, g, "k").Fingerprint
}
