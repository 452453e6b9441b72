package semel_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/memstore"
)

// Step by step a call comes to the same ends as by RunIn.
func TestStepsEndAsRunInDoes(t *testing.T) {
	declined := &semel.Failure{Code: "declined"}
	for _, said := range []error{nil, errBoom, declined, semel.NoEffect(errBoom), semel.NoEffect(declined)} {
		tx, other := newTx(), newTx()
		g := guard(t, clockless{}, nil)
		_, want := g.RunIn(t.Context(), other, ann("k"), func(context.Context, *semel.Execution) (semel.Outcome, error) {
			return semel.Outcome{Code: 7}, said
		})
		s, err := g.Steps(ann("k"))
		if err != nil {
			t.Fatal(err)
		}
		p, is := s.Proposal()
		if !is {
			t.Fatal("it has no proposal")
		}
		x, _, err := s.Claim(t.Context(), tx)
		if x == nil || err != nil || x.Key() != "k" || x.Attempt() != 1 || x.Fence() == 0 {
			t.Fatalf("%v: claimed %v, %v", said, x, err)
		}
		if r := tx.records[s.Key()]; r.Owner != p.Owner || p.Key != s.Key() || p.State != store.Processing {
			t.Errorf("it claimed for %x what it proposed for %x", r.Owner, p.Owner)
		}
		ctx, end := s.Within(t.Context())
		defer end()
		if ctx.Err() != nil {
			t.Fatalf("%v: the handler's context is over before it ran: %v", said, ctx.Err())
		}
		res, err := s.Settle(t.Context(), semel.Outcome{Code: 7}, said)
		if (err == nil) != (want == nil) || err != nil && err.Error() != want.Error() || semel.SaysNoEffect(err) {
			t.Errorf("%v: Settle returns %v, RunIn %v", said, err, want)
		}
		if ctx.Err() == nil {
			t.Errorf("%v: the handler's context outlives the run", said)
		}
		key := s.Key()
		if err == nil || errors.Is(err, declined) && !semel.SaysNoEffect(said) { // it is kept
			if is, was := tx.records[key], other.records[key]; is.State != was.State || is.Attempt != was.Attempt || is.Outcome.Code != was.Outcome.Code {
				t.Errorf("%v: the record is %+v, by RunIn %+v", said, is, was)
			}
			if err == nil && res.Outcome.Code != 7 {
				t.Errorf("the result is %+v", res)
			}
			again, err2 := g.Steps(ann("k"))
			if err2 != nil {
				t.Fatal(err2)
			}
			x, res, rerr := again.Claim(t.Context(), tx)
			if x != nil || !res.Replayed || (rerr == nil) != (err == nil) {
				t.Errorf("%v: a duplicate gets %v, replayed %v, %v", said, x, res.Replayed, rerr)
			}
		} else if tx.records[key].State != store.Processing { // Steps undo nothing
			t.Errorf("%v: the record is %+v", said, tx.records[key])
		}
	}
}

// What the store has claimed already comes to the same end.
func TestStepsOfWhatWasClaimedBefore(t *testing.T) {
	g := guard(t, clockless{}, nil)
	tx, other := newTx(), newTx()
	a, err := g.Steps(paying("k", semel.JSON(1)))
	if err != nil {
		t.Fatal(err)
	}
	b, _ := g.Steps(paying("k", semel.JSON(1)))
	x, _, err := a.Claim(t.Context(), other)
	if err != nil {
		t.Fatal(err)
	}
	p, _ := b.Proposal()
	f, err := tx.Claim(t.Context(), p)
	if err != nil || !f.Won {
		t.Fatalf("%+v, %v", f, err)
	}
	y := b.Won(tx, f.Record.Fence)
	if y.Key() != x.Key() || y.Attempt() != x.Attempt() || y.Policy() != x.Policy() || y.Fingerprint() != x.Fingerprint() || y.Fence() != f.Record.Fence || y.Scope() != x.Scope() {
		t.Errorf("it is %+v, by Claim %+v", y, x)
	}
	if _, err := b.Settle(t.Context(), semel.Outcome{Code: 7}, nil); err != nil || tx.records[b.Key()].State != store.Completed {
		t.Errorf("settled %+v, %v", tx.records[b.Key()], err)
	}
	rg := guard(t, memstore.New(nil), nil)
	bearer, err := rg.Steps(redeem(t, rg, reserve(t, rg, ann("r")).Token))
	if err != nil {
		t.Fatal(err)
	}
	if _, is := bearer.Proposal(); is {
		t.Error("a bearer, who only looks, proposes a claim")
	}
}

func TestStepsOfAnInvalidCall(t *testing.T) {
	g := guard(t, clockless{}, nil)
	if _, err := g.Steps(semel.Call{}); !errors.Is(err, semel.ErrInvalid) {
		t.Errorf("of the zero Call: %v", err)
	}
	if _, err := guard(t, clockless{}, &semel.Options{Rerun: true}).Steps(ann("k")); !errors.Is(err, semel.ErrInvalid) {
		t.Errorf("with Rerun: %v", err)
	}
	tx := newTx()
	if _, err := g.RunIn(t.Context(), tx, paying("k", semel.JSON(1)), tx.effect(nil)); err != nil {
		t.Fatal(err)
	}
	s, err := g.Steps(paying("k", semel.JSON(2)))
	if err != nil {
		t.Fatal(err)
	}
	if x, _, err := s.Claim(t.Context(), tx); x != nil || !errors.Is(err, semel.ErrMismatch) {
		t.Errorf("another payload: %v, %v", x, err)
	}
}

func TestStepsOfManyCalls(t *testing.T) {
	g, tx := guard(t, clockless{}, nil), newTx()
	calls := make([]semel.Call, 100)
	for i := range calls {
		if calls[i] = ann(fmt.Sprint(i)); i%7 == 3 {
			calls[i] = semel.Call{}
		}
	}
	var all []semel.Steps
	var kept []*semel.Execution
	for range 2 { // the second time in the memory of the first
		all = g.AllSteps(all, calls)
		for i := range all {
			s := &all[i]
			if bad := i%7 == 3; bad != (s.Err() != nil) || bad != errors.Is(s.Err(), semel.ErrInvalid) {
				t.Fatalf("call %d: %v", i, s.Err())
			}
			if s.Err() != nil {
				continue
			}
			x, res, err := s.Claim(t.Context(), tx)
			if err != nil || x == nil != res.Replayed || x != nil && x.Key() != calls[i].Key() {
				t.Fatalf("call %d: claimed %v, %v", i, x, err)
			}
			if x == nil {
				continue
			}
			kept = append(kept, x)
			if _, err := s.Settle(t.Context(), semel.Outcome{}, nil); err != nil {
				t.Fatalf("call %d: %v", i, err)
			}
		}
	}
	if len(kept) != len(calls)-14 || kept[0].Key() != "0" {
		t.Errorf("%d were to be run; the first is now that of %q", len(kept), kept[0].Key())
	}
}
