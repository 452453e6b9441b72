package semel_test

import (
	"context"
	"errors"
	"math"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/memstore"
)

// Rule 13: under Park, a key without attempts left is unknown. It has not failed.
func TestMaxAttempts_UnderPark_ParksKey(t *testing.T) {
	st := memstore.New(nil)
	g := parking(t, st, reconcilerOf(semel.DidNotHappen(), nil))
	_, err := g.Run(t.Context(), ann("k"), fail(errBoom))
	wantErr(t, err, semel.ErrParked)
	if n, err := g.Reconcile(t.Context(), pay, 1); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	if r := wantState(t, g, "k", store.Released); r.Attempt != 1 {
		t.Fatalf("attempt %d, want 1", r.Attempt)
	}
	_, err = guard(t, st, &semel.Options{OnDoubt: semel.Park, MaxAttempts: 1}).Run(t.Context(), ann("k"), never(t))
	wantErr(t, err, semel.ErrParked)
	wantState(t, g, "k", store.Unknown)
}

func TestBackoff_Huge_IsCapped(t *testing.T) {
	g := guard(t, memstore.New(nil), &semel.Options{Backoff: func(int) time.Duration { return math.MaxInt64 }})
	_, _ = g.Run(t.Context(), ann("k"), fail(errBoom))
	r := record(t, g, "k")
	if time.Until(r.Until) > 101*365*24*time.Hour {
		t.Errorf("the next attempt may start at %v; no pause exceeds the retention", r.Until)
	}
}

// A backoff often grows until it is as long as the retention. The record must still be
// there when the next attempt is due.
func TestBackoff_AsLongAsRetention_AttemptsAndStepsAreKept(t *testing.T) {
	st, advance := newClockedStore()
	g := guard(t, st, &semel.Options{Retention: time.Hour, MaxAttempts: 3, Backoff: func(n int) time.Duration { return time.Hour << n }})
	charges, attempts := 0, 0
	for range 5 { // a client that repeats until it has an answer
		_ = semel.Once(t.Context(), g, ann("k"), func(ctx context.Context, x *semel.Execution) error {
			attempts++
			return errors.Join(once(ctx, g, x, "charge", &charges, nil), errBoom)
		})
		advance(30 * time.Minute)
		sweepAll(t, st)
	}
	if charges != 1 || attempts != 3 {
		t.Errorf("the recorded step ran %d times, want once; the handler ran %d times, want 3", charges, attempts)
	}
	wantState(t, g, "k", store.Failed)
}

// Rule 13: until the backoff is over, duplicates fail with ErrInProgress.
func TestBackoff_AttemptFailed_NextCallIsInProgress(t *testing.T) {
	st, advance := newClockedStore()
	g := guard(t, st, &semel.Options{Backoff: func(n int) time.Duration { return time.Duration(n) * time.Minute }})
	for n := 1; n <= 2; n++ {
		_, err := g.Run(t.Context(), ann("k"), fail(errBoom))
		wantErr(t, err, errBoom)
		_, err = g.Run(t.Context(), ann("k"), never(t))
		wantErr(t, err, semel.ErrInProgress)
		if e, _ := errors.AsType[*semel.Error](err); e.RetryAfter != time.Duration(n)*time.Minute {
			t.Errorf("after attempt %d: RetryAfter is %v, want %d min", n, e.RetryAfter, n)
		}
		advance(time.Duration(n) * time.Minute)
	}
	res, err := g.Run(t.Context(), ann("k"), answer("third"))
	wantBody(t, res, err, "third", false)
}

// Rule 13: after MaxAttempts a key ends as failed under Retry, and as unknown under
// Park.
func TestMaxAttempts_ErrorsAndCrashes_Count(t *testing.T) {
	st, advance := newClockedStore()
	g := guard(t, st, &semel.Options{MaxAttempts: 2})
	_, err := g.Run(t.Context(), ann("errors"), fail(errBoom))
	wantErr(t, err, errBoom)
	_, err = g.Run(t.Context(), ann("errors"), fail(errBoom))
	exhausted := &semel.Failure{Code: semel.CodeAttemptsExhausted}
	wantErr(t, err, exhausted)
	_, err = g.Run(t.Context(), ann("errors"), never(t))
	wantErr(t, err, exhausted)
	wantState(t, g, "errors", store.Failed)

	crash(t, st, semel.Retry, "crashes", time.Second)
	advance(time.Second)
	_, err = g.Run(t.Context(), ann("crashes"), fail(semel.NoEffect(errBoom))) // this attempt does not count
	wantErr(t, err, errBoom)
	one := guard(t, st, &semel.Options{MaxAttempts: 1})
	_, err = one.Run(t.Context(), ann("crashes"), never(t))
	wantErr(t, err, exhausted)

	park := guard(t, st, &semel.Options{OnDoubt: semel.Park, MaxAttempts: 1})
	_, err = g.Run(t.Context(), ann("parked"), fail(errBoom))
	wantErr(t, err, errBoom)
	_, err = park.Run(t.Context(), ann("parked"), never(t))
	wantErr(t, err, semel.ErrParked)
	wantState(t, g, "parked", store.Unknown)
}
