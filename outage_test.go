package semel_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/driver"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/memstore"
)

// Rule 2: "the owner is me" is a win.
func TestACallNeverLosesToItsOwnLostReply(t *testing.T) {
	for _, policy := range []semel.Policy{semel.Retry, semel.Park} {
		synctest.Test(t, func(t *testing.T) {
			st := memstore.New(nil)
			sent := 0
			lossy := &hooks{Store: st}
			lossy.claim = func(ctx context.Context, p store.Proposal) (store.Found, error) {
				f, err := st.Claim(ctx, p)
				if sent++; sent == 1 {
					return store.Found{}, errBoom // applied, but the reply was lost
				}
				return f, err
			}
			g := guard(t, lossy, &semel.Options{OnDoubt: policy})
			res, err := g.Run(t.Context(), ann("k"), answer("mine"))
			wantBody(t, res, err, "mine", false)
			if r := record(t, g, "k"); r.Attempt != 1 || sent != 2 {
				t.Errorf("attempt %d after %d sendings", r.Attempt, sent)
			}
		})
	}
}

func TestATakeOverNeverLosesToItsOwnLostReply(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := memstore.New(nil)
		crash(t, st, semel.Retry, "k", time.Second)
		time.Sleep(time.Second)
		sent := 0
		lossy := &hooks{Store: st}
		lossy.swap = func(ctx context.Context, seen store.Seen, p store.Proposal) (store.Found, error) {
			f, err := st.Swap(ctx, seen, p)
			if sent++; sent == 1 {
				return store.Found{}, errBoom
			}
			return f, err
		}
		res, err := guard(t, lossy, nil).Run(t.Context(), ann("k"), answer("taken"))
		wantBody(t, res, err, "taken", false)
	})
}

// Rule 11: a store error never reads as "absent".
func TestAStoreThatDoesNotAnswerRunsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var seen events
		down := &hooks{Store: memstore.New(nil), claim: func(context.Context, store.Proposal) (store.Found, error) { return store.Found{}, errBoom }}
		_, err := guard(t, down, &semel.Options{Observe: seen.observe}).Run(t.Context(), ann("k"), never(t))
		wantErr(t, err, semel.ErrUnavailable)
		wantErr(t, err, errBoom)
		if seen.count(semel.EventRefused) != 1 {
			t.Error("no event tells of the outage")
		}
		time.Sleep(11 * time.Second) // until the background has given up, too
	})
}

func TestACorruptRecordRunsNothing(t *testing.T) {
	st := memstore.New(nil)
	mad := &hooks{Store: st, claim: func(_ context.Context, p store.Proposal) (store.Found, error) {
		return store.Found{Record: store.Record{Key: p.Key, State: 99}, Now: time.Now()}, nil
	}}
	_, err := guard(t, mad, nil).Run(t.Context(), ann("k"), never(t))
	wantErr(t, err, store.ErrCorrupt)
}

func TestUnprotectedOnOutageRunsWithoutARecordAndSaysSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var seen events
		down := &hooks{Store: memstore.New(nil), claim: func(context.Context, store.Proposal) (store.Found, error) { return store.Found{}, errBoom }}
		g := guard(t, down, &semel.Options{UnprotectedOnOutage: true, Observe: seen.observe})
		for range 2 {
			res, err := g.Run(t.Context(), ann("k"), func(ctx context.Context, x *semel.Execution) (store.Outcome, error) {
				if x.Fence() != 0 || driver.Complete(ctx, x, store.Outcome{}) == nil {
					t.Error("a run without a record has a fence or can complete")
				}
				return store.Outcome{Body: []byte("bare")}, nil
			})
			wantBody(t, res, err, "bare", false)
		}
		if n := seen.count(semel.EventUnprotected); n != 2 {
			t.Errorf("%d events of 2 unprotected runs", n)
		}
		time.Sleep(11 * time.Second)
	})
}

// Rule 13: a claim whose reply never came is released in the background and
// gives its attempt back.
func TestAClaimWhoseReplyNeverCameIsGivenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := memstore.New(nil)
		var cut atomic.Bool
		cut.Store(true)
		h := &hooks{Store: st}
		h.claim = func(ctx context.Context, p store.Proposal) (store.Found, error) {
			f, err := st.Claim(ctx, p)
			if cut.Load() {
				return store.Found{}, errBoom
			}
			return f, err
		}
		var seen events
		g := guard(t, h, &semel.Options{Observe: seen.observe})
		_, err := g.Run(t.Context(), ann("k"), never(t))
		wantErr(t, err, semel.ErrUnavailable)
		wantState(t, g, "k", store.Processing)
		cut.Store(false)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if r := wantState(t, g, "k", store.Released); r.Attempt != 0 {
			t.Errorf("attempt %d; no handler has started", r.Attempt)
		}
		if seen.count(semel.EventReleased) != 1 {
			t.Error("no event")
		}
		res, err := g.Run(t.Context(), ann("k"), answer("now"))
		wantBody(t, res, err, "now", false)
	})
}

func TestAClaimWhoseCallerLeftIsGivenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := memstore.New(nil)
		ctx, leave := context.WithCancel(t.Context())
		h := &hooks{Store: st}
		h.claim = func(c context.Context, p store.Proposal) (store.Found, error) {
			f, err := st.Claim(c, p)
			leave()
			return f, err
		}
		g := guard(t, h, &semel.Options{OnDoubt: semel.Park})
		_, err := g.Run(ctx, ann("k"), never(t))
		wantErr(t, err, context.Canceled)
		synctest.Wait()
		if r := wantState(t, g, "k", store.Released); r.Attempt != 0 {
			t.Errorf("attempt %d; no handler has started", r.Attempt)
		}
	})
}

func TestACallerWhoLeftBeforeLeavesNoTrace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := memstore.New(nil)
		ctx, leave := context.WithCancel(t.Context())
		leave()
		_, err := guard(t, st, nil).Run(ctx, ann("k"), never(t))
		wantErr(t, err, context.Canceled)
		synctest.Wait()
		if _, err := st.Get(t.Context(), store.Key{Operation: "pay", Tenant: "ann", Value: "k"}); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("a record was made: %v", err)
		}
	})
}

// Rule 9: completion does not end with the caller.
func TestAClientThatHangsUpDoesNotUndoTheCompletion(t *testing.T) {
	g := guard(t, memstore.New(nil), nil)
	ctx, hangUp := context.WithCancel(t.Context())
	res, err := g.Run(ctx, ann("k"), func(context.Context, *semel.Execution) (store.Outcome, error) {
		hangUp()
		return store.Outcome{Body: []byte("done")}, nil
	})
	wantBody(t, res, err, "done", false)
	res, err = g.Run(t.Context(), ann("k"), never(t))
	wantBody(t, res, err, "done", true)
}

func TestASettlementIsSentAgainUntilItIsAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := memstore.New(nil)
		n := 0
		h := &hooks{Store: st}
		h.settle = func(ctx context.Context, l store.Lease, s store.Settlement) error {
			switch n++; n {
			case 1:
				return errBoom // not applied
			case 2:
				if err := st.Settle(ctx, l, s); err != nil {
					t.Error(err)
				}
				return errBoom // applied, but the reply was lost
			}
			return st.Settle(ctx, l, s)
		}
		g := guard(t, h, nil)
		res, err := g.Run(t.Context(), ann("k"), answer("kept"))
		wantBody(t, res, err, "kept", false)
		if n != 3 {
			t.Errorf("%d sendings", n)
		}
	})
}

// Rule 9: a handler that finished but whose outcome can't be stored gives the
// real answer plus ErrOutcomeNotStored, and its lease holds meanwhile.
func TestAnOutcomeThatCannotBeStoredReachesItsCaller(t *testing.T) {
	for policy, next := range map[semel.Policy]error{semel.Retry: nil, semel.Park: semel.ErrParked} {
		synctest.Test(t, func(t *testing.T) {
			st := memstore.New(nil)
			h := &hooks{Store: st, settle: func(context.Context, store.Lease, store.Settlement) error { return errBoom }}
			g := guard(t, h, &semel.Options{OnDoubt: policy})
			start := time.Now()
			got, err := semel.Do(t.Context(), g, ann("k"), func(context.Context, *semel.Execution) (int, error) { return 7, nil })
			wantErr(t, err, semel.ErrOutcomeNotStored)
			if got != 7 || time.Since(start) < 9*time.Second {
				t.Errorf("got %d after %v", got, time.Since(start))
			}
			_, err = g.Run(t.Context(), ann("k"), never(t))
			wantErr(t, err, semel.ErrInProgress)
			time.Sleep(30 * time.Second)
			h.settle = nil
			if _, err = g.Run(t.Context(), ann("k"), answer("again")); !errors.Is(err, next) {
				t.Errorf("%v: after the lease got %v, want %v", policy, err, next)
			}
		})
	}
}

func TestAnOutcomeTooLargeForTheStoreLeavesATombstone(t *testing.T) {
	st := memstore.New(nil)
	h := &hooks{Store: st}
	h.settle = func(ctx context.Context, l store.Lease, s store.Settlement) error {
		if len(s.Outcome.Body) > 3 {
			return store.ErrTooLarge
		}
		return st.Settle(ctx, l, s)
	}
	g := guard(t, h, nil)
	res, err := g.Run(t.Context(), ann("k"), answer("large"))
	wantBody(t, res, err, "large", false)
	_, err = g.Run(t.Context(), ann("k"), never(t))
	wantErr(t, err, semel.ErrNotKept)
}
