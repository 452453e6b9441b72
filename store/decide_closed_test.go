package store_test

import (
	"testing"
	"time"

	"github.com/semel-go/semel/store"
)

// A claim without an end is a damaged record, and not one that has lapsed: to
// take it over would run beside its owner.
func TestDecide_UntilMissing_IsCorrupt(t *testing.T) {
	for _, s := range []store.State{store.Started, store.Processing, store.Released} {
		for _, p := range []store.Policy{store.Retry, store.Park} {
			r := recordIn(s)
			r.Until = time.Time{}
			for _, c := range []store.Call{{Policy: p, Fingerprint: r.Fingerprint}, {Policy: p, Token: r.Created}} {
				if got := store.Decide(&r, &c, noon); got.Action != store.Corrupt {
					t.Errorf("a %v record without Until, policy %v, token %v: %v, want Corrupt", s, p, !c.Token.IsZero(), got.Action)
				}
			}
		}
	}
}

// A policy that is none of the two counts as the strict one.
func TestDecide_UnknownPolicyOfCall_CountsAsPark(t *testing.T) {
	r := recordIn(store.Processing)
	c := store.Call{Policy: 7, Fingerprint: r.Fingerprint}
	if got := store.Decide(&r, &c, r.Until); got.Action == store.TakeOver {
		t.Errorf("a lapsed claim and a call of policy %v: %v", c.Policy, got.Action)
	}
}
