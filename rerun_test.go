package semel_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/bridge"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/memstore"
)

// Rule 8: a rerun does not change the kept outcome, and two reruns never run at the
// same time.
func TestRerun_CompletedCall_RunsAgainOneAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := memstore.New(nil)
		g := guard(t, st, &semel.Options{Rerun: true})
		_, err := g.Run(t.Context(), ann("k"), answer("first"))
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			res, err := g.Run(t.Context(), ann("k"), func(ctx context.Context, _ *semel.Execution) (store.Outcome, error) {
				_, err := g.Run(ctx, ann("k"), never(t))
				wantErr(t, err, semel.ErrInProgress)
				return store.Outcome{Body: []byte("fresh")}, nil
			})
			wantBody(t, res, err, "fresh", false)
		}
		_, err = g.Run(t.Context(), ann("k"), fail(errBoom))
		wantErr(t, err, errBoom)
		kept := wantState(t, g, "k", store.Completed)
		if string(kept.Outcome.Body) != "first" {
			t.Errorf("the kept outcome is %q, want \"first\"", kept.Outcome.Body)
		}
		res, err := guard(t, st, nil).Run(t.Context(), ann("k"), never(t))
		wantBody(t, res, err, "first", true)
	})
}

// Messages that a rerun writes are found by the call's own record.
func TestRerun_RunningCall_IsTheCall(t *testing.T) {
	g := guard(t, memstore.New(nil), &semel.Options{Rerun: true})
	for range 2 {
		_, err := g.Run(t.Context(), ann("k"), func(ctx context.Context, _ *semel.Execution) (store.Outcome, error) {
			if k, ok := bridge.RunningCall(ctx); !ok || k != g.StoreKey(ann("k")) {
				t.Errorf("the running call is %v", k)
			}
			return store.Outcome{}, nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// The rerun has the lease of a second key, so that a new life of the first one does not
// wait for it.
func TestRerun_OutcomeExpiresDuringRerun_NextCallRunsBesideIt(t *testing.T) {
	st, advance := newClockedStore()
	g := guard(t, st, &semel.Options{Rerun: true, Retention: time.Hour})
	_, err := g.Run(t.Context(), ann("k"), answer("first"))
	if err != nil {
		t.Fatal(err)
	}
	res, err := g.Run(t.Context(), ann("k"), func(ctx context.Context, _ *semel.Execution) (store.Outcome, error) {
		advance(time.Hour)
		res, err := g.Run(ctx, ann("k"), answer("second life"))
		wantBody(t, res, err, "second life", false)
		return store.Outcome{Body: []byte("fresh")}, nil
	})
	wantBody(t, res, err, "fresh", false)
	if kept := wantState(t, g, "k", store.Completed); string(kept.Outcome.Body) != "second life" {
		t.Errorf("the kept outcome is %q", kept.Outcome.Body)
	}
}

func TestRerun_RedeemedCall_Runs(t *testing.T) {
	g := guard(t, memstore.New(nil), &semel.Options{Rerun: true})
	ticket := reserve(t, g, ann("k"))
	for i := range 2 {
		if _, err := g.Run(t.Context(), redeem(t, g, ticket.Token), answer("x")); err != nil {
			t.Errorf("delivery %d: %v", i, err)
		}
	}
}

func TestRerun_CrashedReads_DoNotExhaustKey(t *testing.T) {
	st, advance := newClockedStore()
	g := guard(t, st, &semel.Options{Rerun: true, MaxAttempts: 1})
	_, _ = g.Run(t.Context(), ann("k"), answer("first"))
	_, err := st.Claim(t.Context(), store.Proposal{Key: store.Key{Operation: "pay##rerun", Tenant: "ann", Value: "k"}, State: store.Processing, Owner: store.Owner{1}, Attempt: 1, Lease: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	advance(time.Minute)
	if _, err := g.Run(t.Context(), ann("k"), answer("fresh")); err != nil {
		t.Errorf("after a crashed rerun: %v", err)
	}
}

func TestRerun_WithPark_IsRefused(t *testing.T) {
	_, err := semel.New(memstore.New(nil), &semel.Options{Rerun: true, OnDoubt: semel.Park})
	if err == nil {
		t.Error("Rerun with Park: want an error")
	}
}
