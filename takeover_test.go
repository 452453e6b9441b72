package semel_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/memstore"
)

// Rule 4: an owner that wakes up after a take-over cannot change the record.
func TestTakeOver_OldOwnerSettles_IsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := memstore.New(nil)
		frozen := &hooks{Store: st, renew: func(context.Context, []store.Lease, time.Duration) ([]error, error) { return nil, errBoom }}
		g1, g2 := guard(t, frozen, nil), guard(t, st, nil)
		var fence1, fence2 uint64
		_, err := g1.Run(t.Context(), ann("k"), func(ctx context.Context, x *semel.Execution) (store.Outcome, error) {
			fence1 = x.Fence()
			time.Sleep(31 * time.Second) // the handler ignores its context
			res, err := g2.Run(t.Context(), ann("k"), func(_ context.Context, x *semel.Execution) (store.Outcome, error) {
				fence2 = x.Fence()
				if x.Attempt() != 2 {
					t.Errorf("attempt %d, want 2, because the crash counts", x.Attempt())
				}
				return store.Outcome{Body: []byte("second")}, nil
			})
			wantBody(t, res, err, "second", false)
			return store.Outcome{Body: []byte("late")}, nil
		})
		wantErr(t, err, semel.ErrLeaseLost)
		if fence2 <= fence1 {
			t.Errorf("fence %d after %d, want a higher one", fence2, fence1)
		}
		res, err := g1.Run(t.Context(), ann("k"), never(t))
		wantBody(t, res, err, "second", true)
	})
}

// Rule 4: while no other process has taken over, a late owner can settle.
func TestTakeOver_LateOwnerNotReplaced_MaySettle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := &hooks{Store: memstore.New(nil), renew: func(context.Context, []store.Lease, time.Duration) ([]error, error) { return nil, errBoom }}
		g := guard(t, st, &semel.Options{OnDoubt: semel.Park})
		res, err := g.Run(t.Context(), ann("k"), func(context.Context, *semel.Execution) (store.Outcome, error) {
			time.Sleep(time.Minute)
			return store.Outcome{Body: []byte("late")}, nil
		})
		wantBody(t, res, err, "late", false)
		wantState(t, g, "k", store.Completed)
	})
}

func TestTakeOver_LeaseExpired_RunsOrParksByPolicy(t *testing.T) {
	st, advance := newClockedStore()
	var seen events
	g := guard(t, st, &semel.Options{Observe: seen.observe})
	crash(t, st, semel.Retry, "k", 30*time.Second)
	_, err := g.Run(t.Context(), ann("k"), never(t))
	wantErr(t, err, semel.ErrInProgress)
	advance(30 * time.Second)
	res, err := g.Run(t.Context(), ann("k"), answer("again"))
	wantBody(t, res, err, "again", false)
	if seen.count(semel.EventTakenOver) != 1 {
		t.Error("want one event EventTakenOver")
	}

	p := guard(t, st, &semel.Options{OnDoubt: semel.Park})
	crash(t, st, semel.Park, "p", 30*time.Second)
	advance(30 * time.Second)
	_, err = p.Run(t.Context(), ann("p"), never(t))
	wantErr(t, err, semel.ErrParked)
	wantState(t, p, "p", store.Unknown)
}

// Rule 6: the store's clock decides, even if the clock of the process is wrong.
func TestTakeOver_ProcessClockWrong_StoreClockDecides(t *testing.T) {
	for name, shift := range map[string]time.Duration{"behind": -50 * 365 * 24 * time.Hour, "ahead": 50 * 365 * 24 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			now := time.Now().Add(shift)
			st := memstore.New(&memstore.Options{Now: func() time.Time { return now }})
			g := guard(t, st, &semel.Options{Reservation: time.Minute})

			crash(t, st, semel.Retry, "live", time.Minute)
			_, err := g.Run(t.Context(), ann("live"), never(t))
			wantErr(t, err, semel.ErrInProgress)
			if e, _ := err.(*semel.Error); e.RetryAfter != time.Minute {
				t.Errorf("RetryAfter is %v, want the lease of 1m0s", e.RetryAfter)
			}
			now = now.Add(time.Minute)
			res, err := g.Run(t.Context(), ann("live"), answer("taken over"))
			wantBody(t, res, err, "taken over", false)

			first := reserve(t, g, ann("reserved"))
			if again := reserve(t, g, ann("reserved")); again.Fresh || again.Token != first.Token {
				t.Errorf("during the reservation: got %+v, want the same ticket", again)
			}
			now = now.Add(time.Minute)
			if again := reserve(t, g, ann("reserved")); !again.Fresh {
				t.Errorf("after the reservation: got %+v, want a new one", again)
			}
		})
	}
}

// Rule 3: only the caller whose swap wins runs the handler.
func TestTakeOver_SwapLost_RunsNothing(t *testing.T) {
	st, advance := newClockedStore()
	crash(t, st, semel.Retry, "k", time.Second)
	advance(time.Second)
	_, err := guard(t, losingSwaps(st), nil).Run(t.Context(), ann("k"), never(t))
	wantErr(t, err, semel.ErrInProgress)
}

func TestTakeOver_ReplyLost_IsWon(t *testing.T) {
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
