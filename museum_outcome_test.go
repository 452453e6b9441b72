package semel_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/driver"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/memstore"
)

// Rule 9: an outcome is stored when the store says so, and not before.
func TestAnOutcomeIsStoredOnlyWhenTheStoreSaysSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := memstore.New(nil)
		h := &hooks{Store: st, settle: func(context.Context, store.Lease, store.Settlement) error { return errBoom }}
		g := guard(t, h, nil)
		res, err := g.Run(t.Context(), ann("k"), func(ctx context.Context, x *semel.Execution) (store.Outcome, error) {
			wantErr(t, driver.Complete(ctx, x, store.Outcome{Body: []byte("first")}), semel.ErrOutcomeNotStored)
			if driver.Completed(x) {
				t.Error("completed, though the store never said so")
			}
			h.settle = nil
			return store.Outcome{Body: []byte("second")}, nil
		})
		wantBody(t, res, err, "second", false)
		res, err = g.Run(t.Context(), ann("k"), never(t))
		wantBody(t, res, err, "second", true)
	})
}

// Rule 8: what a caller does with its answer afterwards is its own affair.
func TestAKeptOutcomeIsACopy(t *testing.T) {
	g := guard(t, memstore.New(nil), nil)
	body, header := []byte("paid"), []store.Header{{Name: "Location", Value: "/1"}}
	res, err := g.Run(t.Context(), ann("k"), func(context.Context, *semel.Execution) (store.Outcome, error) {
		return store.Outcome{Body: body, Header: header}, nil
	})
	wantBody(t, res, err, "paid", false)
	copy(body, "void")
	header[0].Value = "/2"
	res, err = g.Run(t.Context(), ann("k"), never(t))
	wantBody(t, res, err, "paid", true)
	if got := res.Header; len(got) != 1 || got[0].Value != "/1" {
		t.Errorf("the kept header is now %q", got)
	}
}

// Rule 10.
func TestHeadersCountTowardsTheLimit(t *testing.T) {
	g := guard(t, memstore.New(nil), &semel.Options{MaxOutcome: 10})
	for key, header := range map[string][]store.Header{
		"long value": {{Name: "A", Value: "12345678901"}}, "many lines": {{Name: "A", Value: "12345"}, {Name: "A", Value: "67890"}}, "long name": {{Name: "Content-Typ", Value: ""}},
	} {
		_, err := g.Run(t.Context(), ann(key), func(context.Context, *semel.Execution) (store.Outcome, error) {
			return store.Outcome{Code: 201, Header: header, Body: []byte("b")}, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		res, err := g.Run(t.Context(), ann(key), never(t))
		wantErr(t, err, semel.ErrNotKept)
		if res.Header != nil || res.Code != 201 {
			t.Errorf("%s: the tombstone is %+v", key, res)
		}
	}
}

// failingTx is a transaction that cannot settle.
type failingTx struct{ *fakeTx }

func (failingTx) Settle(context.Context, store.Lease, store.Settlement) error { return errBoom }

// Section 8: an error inside a transaction ends it; it is not passed over.
func TestAFailureOfTheTransactionIsTheCallers(t *testing.T) {
	for _, err := range []error{nil, &semel.Failure{Code: "declined"}} {
		tx := newTx()
		_, got := driver.RunIn(t.Context(), guard(t, clockless{}, nil), failingTx{tx}, ann("k"), tx.effect(err))
		wantErr(t, got, semel.ErrUnavailable)
		wantErr(t, got, errBoom)
		if len(tx.records) != 0 || len(tx.effects) != 0 {
			t.Errorf("left %v, %v", tx.records, tx.effects)
		}
	}
}

// Rule 11: an outage is neither absence nor the end of a reservation.
func TestAnOutageIsNotAnExpiredToken(t *testing.T) {
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

// Rule 11: running without a record is for outages, and for nothing else.
func TestUnprotectedIsForOutagesOnly(t *testing.T) {
	st, _ := clocked()
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
}
