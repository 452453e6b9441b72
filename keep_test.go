package semel_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/driver"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/memstore"
)

// Rule 10.
func TestAResultTooLargeToKeepLeavesATombstone(t *testing.T) {
	g := guard(t, memstore.New(nil), &semel.Options{MaxOutcome: 10})
	big := strings.Repeat("x", 11)
	res, err := g.Run(t.Context(), ann("k"), func(context.Context, *semel.Execution) (store.Outcome, error) {
		return store.Outcome{Code: 201, Header: []store.Header{{Name: "Location", Value: "/1"}}, Body: []byte(big)}, nil
	})
	wantBody(t, res, err, big, false)
	res, err = g.Run(t.Context(), ann("k"), never(t))
	wantErr(t, err, semel.ErrNotKept)
	if !res.Replayed || res.Code != 201 || !res.Gone || res.Body != nil {
		t.Errorf("the tombstone is %+v", res)
	}
	res, err = g.Run(t.Context(), ann("fits"), answer(big[:10]))
	wantBody(t, res, err, big[:10], false)
	res, err = g.Run(t.Context(), ann("fits"), never(t))
	wantBody(t, res, err, big[:10], true)
}

func TestAFailureTooLargeToKeepIsAFailureStill(t *testing.T) {
	g := guard(t, memstore.New(nil), &semel.Options{MaxOutcome: 10})
	_, _ = g.Run(t.Context(), ann("k"), fail(&semel.Failure{Message: "much longer than ten bytes"}))
	_, err := g.Run(t.Context(), ann("k"), never(t))
	if f, ok := errors.AsType[*semel.Failure](err); !ok || f.Code != "failure_not_kept" {
		t.Errorf("got %v", err)
	}
}

// Rule 7: retention counts from completion, and is apart from the lease.
func TestRetentionCountsFromCompletion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := guard(t, memstore.New(nil), &semel.Options{Retention: time.Hour})
		_, err := g.Run(t.Context(), ann("k"), func(context.Context, *semel.Execution) (store.Outcome, error) {
			time.Sleep(3 * time.Hour)
			return store.Outcome{Body: []byte("one")}, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour - time.Microsecond)
		res, err := g.Run(t.Context(), ann("k"), never(t))
		wantBody(t, res, err, "one", true)
		time.Sleep(time.Microsecond)
		res, err = g.Run(t.Context(), ann("k"), answer("two"))
		wantBody(t, res, err, "two", false)
		if r := record(t, g, "k"); r.Attempt != 1 || !r.Created.After(time.Now().Add(-time.Second)) {
			t.Errorf("a key that begins anew has attempt %d, created %v", r.Attempt, r.Created)
		}
	})
}

// Rule 8: rerun mode leaves the kept outcome alone and never runs two at once.
func TestRerunRunsAgainButNeverTwoAtOnce(t *testing.T) {
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
			t.Errorf("the kept outcome is %q", kept.Outcome.Body)
		}
		res, err := guard(t, st, nil).Run(t.Context(), ann("k"), never(t))
		wantBody(t, res, err, "first", true)
	})
}

func TestCompleteStoresBeforeTheHandlerReturns(t *testing.T) {
	g := guard(t, memstore.New(nil), nil)
	_, err := g.Run(t.Context(), ann("k"), func(ctx context.Context, x *semel.Execution) (store.Outcome, error) {
		if driver.Completed(x) {
			t.Error("completed before Complete")
		}
		if err := driver.Complete(ctx, x, store.Outcome{Code: 200, Gone: true}); err != nil || !driver.Completed(x) {
			t.Error(err)
		}
		if err := driver.Complete(ctx, x, store.Outcome{}); err == nil {
			t.Error("Complete worked twice")
		}
		_, err := g.Run(ctx, ann("k"), never(t))
		wantErr(t, err, semel.ErrNotKept)
		return store.Outcome{Body: []byte("ignored")}, errBoom
	})
	wantErr(t, err, errBoom)
	wantState(t, g, "k", store.Completed)
}

func TestCompleteAfterATakeOverIsLeaseLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := memstore.New(nil)
		frozen := &hooks{Store: st, renew: func(context.Context, []store.Lease, time.Duration) ([]error, error) { return nil, errBoom }}
		_, err := guard(t, frozen, nil).Run(t.Context(), ann("k"), func(ctx context.Context, x *semel.Execution) (store.Outcome, error) {
			time.Sleep(time.Minute)
			_, err := guard(t, st, nil).Run(t.Context(), ann("k"), answer("second"))
			if err != nil {
				t.Error(err)
			}
			err = driver.Complete(ctx, x, store.Outcome{})
			wantErr(t, err, semel.ErrLeaseLost)
			return store.Outcome{}, err
		})
		wantErr(t, err, semel.ErrLeaseLost)
	})
}

func TestAPanicAfterCompleteLeavesTheOutcome(t *testing.T) {
	g := guard(t, memstore.New(nil), &semel.Options{OnDoubt: semel.Park})
	func() {
		defer func() { _ = recover() }()
		_, _ = g.Run(t.Context(), ann("k"), func(ctx context.Context, x *semel.Execution) (store.Outcome, error) {
			if err := driver.Complete(ctx, x, store.Outcome{Body: []byte("sent")}); err != nil {
				t.Error(err)
			}
			panic("later")
		})
	}()
	res, err := g.Run(t.Context(), ann("k"), never(t))
	wantBody(t, res, err, "sent", true)
}
