package verify

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semel-go/semel/store"
)

func TestGate_Closed_RefusesAndWaits(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := new(clockwork).sound()
		sound, reached := s.Store, false
		s.claim = func(ctx context.Context, p store.Proposal) (store.Found, error) {
			pause(ctx, time.Second)
			reached = true
			return sound.Claim(ctx, p)
		}
		g := &gate{st: s}
		p := newProbe(&Target{Stores: []store.Store{s}}, &Options{}, "t").proposal(store.Key{Operation: "o", Value: "k"}, store.Processing)
		go func() {
			if _, err := g.Claim(t.Context(), p); err != nil {
				t.Error(err)
			}
		}()
		synctest.Wait()
		g.shut()
		if !reached {
			t.Error("it is shut while a call is under way")
		}
		ctx := t.Context()
		_, claim := g.Claim(ctx, p)
		_, swap := g.Swap(ctx, store.Seen{}, p)
		_, renew := g.Renew(ctx, nil, 0)
		_, get := g.Get(ctx, p.Key)
		_, sweep := g.Sweep(ctx, "", 1)
		for i, err := range []error{claim, swap, renew, get, sweep, g.Settle(ctx, store.Lease{}, store.Settlement{})} {
			if !errors.Is(err, errShut) {
				t.Errorf("call %d: error %v", i, err)
			}
		}
		if _, ok := store.As[store.Lister](g); !ok {
			t.Error("it hides what the store can do")
		}
	})
}
