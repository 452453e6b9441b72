package semel_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/memstore"
)

// Rule 16: a reservation lasts for Options.Reservation and is not an attempt.
func TestReserve_LeaseOver_HoldsAndIsNoAttempt(t *testing.T) {
	st, advance := newClockedStore()
	g := guard(t, st, &semel.Options{Reservation: time.Hour, MaxAttempts: 1})
	ticket := reserve(t, g, ann("k"))
	if r := wantState(t, g, "k", store.Started); r.Attempt != 0 {
		t.Errorf("attempt %d, want 0, because no handler has started", r.Attempt)
	}
	advance(time.Hour - time.Second)
	_, err := g.Run(t.Context(), ann("k"), never(t))
	wantErr(t, err, semel.ErrInProgress)
	res, err := g.Run(t.Context(), redeem(t, g, ticket.Token), func(_ context.Context, x *semel.Execution) (store.Outcome, error) {
		if x.Attempt() != 1 {
			t.Errorf("the first attempt is %d, want 1", x.Attempt())
		}
		return store.Outcome{Body: []byte("report")}, nil
	})
	wantBody(t, res, err, "report", false)
}

// Rule 11: during an outage a reservation has neither ended nor is it absent.
func TestRedeem_StoreDown_IsUnavailable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &hooks{Store: memstore.New(nil)}
		g := guard(t, h, nil)
		ticket := reserve(t, g, ann("k"))
		h.get = func(context.Context, store.Key) (store.Found, error) { return store.Found{}, errBoom }
		_, err := g.Run(t.Context(), redeem(t, g, ticket.Token), never(t))
		wantErr(t, err, semel.ErrUnavailable)
		wantErr(t, err, errBoom)
	})
}

func TestReserve_SweptMeanwhile_BeginsAgain(t *testing.T) {
	st, advance := newClockedStore()
	g := guard(t, st, &semel.Options{Retention: time.Hour})
	_, _ = g.Run(t.Context(), ann("k"), fail(errBoom)) // released, attempt 1
	h := &hooks{Store: st}
	h.swap = func(ctx context.Context, seen store.Seen, p store.Proposal) (store.Found, error) {
		advance(time.Hour)
		if _, err := st.Sweep(ctx, "", 100); err != nil { // after the record was read and before it is swapped
			t.Error(err)
		}
		return st.Swap(ctx, seen, p)
	}
	reserve(t, guard(t, h, &semel.Options{Retention: time.Hour}), ann("k"))
	if r := record(t, g, "k"); r.Attempt != 0 || r.LastError != "" {
		t.Errorf("the new record has attempt %d and last error %q, want neither", r.Attempt, r.LastError)
	}
}

// Rule 16: a token that is delivered several times runs once.
func TestRedeem_TokenDeliveredOften_RunsOnce(t *testing.T) {
	g := guard(t, memstore.New(nil), nil)
	call := semel.Call{Operation: pay, Tenant: "ann", Key: "k", Payload: semel.JSON("order")}
	first := reserve(t, g, call)
	again := reserve(t, g, call)
	if !first.Fresh || again.Fresh || first.Token != again.Token || first.Result != nil {
		t.Errorf("tickets %+v and %+v, want the same token, and only the first fresh", first, again)
	}
	_, err := g.Run(t.Context(), call, never(t))
	wantErr(t, err, semel.ErrInProgress)
	_, err = g.Reserve(t.Context(), semel.Call{Operation: pay, Tenant: "ann", Key: "k", Payload: semel.JSON("another")})
	wantErr(t, err, semel.ErrMismatch)

	work := redeem(t, g, first.Token)
	work.Wait = time.Minute
	ran, replayed, errs := runMany(t.Context(), g, 8, work, slowly)
	if ran != 1 || replayed != 7 {
		t.Errorf("%d ran, %d got a replay, errors %v; want 1 and 7", ran, replayed, errs)
	}
	if done := reserve(t, g, call); done.Result == nil || string(done.Result.Body) != "one" || done.Fresh {
		t.Errorf("after the work the ticket is %+v, want the result", done)
	}
}

// A Guard with Rerun does not reserve a completed call again.
func TestReserve_DoneNotKept_IsErrNotKept(t *testing.T) {
	for _, rerun := range []bool{false, true} {
		g := guard(t, memstore.New(nil), &semel.Options{MaxOutcome: 4, Rerun: rerun})
		if _, err := g.Run(t.Context(), ann("k"), answer("too large")); err != nil {
			t.Fatal(err)
		}
		ticket, err := g.Reserve(t.Context(), ann("k"))
		wantErr(t, err, semel.ErrNotKept)
		if ticket.Result == nil || !ticket.Result.Gone || ticket.Token != "" {
			t.Errorf("Rerun %v: the ticket is %+v, want a tombstone and no token", rerun, ticket)
		}
	}
}

func TestRedeem_AttemptsFailedOrCrashed_TokenHolds(t *testing.T) {
	st, advance := newClockedStore()
	g := guard(t, st, nil)
	ticket := reserve(t, g, ann("k"))
	_, err := g.Run(t.Context(), redeem(t, g, ticket.Token), fail(errBoom))
	wantErr(t, err, errBoom)
	f, err := st.Get(t.Context(), store.Key{Operation: "pay", Tenant: "ann", Value: "k"})
	if err != nil {
		t.Fatal(err)
	}
	_, err = st.Swap(t.Context(), f.Record.Seen(), store.Proposal{Key: f.Record.Key, State: store.Processing, Owner: store.Owner{9}, Attempt: 2, Lease: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	_, err = g.Run(t.Context(), redeem(t, g, ticket.Token), never(t))
	wantErr(t, err, semel.ErrInProgress)
	if again := reserve(t, g, ann("k")); again.Token != ticket.Token {
		t.Error("another attempt has another token")
	}
	advance(time.Second)
	res, err := g.Run(t.Context(), redeem(t, g, ticket.Token), answer("third"))
	wantBody(t, res, err, "third", false)
}

func TestRedeem_KeyBeganAgain_IsExpired(t *testing.T) {
	st, advance := newClockedStore()
	g := guard(t, st, &semel.Options{Retention: time.Hour})
	old := reserve(t, g, ann("k"))
	_, err := g.Run(t.Context(), redeem(t, g, old.Token), answer("first"))
	if err != nil {
		t.Fatal(err)
	}
	advance(time.Hour)
	_, err = g.Run(t.Context(), redeem(t, g, old.Token), never(t)) // the outcome has expired
	wantErr(t, err, semel.ErrExpired)
	fresh := reserve(t, g, ann("k"))
	if !fresh.Fresh || fresh.Token == old.Token {
		t.Errorf("the new ticket is %+v, want a fresh one with another token", fresh)
	}
	_, err = g.Run(t.Context(), redeem(t, g, old.Token), never(t)) // the key is reserved again
	wantErr(t, err, semel.ErrExpired)
	_, err = guard(t, memstore.New(nil), nil).Run(t.Context(), redeem(t, g, old.Token), never(t)) // the record was swept
	wantErr(t, err, semel.ErrExpired)
}

func TestReserve_NotRedeemed_Expires(t *testing.T) {
	st, advance := newClockedStore()
	g := guard(t, st, &semel.Options{Reservation: time.Hour})
	ticket := reserve(t, g, ann("k"))
	advance(time.Hour)
	res, err := g.Run(t.Context(), ann("k"), answer("plain"))
	wantBody(t, res, err, "plain", false)
	res, err = g.Run(t.Context(), redeem(t, g, ticket.Token), never(t))
	wantBody(t, res, err, "plain", true)
}

func TestReserve_KeptFailure_IsReturned(t *testing.T) {
	g := guard(t, memstore.New(nil), nil)
	declined := &semel.Failure{Code: "declined"}
	ticket := reserve(t, g, ann("k"))
	_, err := g.Run(t.Context(), redeem(t, g, ticket.Token), fail(declined))
	wantErr(t, err, declined)
	_, err = g.Reserve(t.Context(), ann("k"))
	wantErr(t, err, declined)
}

func TestRedeem_FailsUnderPark_IsParked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := memstore.New(nil)
		g := guard(t, st, &semel.Options{OnDoubt: semel.Park})
		ticket := reserve(t, g, ann("k"))
		_, err := guard(t, st, nil).Run(t.Context(), redeem(t, g, ticket.Token), func(context.Context, *semel.Execution) (store.Outcome, error) {
			return store.Outcome{}, errBoom
		})
		wantErr(t, err, semel.ErrParked) // the reservation has the stricter policy
		_, err = g.Run(t.Context(), redeem(t, g, ticket.Token), never(t))
		wantErr(t, err, semel.ErrParked)
	})
}

func TestRedeem_TokenDamaged_IsRefused(t *testing.T) {
	g := guard(t, memstore.New(nil), nil)
	good := reserve(t, g, ann("k")).Token
	for _, bad := range []string{"", "?", good[:len(good)-3], good + "AAAA", strings.Repeat("A", 5000), "AQ", "Ag" + good[2:]} {
		if _, err := g.Redeem(bad); !errors.Is(err, semel.ErrInvalid) {
			t.Errorf("token %.20q: got error %v, want ErrInvalid", bad, err)
		}
	}
	call := redeem(t, g, good)
	_, err := g.Reserve(t.Context(), call)
	wantErr(t, err, semel.ErrInvalid)
}

func FuzzRedeem(f *testing.F) {
	g := guard(f, memstore.New(nil), nil)
	ticket, _ := g.Reserve(context.Background(), ann("k"))
	f.Add(ticket.Token)
	f.Add("AQ")
	f.Fuzz(func(t *testing.T, token string) {
		call, err := g.Redeem(token)
		if err != nil {
			return
		}
		if call.Operation == "" {
			t.Errorf("the token %q makes the call %+v, without an operation", token, call)
		}
		if token == ticket.Token {
			return
		}
		// A token that no Reserve has made runs nothing.
		_, err = guard(t, memstore.New(nil), nil).Run(t.Context(), call, never(t))
		wantErr(t, err, semel.ErrExpired)
	})
}

// A reservation whose reply is lost stays, because a duplicate may have its token: to reserve
// again gives it out.
func TestReserve_ReplyLost_DuplicateGetsToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := memstore.New(nil)
		h := &hooks{Store: st, claim: func(ctx context.Context, p store.Proposal) (store.Found, error) {
			_, err := st.Claim(ctx, p)
			return store.Found{}, errors.Join(errBoom, err)
		}}
		_, err := guard(t, h, nil).Reserve(t.Context(), ann("k"))
		wantErr(t, err, semel.ErrUnavailable)
		time.Sleep(time.Minute)
		g := guard(t, st, nil)
		ticket, err := g.Reserve(t.Context(), ann("k"))
		if err != nil || ticket.Fresh {
			t.Fatalf("ticket %+v, error %v; want the one of the lost reply", ticket, err)
		}
		call, err := g.Redeem(ticket.Token)
		wantErr(t, err, nil)
		res, err := g.Run(t.Context(), call, answer("done"))
		wantBody(t, res, err, "done", false)
	})
}
