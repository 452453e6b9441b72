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
	for _, result := range []error{nil, errBoom, declined, semel.NoEffect(errBoom), semel.NoEffect(declined)} {
		tx, other := newTx(), newTx()
		g := guard(t, clockless{}, nil)
		_, want := driver.RunIn(t.Context(), g, other, ann("k"), func(context.Context, *semel.Execution) (store.Outcome, error) {
			return store.Outcome{Code: 7}, result
		})
		s, err := driver.NewTxCall(g, ann("k"))
		if err != nil {
			t.Fatal(err)
		}
		p, canInsert := s.Proposal(t.Context())
		if !canInsert {
			t.Fatal("a new call: canInsert is false")
		}
		x, _, err := s.Claim(t.Context(), tx)
		if x == nil || err != nil || x.Key() != "k" || x.Attempt() != 1 || x.Fence() == 0 {
			t.Fatalf("%v: claimed %v, %v", result, x, err)
		}
		if r := tx.records[s.Key()]; r.Owner != p.Owner || p.Key != s.Key() || p.State != store.Processing {
			t.Errorf("Claim has the owner %x, Proposal has %x", r.Owner, p.Owner)
		}
		res, err := s.Settle(t.Context(), store.Outcome{Code: 7}, result)
		if (err == nil) != (want == nil) || err != nil && err.Error() != want.Error() || driver.IsNoEffect(err) {
			t.Errorf("the handler returns %v: Settle returns %v, RunIn %v", result, err, want)
		}
		key := s.Key()
		if err == nil || errors.Is(err, declined) && !driver.IsNoEffect(result) { // the record keeps the result
			if got, want := tx.records[key], other.records[key]; got.State != want.State || got.Attempt != want.Attempt || got.Outcome.Code != want.Outcome.Code {
				t.Errorf("%v: the record is %+v, of RunIn %+v", result, got, want)
			}
			if err == nil && res.Outcome.Code != 7 {
				t.Errorf("the result is %+v, want code 7", res)
			}
			again, err2 := driver.NewTxCall(g, ann("k"))
			if err2 != nil {
				t.Fatal(err2)
			}
			x, res, rerr := again.Claim(t.Context(), tx)
			if x != nil || !res.Replayed || (rerr == nil) != (err == nil) {
				t.Errorf("%v: a duplicate gets %v, replayed %v, %v", result, x, res.Replayed, rerr)
			}
		} else if tx.records[key].State != store.Processing { // a TxCall leaves it to the store to undo the writes
			t.Errorf("%v: the record is %+v, want processing", result, tx.records[key])
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
	p, _ := b.Proposal(t.Context())
	f, err := tx.Claim(t.Context(), p)
	if err != nil || !f.Won {
		t.Fatalf("%+v, %v", f, err)
	}
	y := b.Inserted(tx, f.Record.Fence)
	if y.Key() != x.Key() || y.Attempt() != x.Attempt() || y.Policy() != x.Policy() || y.Fingerprint() != x.Fingerprint() || y.Fence() != f.Record.Fence || y.Operation() != x.Operation() || y.Tenant() != x.Tenant() {
		t.Errorf("Inserted makes %+v, Claim makes %+v", y, x)
	}
	if _, err := b.Settle(t.Context(), store.Outcome{Code: 7}, nil); err != nil || tx.records[b.Key()].State != store.Completed {
		t.Errorf("after Settle the record is %+v, %v; want completed", tx.records[b.Key()], err)
	}
	rg := guard(t, memstore.New(nil), nil)
	bearer, err := driver.NewTxCall(rg, redeem(t, rg, reserve(t, rg, ann("r")).Token))
	if err != nil {
		t.Fatal(err)
	}
	if _, canInsert := bearer.Proposal(t.Context()); canInsert {
		t.Error("a redeemed call: canInsert is true")
	}
}

func TestTxCall_InvalidCall_IsRefused(t *testing.T) {
	g := guard(t, clockless{}, nil)
	if _, err := driver.NewTxCall(g, semel.Call{}); !errors.Is(err, semel.ErrInvalid) {
		t.Errorf("the zero Call: got error %v, want ErrInvalid", err)
	}
	if _, err := driver.NewTxCall(guard(t, clockless{}, &semel.Options{Rerun: true}), ann("k")); !errors.Is(err, semel.ErrInvalid) {
		t.Errorf("with Rerun: got error %v, want ErrInvalid", err)
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
		t.Errorf("another payload: got %v, %v; want ErrMismatch", x, err)
	}
}
