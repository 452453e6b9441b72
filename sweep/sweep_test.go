package sweep_test

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

// Rule 7: a sweep deletes expired records, recovers expired claims by their policy,
// and changes no live claim and no Unknown record.
func TestOnce_EachState_RemovesOrRecovers(t *testing.T) {
	st, advance := newClockedStore()
	retry := guard(t, st, &semel.Options{Retention: time.Hour})
	park := guard(t, st, &semel.Options{OnDoubt: semel.Park, Retention: time.Hour})
	_, _ = retry.Run(t.Context(), ann("done"), handler("x", nil))
	_, _ = retry.Run(t.Context(), ann("failed"), handler("", semel.Final(errBoom)))
	_, _ = retry.Run(t.Context(), ann("released"), handler("", errBoom))
	_, _ = park.Run(t.Context(), ann("unknown"), handler("", errBoom))
	advance(time.Hour)
	_, _ = retry.Run(t.Context(), ann("fresh"), handler("x", nil))
	crash(t, st, "crashed", store.Proposal{Lease: time.Minute})
	crash(t, st, "parked", store.Proposal{Lease: time.Minute, Policy: store.Park})
	crash(t, st, "live", store.Proposal{Lease: time.Hour})
	if _, err := guard(t, st, &semel.Options{Reservation: time.Minute}).Reserve(t.Context(), ann("reserved")); err != nil {
		t.Fatal(err)
	}
	advance(time.Minute)

	kinds := map[string]int{}
	observe := func(_ context.Context, e semel.Event) { kinds[e.Kind]++ }
	stats, err := sweep.Once(t.Context(), st, &sweep.Options{Batch: 2, Observe: observe})
	if err != nil {
		t.Fatal(err)
	}
	if want := (sweep.Stats{Deleted: 3, Released: 2, Parked: 1}); stats != want {
		t.Errorf("the pass did %+v, want %+v", stats, want)
	}
	for key, want := range map[string]store.State{
		"unknown": store.Unknown, "fresh": store.Completed, "crashed": store.Released,
		"parked": store.Unknown, "live": store.Processing, "reserved": store.Released,
	} {
		if got, _ := stateOf(t, st, key); got != want {
			t.Errorf("the record of %q is %v, want %v", key, got, want)
		}
	}
	for _, key := range []string{"done", "failed", "released"} {
		if _, err := retry.Get(t.Context(), ann(key)); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("the expired record of %q: got error %v, want ErrNotFound", key, err)
		}
	}
	if kinds[semel.EventReleased] != 2 || kinds[semel.EventParked] != 1 || len(kinds) != 2 {
		t.Errorf("events %v; want 2 of released and 1 of parked records", kinds)
	}
	if _, r := stateOf(t, st, "crashed"); r.Attempt != 1 || r.LastError == "" {
		t.Errorf("the crashed record has attempt %d, last error %q", r.Attempt, r.LastError)
	}
	_, err = retry.Run(t.Context(), ann("crashed"), func(_ context.Context, x *semel.Execution) (store.Outcome, error) {
		if x.Attempt() != 2 {
			t.Errorf("the next attempt is %d, want 2", x.Attempt())
		}
		return store.Outcome{}, nil
	})
	if err != nil {
		t.Error(err)
	}
}

// A sweep may be another program's, with other options. The limit of attempts is that of the
// Guard whose call comes next.
func TestOnce_LastAttemptExpired_NextGuardDecides(t *testing.T) {
	for limit, want := range map[int]string{0: "again", 1: semel.CodeAttemptsExhausted} {
		st, advance := newClockedStore()
		crash(t, st, "k", store.Proposal{Lease: time.Second})
		advance(time.Second)
		stats, err := sweep.Once(t.Context(), st, nil)
		if want := (sweep.Stats{Released: 1}); err != nil || stats != want {
			t.Errorf("the pass did %+v, %v; want %+v", stats, err, want)
		}
		res, err := guard(t, st, &semel.Options{MaxAttempts: limit}).Run(t.Context(), ann("k"), handler("again", nil))
		got := string(res.Body)
		if f, ok := errors.AsType[*semel.Failure](err); ok {
			got = f.Code
		}
		if got != want {
			t.Errorf("a Guard with limit %d: %q, %v; want %q", limit, got, err, want)
		}
	}
}

// A sweep of a program with shorter Retention must not make the steps of a call run again.
func TestOnce_GuardKeepsForAWeek_StepsAreNotRepeated(t *testing.T) {
	st, advance := newClockedStore()
	g := guard(t, st, &semel.Options{Retention: 7 * 24 * time.Hour})
	charged := 0
	charge := func(ctx context.Context, x *semel.Execution) (store.Outcome, error) {
		_, err := g.Run(ctx, x.Step("charge"), func(context.Context, *semel.Execution) (store.Outcome, error) {
			charged++
			return store.Outcome{}, nil
		})
		if x.Attempt() == 1 {
			return store.Outcome{}, errBoom
		}
		return store.Outcome{}, err
	}
	_, _ = g.Run(t.Context(), ann("k"), charge)
	_, r := stateOf(t, st, "k")
	dead := store.Proposal{Key: r.Key, State: store.Processing, Owner: store.Owner{1}, Attempt: 2, Lease: time.Second}
	if f, err := st.Swap(t.Context(), r.Seen(), dead); err != nil || !f.Won { // a process that dies after the step
		t.Fatalf("%+v, %v", f, err)
	}
	for range 3 {
		advance(48 * time.Hour)
		if _, err := sweep.Once(t.Context(), st, nil); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := g.Run(t.Context(), ann("k"), charge); err != nil || charged != 1 {
		t.Errorf("charged %d times, error %v; want once", charged, err)
	}
}

// renewing is a store in which the owner of a claim renews its lease while a sweep
// is under way.
type renewing struct {
	store.Store
	afterRead, beforeSwap bool
}

func (r *renewing) renew(ctx context.Context, l store.Lease) error {
	errs, err := r.Renew(ctx, []store.Lease{l}, time.Minute)
	return errors.Join(append(errs, err)...)
}

func (r *renewing) Sweep(ctx context.Context, from store.Cursor, limit int) (store.SweepResult, error) {
	res, err := r.Store.Sweep(ctx, from, limit)
	for _, lapsed := range res.Lapsed {
		if r.afterRead {
			err = errors.Join(err, r.renew(ctx, lapsed.Lease()))
		}
	}
	return res, err
}

func (r *renewing) Swap(ctx context.Context, seen store.Seen, p store.Proposal) (store.Found, error) {
	if r.beforeSwap {
		if err := r.renew(ctx, store.Lease{Key: seen.Key, Owner: seen.Owner, Fence: seen.Fence}); err != nil {
			return store.Found{}, err
		}
	}
	return r.Store.Swap(ctx, seen, p)
}

// Rule 3: the sweep changes only the record that it has judged, so the owner's
// renewal and the sweep's recovery cannot both succeed.
func TestOnce_RenewedMeanwhile_IsLeftAlone(t *testing.T) {
	for name, st := range map[string]*renewing{"after the read": {afterRead: true}, "before the swap": {beforeSwap: true}} {
		t.Run(name, func(t *testing.T) {
			inner, advance := newClockedStore()
			st.Store = inner
			crash(t, inner, "k", store.Proposal{Lease: time.Second, Policy: store.Park})
			advance(time.Second)
			if stats, err := sweep.Once(t.Context(), st, nil); err != nil || stats != (sweep.Stats{}) {
				t.Errorf("the pass did %+v, %v; want nothing", stats, err)
			}
			if got, _ := stateOf(t, inner, "k"); got != store.Processing {
				t.Errorf("the record is %v, want processing", got)
			}
		})
	}
}

// Rule 6: the store's clock decides, even if the clock of the process is wrong.
func TestOnce_ProcessClockWrong_StoreClockDecides(t *testing.T) {
	for name, shift := range map[string]time.Duration{"behind": -50 * 365 * 24 * time.Hour, "ahead": 50 * 365 * 24 * time.Hour} {
		now := time.Now().Add(shift)
		st := memstore.New(&memstore.Options{Now: func() time.Time { return now }})
		crash(t, st, "k", store.Proposal{Lease: time.Minute, Policy: store.Park})
		now = now.Add(time.Minute)
		if stats, err := sweep.Once(t.Context(), st, nil); err != nil || stats.Parked != 1 {
			t.Errorf("the store's clock is %s: the pass did %+v, %v; want 1 parked record", name, stats, err)
		}
	}
}

func TestOnce_ManyExpired_RecoversAll(t *testing.T) {
	for range 200 { // the store spreads the keys in another way each time
		st, advance := newClockedStore()
		for i := range 60 {
			crash(t, st, fmt.Sprint(i), store.Proposal{Lease: time.Minute})
		}
		advance(time.Minute)
		if stats, err := sweep.Once(t.Context(), st, &sweep.Options{Batch: 10}); err != nil || stats.Released != 60 {
			t.Fatalf("one pass released %d of 60 records, %v", stats.Released, err)
		}
	}
}

func TestRun_ContextEnds_ReturnsNil(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		passes := 0
		done := make(chan error)
		go func() {
			done <- sweep.Run(ctx, memstore.New(nil), &sweep.Options{Every: time.Minute, AfterPass: func(sweep.Stats, error) { passes++ }})
		}()
		time.Sleep(10 * time.Minute)
		stop()
		if err := <-done; err != nil || passes < 6 || passes > 21 {
			t.Errorf("%d passes in 10 minutes, %v; want one each 30 to 90 seconds, and no error", passes, err)
		}
	})
}

func TestRun_InvalidOptions_AreRefused(t *testing.T) {
	st := memstore.New(nil)
	for name, run := range map[string]func(ctx context.Context) error{
		"a retention of 1 ns": func(ctx context.Context) error { return sweep.Run(ctx, st, &sweep.Options{Retention: 1}) },
		"a negative batch":    func(ctx context.Context) error { return sweep.Run(ctx, st, &sweep.Options{Batch: -1}) },
		"no store":            func(ctx context.Context) error { return sweep.Run(ctx, nil, nil) },
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		if err := run(ctx); !errors.Is(err, semel.ErrInvalid) {
			t.Errorf("%s: got error %v, want ErrInvalid", name, err)
		}
		cancel()
	}
}

func TestSweep_Recovers_KeepsFormerOwner(t *testing.T) {
	st, advance := newClockedStore()
	for key, p := range map[string]store.Proposal{"released": {}, "parked": {Policy: store.Park}} {
		p.Lease = time.Minute
		crash(t, st, key, p)
	}
	advance(time.Minute)
	if _, err := sweep.Once(t.Context(), st, nil); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"released", "parked"} {
		_, r := stateOf(t, st, key)
		if len(r.FormerOwners) != 1 || r.FormerOwners[0].Holder != "dead/1" || r.FormerOwners[0].End() != "lease expired, then "+key {
			t.Errorf("%s: former owners %+v", key, r.FormerOwners)
		}
	}
}
