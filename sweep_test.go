package semel_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/memstore"
	"github.com/semel-go/semel/sweep"
)

// Rule 7: a sweep removes what is over, recovers what has lapsed by its
// policy, and touches no live claim and no unknown record.
func TestASweepRemovesAndRecovers(t *testing.T) {
	st, advance := clocked()
	var seen events
	retry := guard(t, st, &semel.Options{Retention: time.Hour})
	park := guard(t, st, &semel.Options{OnDoubt: semel.Park, Retention: time.Hour})
	_, _ = retry.Run(t.Context(), ann("done"), answer("x"))
	_, _ = retry.Run(t.Context(), ann("failed"), fail(semel.Final(errBoom)))
	_, _ = retry.Run(t.Context(), ann("released"), fail(errBoom))
	_, _ = park.Run(t.Context(), ann("unknown"), fail(errBoom))
	advance(time.Hour)
	_, _ = retry.Run(t.Context(), ann("fresh"), answer("x"))
	crash(t, st, semel.Retry, "crashed", time.Minute)
	crash(t, st, semel.Park, "parked", time.Minute)
	crash(t, st, semel.Retry, "live", time.Hour)
	reserve(t, guard(t, st, &semel.Options{Reservation: time.Minute}), ann("reserved"))
	advance(time.Minute)

	stats, err := sweep.Once(t.Context(), st, &sweep.Options{Batch: 2, Observe: seen.observe})
	if err != nil {
		t.Fatal(err)
	}
	if want := (sweep.Stats{Deleted: 3, Released: 2, Parked: 1}); stats != want {
		t.Errorf("swept %+v, want %+v", stats, want)
	}
	for key, want := range map[string]store.State{
		"unknown": store.Unknown, "fresh": store.Completed, "crashed": store.Released,
		"parked": store.Unknown, "live": store.Processing, "reserved": store.Released,
	} {
		wantState(t, retry, key, want)
	}
	for _, key := range []string{"done", "failed", "released"} {
		if _, err := retry.Get(t.Context(), semel.Call{Operation: pay, Tenant: "ann", Key: key}); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("%s is still there: %v", key, err)
		}
	}
	if released, parked := seen.count(semel.EventReleased), seen.count(semel.EventParked); released != 2 || parked != 1 {
		t.Errorf("%d events of 2 released records, %d of 1 parked record", released, parked)
	}
	if r := record(t, retry, "crashed"); r.Attempt != 1 || r.LastError == "" {
		t.Errorf("the crashed record has attempt %d, last error %q", r.Attempt, r.LastError)
	}
	res, err := retry.Run(t.Context(), ann("crashed"), func(_ context.Context, x *semel.Execution) (store.Outcome, error) {
		return store.Outcome{Body: fmt.Append(nil, x.Attempt())}, nil
	})
	wantBody(t, res, err, "2", false)
}

func TestASweepEndsAClaimThatWasTheLastAttempt(t *testing.T) {
	st, advance := clocked()
	crash(t, st, semel.Retry, "k", time.Second)
	advance(time.Second)
	stats, err := sweep.Once(t.Context(), st, &sweep.Options{MaxAttempts: 1})
	if err != nil || stats.Failed != 1 {
		t.Errorf("swept %+v, %v", stats, err)
	}
	_, err = guard(t, st, nil).Run(t.Context(), ann("k"), never(t))
	wantErr(t, err, &semel.Failure{Code: semel.CodeAttemptsExhausted})
}

// Rule 3: the owner's renewal and the sweep's recovery cannot both win.
func TestASweepDoesNotRecoverAClaimThatWasRenewedMeanwhile(t *testing.T) {
	st, advance := clocked()
	r := crash(t, st, semel.Park, "k", time.Second)
	advance(time.Second)
	h := &hooks{Store: st}
	h.swap = func(ctx context.Context, seen store.Seen, p store.Proposal) (store.Found, error) {
		if errs, err := st.Renew(ctx, []store.Lease{r.Lease()}, time.Minute); err != nil || errs[0] != nil {
			t.Error(err, errs)
		}
		return st.Swap(ctx, seen, p)
	}
	stats, err := sweep.Once(t.Context(), h, nil)
	if err != nil || stats != (sweep.Stats{}) {
		t.Errorf("swept %+v, %v", stats, err)
	}
	wantState(t, guard(t, st, nil), "k", store.Processing)
}

func TestSweepRunsUntilItsContextEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := memstore.New(nil)
		ctx, stop := context.WithCancel(t.Context())
		passes := 0
		done := make(chan error)
		go func() {
			done <- sweep.Run(ctx, st, &sweep.Options{Every: time.Minute, AfterPass: func(sweep.Stats, error) { passes++ }})
		}()
		time.Sleep(10 * time.Minute)
		stop()
		if err := <-done; err != nil || passes < 6 || passes > 21 {
			t.Errorf("%d passes in 10 minutes, %v", passes, err)
		}
	})
	if err := sweep.Run(t.Context(), memstore.New(nil), &sweep.Options{Batch: -1}); !errors.Is(err, semel.ErrInvalid) {
		t.Errorf("a negative batch: %v", err)
	}
}

func TestALogNeverHoldsAKeyOrAPayload(t *testing.T) {
	const canary = "canary-4711"
	var out logged
	st, advance := clocked()
	for _, policy := range []semel.Policy{semel.Retry, semel.Park} {
		g := guard(t, st, &semel.Options{OnDoubt: policy, Observe: semel.LogEvents(out.logger())})
		for i, h := range []semel.Handler{answer(canary), fail(errBoom), fail(semel.Final(errBoom)), fail(semel.NoEffect(errBoom))} {
			for range 2 {
				call := paying(fmt.Sprintf("%s-%v-%d", canary, policy, i), semel.JSON(canary))
				_, err := g.Run(t.Context(), call, h)
				if err != nil && contains(err.Error(), canary) {
					t.Errorf("the error holds it: %v", err)
				}
			}
		}
		advance(time.Minute)
	}
	if out.lines() == 0 || contains(out.String(), canary) {
		t.Errorf("%d lines: %s", out.lines(), out.String())
	}
}

// As a call would find it: under park a key without an attempt left is not known,
// and a reconciler has the last word, not a sweep.
func TestASweepFailsNoParkedKeyForGood(t *testing.T) {
	st, advance := clocked()
	_, err := st.Claim(t.Context(), store.Proposal{
		Key: store.Key{Operation: string(pay), Tenant: "ann", Value: "k"}, State: store.Started, Policy: semel.Park, Owner: store.Owner{1}, Attempt: 1, Lease: time.Second,
	})
	if err != nil {
		t.Fatal(err)
	}
	advance(time.Second)
	stats, err := sweep.Once(t.Context(), st, &sweep.Options{MaxAttempts: 1})
	if want := (sweep.Stats{Parked: 1}); err != nil || stats != want {
		t.Errorf("swept %+v, %v; want %+v", stats, err, want)
	}
	wantState(t, guard(t, st, nil), "k", store.Unknown)
}
