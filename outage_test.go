package semel_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/memstore"
)

// Rule 6: the deadline counts from the time before the claim was sent.
func TestClaim_AnswerLaterThanLease_IsGivenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := memstore.New(nil)
		slow := &hooks{Store: st}
		slow.claim = func(ctx context.Context, p store.Proposal) (store.Found, error) {
			f, err := st.Claim(ctx, p)
			time.Sleep(28 * time.Second)
			return f, err
		}
		g := guard(t, slow, nil)
		_, err := g.Run(t.Context(), ann("k"), never(t))
		wantErr(t, err, semel.ErrUnavailable)
		synctest.Wait()
		if r := wantState(t, g, "k", store.Released); r.Attempt != 0 {
			t.Errorf("attempt %d, want 0, because no handler has started", r.Attempt)
		}
	})
}

// Rule 2: an owner wins its own claim when the claim is sent again.
func TestClaim_ReplyLost_IsWon(t *testing.T) {
	for _, policy := range []semel.Policy{semel.Retry, semel.Park} {
		synctest.Test(t, func(t *testing.T) {
			st := memstore.New(nil)
			sent := 0
			lossy := &hooks{Store: st}
			lossy.claim = func(ctx context.Context, p store.Proposal) (store.Found, error) {
				f, err := st.Claim(ctx, p)
				if sent++; sent == 1 {
					return store.Found{}, errBoom // the claim was applied, but its reply is lost
				}
				return f, err
			}
			g := guard(t, lossy, &semel.Options{OnDoubt: policy})
			res, err := g.Run(t.Context(), ann("k"), answer("mine"))
			wantBody(t, res, err, "mine", false)
			if r := record(t, g, "k"); r.Attempt != 1 || sent != 2 {
				t.Errorf("attempt %d after %d requests, want 1 after 2", r.Attempt, sent)
			}
		})
	}
}

// Rule 11: an error of the store does not count as an absent record.
func TestRun_StoreDown_RunsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var seen events
		down := &hooks{Store: memstore.New(nil), claim: func(context.Context, store.Proposal) (store.Found, error) { return store.Found{}, errBoom }}
		_, err := guard(t, down, &semel.Options{Observe: seen.observe}).Run(t.Context(), ann("k"), never(t))
		wantErr(t, err, semel.ErrUnavailable)
		wantErr(t, err, errBoom)
		if seen.count(semel.EventRefused) != 1 {
			t.Error("no event EventRefused")
		}
		time.Sleep(11 * time.Second) // until the Guard has stopped sending the claim
	})
}

func TestRun_RecordCorrupt_RunsNothing(t *testing.T) {
	st := memstore.New(nil)
	corrupt := &hooks{Store: st, claim: func(_ context.Context, p store.Proposal) (store.Found, error) {
		return store.Found{Record: store.Record{Key: p.Key, State: 99}, Now: time.Now()}, nil
	}}
	_, err := guard(t, corrupt, nil).Run(t.Context(), ann("k"), never(t))
	wantErr(t, err, store.ErrCorrupt)
}

// Rule 13: if the reply to a claim is lost, the Guard releases the claim in the
// background. The attempt does not count.
func TestClaim_NoReply_IsGivenBack(t *testing.T) {
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
			t.Errorf("attempt %d, want 0, because no handler has started", r.Attempt)
		}
		if seen.count(semel.EventReleased) != 1 {
			t.Error("want one event EventReleased")
		}
		res, err := g.Run(t.Context(), ann("k"), answer("now"))
		wantBody(t, res, err, "now", false)
	})
}

func TestClaim_CallerLeft_IsGivenBack(t *testing.T) {
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
			t.Errorf("attempt %d, want 0, because no handler has started", r.Attempt)
		}
	})
}

func TestRun_CallerLeftBefore_ClaimsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := memstore.New(nil)
		ctx, leave := context.WithCancel(t.Context())
		leave()
		_, err := guard(t, st, nil).Run(ctx, ann("k"), never(t))
		wantErr(t, err, context.Canceled)
		synctest.Wait()
		if _, err := st.Get(t.Context(), store.Key{Operation: "pay", Tenant: "ann", Value: "k"}); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("got error %v, want ErrNotFound, because nothing was sent", err)
		}
	})
}

func TestRun_RecordOfAnotherKey_IsNotReplayed(t *testing.T) {
	st := memstore.New(nil)
	confused := &hooks{Store: st}
	confused.claim = func(ctx context.Context, p store.Proposal) (store.Found, error) {
		p.Key.Tenant = "bob"
		return st.Claim(ctx, p) // a desynchronised connection returns the answer of another request
	}
	_, err := guard(t, st, nil).Run(t.Context(), semel.Call{Operation: pay, Tenant: "bob", Key: "k", Payload: semel.NoPayload()}, answer("bob's"))
	if err != nil {
		t.Fatal(err)
	}
	res, err := guard(t, confused, nil).Run(t.Context(), ann("k"), never(t))
	if err == nil {
		t.Errorf("the call of ann got %q, the result of bob", res.Body)
	}
}
