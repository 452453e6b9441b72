package semel_test

import (
	"context"
	"errors"
	"testing"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/driver"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/memstore"
)

func TestTxCall_EveryEnd_MatchesRunIn(t *testing.T) {
	declined := &semel.Failure{Code: "declined"}
	for _, said := range []error{nil, errBoom, declined, semel.NoEffect(errBoom), semel.NoEffect(declined)} {
		tx, other := newTx(), newTx()
		g := guard(t, clockless{}, nil)
		_, want := driver.RunIn(t.Context(), g, other, ann("k"), func(context.Context, *semel.Execution) (store.Outcome, error) {
			return store.Outcome{Code: 7}, said
		})
		s, err := driver.NewTxCall(g, ann("k"))
		if err != nil {
			t.Fatal(err)
		}
		p, is := s.Proposal()
		if !is {
			t.Fatal("a new call proposes no insert")
		}
		x, _, err := s.Claim(t.Context(), tx)
		if x == nil || err != nil || x.Key() != "k" || x.Attempt() != 1 || x.Fence() == 0 {
			t.Fatalf("%v: claimed %v, %v", said, x, err)
		}
		if r := tx.records[s.Key()]; r.Owner != p.Owner || p.Key != s.Key() || p.State != store.Processing {
			t.Errorf("it claimed for %x what it proposed for %x", r.Owner, p.Owner)
		}
		ctx, end := s.HandlerContext(t.Context())
		defer end()
		if ctx.Err() != nil {
			t.Fatalf("%v: the handler's context is over before it ran: %v", said, ctx.Err())
		}
		res, err := s.Settle(t.Context(), store.Outcome{Code: 7}, said)
		if (err == nil) != (want == nil) || err != nil && err.Error() != want.Error() || driver.IsNoEffect(err) {
			t.Errorf("%v: Settle returns %v, RunIn %v", said, err, want)
		}
		if ctx.Err() == nil {
			t.Errorf("%v: the handler's context outlives the run", said)
		}
		key := s.Key()
		if err == nil || errors.Is(err, declined) && !driver.IsNoEffect(said) { // the record keeps it
			if is, was := tx.records[key], other.records[key]; is.State != was.State || is.Attempt != was.Attempt || is.Outcome.Code != was.Outcome.Code {
				t.Errorf("%v: the record is %+v, by RunIn %+v", said, is, was)
			}
			if err == nil && res.Outcome.Code != 7 {
				t.Errorf("the result is %+v", res)
			}
			again, err2 := driver.NewTxCall(g, ann("k"))
			if err2 != nil {
				t.Fatal(err2)
			}
			x, res, rerr := again.Claim(t.Context(), tx)
			if x != nil || !res.Replayed || (rerr == nil) != (err == nil) {
				t.Errorf("%v: a duplicate gets %v, replayed %v, %v", said, x, res.Replayed, rerr)
			}
		} else if tx.records[key].State != store.Processing { // a TxCall undoes nothing
			t.Errorf("%v: the record is %+v", said, tx.records[key])
		}
	}
}

func TestTxCall_InsertedByTheStore_MatchesClaim(t *testing.T) {
	g := guard(t, clockless{}, nil)
	tx, other := newTx(), newTx()
	a, err := driver.NewTxCall(g, paying("k", semel.JSON(1)))
	if err != nil {
		t.Fatal(err)
	}
	b, _ := driver.NewTxCall(g, paying("k", semel.JSON(1)))
	x, _, err := a.Claim(t.Context(), other)
	if err != nil {
		t.Fatal(err)
	}
	p, _ := b.Proposal()
	f, err := tx.Claim(t.Context(), p)
	if err != nil || !f.Won {
		t.Fatalf("%+v, %v", f, err)
	}
	y := b.Inserted(tx, f.Record.Fence)
	if y.Key() != x.Key() || y.Attempt() != x.Attempt() || y.Policy() != x.Policy() || y.Fingerprint() != x.Fingerprint() || y.Fence() != f.Record.Fence || y.Operation() != x.Operation() || y.Tenant() != x.Tenant() {
		t.Errorf("it is %+v, by Claim %+v", y, x)
	}
	if _, err := b.Settle(t.Context(), store.Outcome{Code: 7}, nil); err != nil || tx.records[b.Key()].State != store.Completed {
		t.Errorf("settled %+v, %v", tx.records[b.Key()], err)
	}
	rg := guard(t, memstore.New(nil), nil)
	bearer, err := driver.NewTxCall(rg, redeem(t, rg, reserve(t, rg, ann("r")).Token))
	if err != nil {
		t.Fatal(err)
	}
	if _, is := bearer.Proposal(); is {
		t.Error("a redeemed call proposes an insert")
	}
}

func TestTxCall_InvalidCall_IsRefused(t *testing.T) {
	g := guard(t, clockless{}, nil)
	if _, err := driver.NewTxCall(g, semel.Call{}); !errors.Is(err, semel.ErrInvalid) {
		t.Errorf("of the zero Call: %v", err)
	}
	if _, err := driver.NewTxCall(guard(t, clockless{}, &semel.Options{Rerun: true}), ann("k")); !errors.Is(err, semel.ErrInvalid) {
		t.Errorf("with Rerun: %v", err)
	}
	tx := newTx()
	if _, err := driver.RunIn(t.Context(), g, tx, paying("k", semel.JSON(1)), tx.effect(nil)); err != nil {
		t.Fatal(err)
	}
	s, err := driver.NewTxCall(g, paying("k", semel.JSON(2)))
	if err != nil {
		t.Fatal(err)
	}
	if x, _, err := s.Claim(t.Context(), tx); x != nil || !errors.Is(err, semel.ErrMismatch) {
		t.Errorf("another payload: %v, %v", x, err)
	}
}
