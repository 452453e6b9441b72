package semel_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/driver"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/encrypted"
	"github.com/semel-go/semel/store/memstore"
)

// Rule 11: a call runs without a record only if the store does not answer.
func TestUnprotected_NoOutage_DoesNotRun(t *testing.T) {
	st, _ := newClockedStore()
	g := guard(t, st, &semel.Options{UnprotectedOnOutage: true})
	crash(t, st, semel.Retry, "k", time.Minute)
	_, err := g.Run(t.Context(), ann("k"), never(t))
	wantErr(t, err, semel.ErrInProgress)
	_, err = g.Run(t.Context(), paying("k", semel.JSON(1)), never(t))
	wantErr(t, err, semel.ErrUnverifiable)
	ctx, leave := context.WithCancel(t.Context())
	leave()
	_, err = g.Run(ctx, ann("new"), never(t))
	wantErr(t, err, context.Canceled)

	unreadable := &hooks{Store: st, claim: func(context.Context, store.Proposal) (store.Found, error) { return store.Found{}, store.ErrCorrupt }}
	_, err = guard(t, unreadable, &semel.Options{UnprotectedOnOutage: true}).Run(t.Context(), ann("k"), never(t))
	wantErr(t, err, store.ErrCorrupt)
	if errors.Is(err, semel.ErrUnavailable) {
		t.Errorf("a record that cannot be read counts as an outage: %v", err)
	}
}

// The store has answered, but not about the record, which another transaction may hold.
func TestUnprotected_StoreRefusesOnlyThisCall_DoesNotRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &hooks{Store: memstore.New(nil), claim: func(context.Context, store.Proposal) (store.Found, error) {
			return store.Found{}, store.WithExtent(errBoom, store.ExtentCall)
		}}
		var seen events
		_, err := guard(t, h, &semel.Options{UnprotectedOnOutage: true, Observe: seen.observe}).Run(t.Context(), ann("k"), never(t))
		if n := seen.count(semel.EventUnprotected); n != 0 || !errors.Is(err, semel.ErrUnavailable) {
			t.Errorf("%d events EventUnprotected, error %v", n, err)
		}
		time.Sleep(time.Minute)
	})
}

func TestUnprotected_StoreDown_RunsAndReports(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var seen events
		down := &hooks{Store: memstore.New(nil), claim: func(context.Context, store.Proposal) (store.Found, error) { return store.Found{}, errBoom }}
		g := guard(t, down, &semel.Options{UnprotectedOnOutage: true, Observe: seen.observe})
		for range 2 {
			res, err := g.Run(t.Context(), ann("k"), func(ctx context.Context, x *semel.Execution) (store.Outcome, error) {
				if x.Fence() != 0 || driver.Complete(ctx, x, store.Outcome{}) == nil {
					t.Error("a run without a record has a fence, or Complete succeeds")
				}
				return store.Outcome{Body: []byte("bare")}, nil
			})
			wantBody(t, res, err, "bare", false)
		}
		if n := seen.count(semel.EventUnprotected); n != 2 {
			t.Errorf("%d events EventUnprotected of 2 runs", n)
		}
		time.Sleep(11 * time.Second)
	})
}

func TestUnprotected_LeaseExpiredUnderPark_DoesNotRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := memstore.New(nil)
		crash(t, st, semel.Park, "k", time.Second)
		time.Sleep(time.Second)
		h := &hooks{Store: st, swap: func(context.Context, store.Seen, store.Proposal) (store.Found, error) { return store.Found{}, errBoom }}
		g := guard(t, h, &semel.Options{UnprotectedOnOutage: true})
		_, err := g.Run(t.Context(), ann("k"), never(t))
		wantErr(t, err, semel.ErrUnavailable)
		time.Sleep(time.Minute)
	})
}

func TestUnprotected_RunInProgress_DoesNotRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := memstore.New(nil)
		crash(t, st, semel.Retry, "k", time.Minute) // the lease holds
		h := &hooks{Store: st, get: func(context.Context, store.Key) (store.Found, error) { return store.Found{}, errBoom }}
		g := guard(t, h, &semel.Options{UnprotectedOnOutage: true})
		_, err := g.Run(t.Context(), waiting("k", 5*time.Second), never(t))
		wantErr(t, err, semel.ErrUnavailable)
		time.Sleep(time.Minute)
	})
}

// The store sends the record with an error, because it cannot be confirmed, and then does not
// answer the repeats of the request. There is a record all the same.
func TestUnprotected_RecordSentThenNoAnswer_DoesNotRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := memstore.New(nil)
		var asked atomic.Int64 // requests are sent in the background, too
		unconfirmed := func(f store.Found, err error) (store.Found, error) {
			if n := asked.Add(1); err != nil || n > 1 {
				return store.Found{}, errBoom
			}
			f.Record.Outcome = store.Outcome{}
			return f, errBoom
		}
		h := &hooks{Store: st,
			claim: func(ctx context.Context, p store.Proposal) (store.Found, error) { return unconfirmed(st.Claim(ctx, p)) },
			get:   func(ctx context.Context, k store.Key) (store.Found, error) { return unconfirmed(st.Get(ctx, k)) },
		}
		again := func(context.Context, *semel.Execution) (store.Outcome, error) {
			t.Error("the call runs without its record")
			return store.Outcome{}, nil
		}
		healthy, g := guard(t, st, nil), guard(t, h, &semel.Options{UnprotectedOnOutage: true})
		res, err := healthy.Run(t.Context(), ann("k"), answer("done"))
		wantBody(t, res, err, "done", false)
		_, err = g.Run(t.Context(), ann("k"), again)
		wantErr(t, err, semel.ErrUnavailable)

		ticket, err := healthy.Reserve(t.Context(), ann("reserved"))
		wantErr(t, err, nil)
		call, err := g.Redeem(ticket.Token)
		wantErr(t, err, nil)
		asked.Store(0)
		_, err = g.Run(t.Context(), call, again)
		wantErr(t, err, semel.ErrUnavailable)
		time.Sleep(time.Minute)
	})
}

// The store says something about this call only, and then does not answer the repeats.
func TestUnprotected_RefusedAloneThenNoAnswer_DoesNotRun(t *testing.T) {
	for _, refused := range []error{store.WithExtent(errBoom, store.ExtentCall), fmt.Errorf("boom: %w", encrypted.ErrUnknownKey)} {
		synctest.Test(t, func(t *testing.T) {
			var asked atomic.Int64
			h := &hooks{Store: memstore.New(nil), claim: func(context.Context, store.Proposal) (store.Found, error) {
				if asked.Add(1) > 1 {
					return store.Found{}, errBoom
				}
				return store.Found{}, refused
			}}
			_, err := guard(t, h, &semel.Options{UnprotectedOnOutage: true}).Run(t.Context(), ann("k"), never(t))
			wantErr(t, err, semel.ErrUnavailable)
			if n := asked.Load(); n < 2 {
				t.Errorf("the store was asked %d times", n)
			}
			time.Sleep(time.Minute)
		})
	}
}

// The store is busy, perhaps with a call of the same key, and answers nothing after that.
func TestUnprotected_StoreBusy_DoesNotRun(t *testing.T) {
	for name, later := range map[string]error{"busy all the time": fmt.Errorf("locked: %w", store.ErrBusy), "then no answer": errBoom} {
		synctest.Test(t, func(t *testing.T) {
			var asked atomic.Int64
			h := &hooks{Store: memstore.New(nil), claim: func(context.Context, store.Proposal) (store.Found, error) {
				if asked.Add(1) > 1 {
					return store.Found{}, later
				}
				return store.Found{}, fmt.Errorf("locked: %w", store.ErrBusy)
			}}
			var seen events
			_, err := guard(t, h, &semel.Options{UnprotectedOnOutage: true, Observe: seen.observe}).Run(t.Context(), ann("k"), never(t))
			if n := seen.count(semel.EventUnprotected); n != 0 || !errors.Is(err, semel.ErrUnavailable) {
				t.Errorf("%s: %d events EventUnprotected, error %v", name, n, err)
			}
			time.Sleep(time.Minute)
		})
	}
}

// A server that became read-only refuses each claim, and does not send the record with the error.
func TestUnprotected_StoreRefusesChanges_OnlyNewCallRuns(t *testing.T) {
	st := memstore.New(nil)
	if _, err := guard(t, st, nil).Run(t.Context(), ann("k"), answer("first")); err != nil {
		t.Fatal(err)
	}
	for _, claim := range []func(context.Context, store.Proposal) (store.Found, error){
		func(context.Context, store.Proposal) (store.Found, error) { return store.Found{}, errBoom },
		func(ctx context.Context, _ store.Proposal) (store.Found, error) { // writes hang
			<-ctx.Done()
			return store.Found{}, ctx.Err()
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			g := guard(t, &hooks{Store: st, claim: claim}, &semel.Options{UnprotectedOnOutage: true})
			_, err := g.Run(t.Context(), ann("k"), never(t))
			wantErr(t, err, semel.ErrUnavailable)
			res, err := g.Run(t.Context(), ann("new"), answer("bare"))
			wantBody(t, res, err, "bare", false)
			time.Sleep(time.Minute)
		})
	}
}

// The store has made the claim, and fails with the record of it: nobody runs, so that the claim
// is given back.
func TestClaim_OwnRecordComesWithError_IsGivenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := memstore.New(nil)
		var works atomic.Bool
		h := &hooks{Store: st, claim: func(ctx context.Context, p store.Proposal) (store.Found, error) {
			f, err := st.Claim(ctx, p)
			if works.Load() {
				return f, err
			}
			f.Won = false
			return f, errors.Join(err, errBoom)
		}}
		_, err := guard(t, h, nil).Run(t.Context(), ann("k"), never(t))
		wantErr(t, err, semel.ErrUnavailable)
		works.Store(true)
		time.Sleep(20 * time.Second) // less than the lease
		res, err := guard(t, st, nil).Run(t.Context(), ann("k"), answer("next"))
		wantBody(t, res, err, "next", false)
	})
}

func TestUnprotected_RecordCorrupt_DoesNotRun(t *testing.T) {
	corrupt := &hooks{Store: memstore.New(nil), claim: func(_ context.Context, p store.Proposal) (store.Found, error) {
		return store.Found{Record: store.Record{Key: p.Key, State: 99}, Now: time.Now()}, nil
	}}
	g := guard(t, corrupt, &semel.Options{UnprotectedOnOutage: true})
	_, err := g.Run(t.Context(), ann("k"), never(t))
	wantErr(t, err, store.ErrCorrupt)
}

func TestUnprotected_StoreHangs_Runs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hang := &hooks{Store: memstore.New(nil), claim: func(ctx context.Context, _ store.Proposal) (store.Found, error) {
			<-ctx.Done()
			return store.Found{}, ctx.Err()
		}}
		g := guard(t, hang, &semel.Options{UnprotectedOnOutage: true})
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		res, err := g.Run(ctx, ann("k"), answer("bare"))
		time.Sleep(time.Minute)
		wantBody(t, res, err, "bare", false)
	})
}
