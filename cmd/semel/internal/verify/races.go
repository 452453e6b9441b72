package verify

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/semel-go/semel/store"
)

var claimRace = check{
	name:  "claim-race",
	claim: "Of many claims of one key, sent at once over several connections, one wins, and all find its record.",
	run: func(ctx context.Context, p *probe) error {
		n := p.o.Parallel
		for i := range p.o.Keys {
			k, found := p.key("k", i), make([]store.Found, n)
			proposals := make([]store.Proposal, n)
			err := pack(n, func(g int) (err error) {
				proposals[g] = p.proposal(k, store.Processing)
				found[g], err = p.store(g).Claim(ctx, proposals[g])
				return err
			})
			if err != nil {
				return err
			}
			p.tried(n)
			p.oneWinner("claims", k, proposals, found)
		}
		return nil
	},
}

// oneWinner is broken unless one of those who raced for a key won, and all of
// them found its record. It returns the winner's number, or -1.
func (p *probe) oneWinner(what string, k store.Key, proposals []store.Proposal, found []store.Found) int {
	winner, wins := -1, 0
	for g := range found {
		if found[g].Won {
			winner, wins = g, wins+1
		}
	}
	if wins != 1 {
		p.broken("%q: %d of %d %s won, want 1", k.Value, wins, len(found), what)
		return -1
	}
	r := &found[winner].Record
	if r.Owner != proposals[winner].Owner {
		p.broken("%q: the winner of the %s is told the record of somebody else", k.Value, what)
		return -1
	}
	for g := range found {
		if d := differs(r, &found[g].Record); d != "" {
			p.broken("%q: one that lost finds another record than the winner's: %s", k.Value, d)
			return -1
		}
	}
	return winner
}

var strangersCheck = check{
	name:  "strangers",
	claim: "Claims of different keys, sent at once, all win, and each keeps its own record.",
	run: func(ctx context.Context, p *probe) error {
		n := p.o.Parallel
		for i := range max(1, p.o.Keys/4) {
			made := make([]store.Record, n)
			err := pack(n, func(g int) error {
				claim := p.proposal(p.key("k", i*n+g), store.Processing)
				f, err := p.store(g).Claim(ctx, claim)
				if err != nil {
					return err
				}
				if !f.Won {
					p.broken("%q: the only claim lost to %s", claim.Key.Value, f.Record.Holder)
				}
				made[g] = f.Record
				return nil
			})
			if err != nil {
				return err
			}
			p.tried(n)
			for g := range made {
				if err := p.unchanged(ctx, g+1, &made[g]); err != nil {
					return err
				}
			}
		}
		return nil
	},
}

// unchanged is broken unless a record still is what it was.
func (p *probe) unchanged(ctx context.Context, conn int, was *store.Record) error {
	_, err := p.still(ctx, conn, was)
	return err
}

// still is unchanged, and reports whether it is.
func (p *probe) still(ctx context.Context, conn int, was *store.Record) (bool, error) {
	f, err := p.store(conn).Get(ctx, was.Key)
	if errors.Is(err, store.ErrNotFound) {
		p.broken("%q: its %v record has vanished", was.Key.Value, was.State)
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return p.expect(was.Key.Value+": its "+was.State.String()+" record has changed", differs(was, &f.Record)), nil
}

var swapRace = check{
	name:  "swap-race",
	claim: "Of many changes of what all have seen, sent at once, one is made, the fence grows, and what was seen is refused for ever after.",
	run: func(ctx context.Context, p *probe) error {
		n := p.o.Parallel
		for i := range p.o.Keys {
			old, err := p.claimed(ctx, i, p.proposal(p.key("k", i), store.Processing))
			if err != nil || old == nil {
				return err
			}
			found, proposals := make([]store.Found, n), make([]store.Proposal, n)
			err = pack(n, func(g int) (err error) {
				proposals[g] = p.proposal(old.Key, store.Processing)
				found[g], err = p.store(g).Swap(ctx, old.Seen(), proposals[g])
				return err
			})
			if err != nil {
				return err
			}
			p.tried(n)
			winner := p.oneWinner("swaps", old.Key, proposals, found)
			if winner < 0 {
				continue
			}
			r := found[winner].Record
			p.expect(old.Key.Value+": after a swap", replaced(&proposals[winner], old, &r))
			late, err := p.store(i+1).Swap(ctx, old.Seen(), p.proposal(old.Key, store.Released))
			if err != nil {
				return err
			}
			p.tried(1)
			if late.Won {
				p.broken("%q: a swap of what was seen before the last one is made", old.Key.Value)
			} else {
				p.expect(old.Key.Value+": after a swap that was refused", differs(&r, &late.Record))
			}
		}
		return nil
	},
}

// claimed makes a record; nil, and broken, if a new key cannot be claimed.
func (p *probe) claimed(ctx context.Context, conn int, c store.Proposal) (*store.Record, error) {
	f, err := p.store(conn).Claim(ctx, c)
	if err != nil {
		return nil, err
	}
	if !f.Won {
		p.tried(1)
		p.broken("%q: the first claim of a new key lost", c.Key.Value)
		return nil, nil // it is reported
	}
	return &f.Record, nil
}

// gate is a store that can be shut. A Guard releases abandoned claims in the
// background, and none of these calls may come after the removal of the records.
type gate struct {
	st    store.Store
	mu    sync.Mutex
	over  bool
	calls sync.WaitGroup
}

// errShut ends what a Guard repeats until it is answered.
var errShut = fmt.Errorf("the run is over: %w", store.ErrLeaseLost)

// shut waits for the calls that are under way, and refuses all others.
func (g *gate) shut() {
	g.mu.Lock()
	g.over = true
	g.mu.Unlock()
	g.calls.Wait()
}

func passing[T any](g *gate, call func() (T, error)) (T, error) {
	if !g.enter() {
		var none T
		return none, errShut
	}
	defer g.calls.Done()
	return call()
}

func (g *gate) enter() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.over {
		g.calls.Add(1)
	}
	return !g.over
}

// Unwrap is the store itself.
func (g *gate) Unwrap() store.Store { return g.st }

// Claim implements store.Store.
func (g *gate) Claim(ctx context.Context, p store.Proposal) (store.Found, error) {
	return passing(g, func() (store.Found, error) { return g.st.Claim(ctx, p) })
}

// Swap implements store.Store.
func (g *gate) Swap(ctx context.Context, seen store.Seen, p store.Proposal) (store.Found, error) {
	return passing(g, func() (store.Found, error) { return g.st.Swap(ctx, seen, p) })
}

// Renew implements store.Store.
func (g *gate) Renew(ctx context.Context, held []store.Lease, d time.Duration) ([]error, error) {
	return passing(g, func() ([]error, error) { return g.st.Renew(ctx, held, d) })
}

// Settle implements store.Store.
func (g *gate) Settle(ctx context.Context, l store.Lease, s store.Settlement) error {
	_, err := passing(g, func() (struct{}, error) { return struct{}{}, g.st.Settle(ctx, l, s) })
	return err
}

// Get implements store.Store.
func (g *gate) Get(ctx context.Context, k store.Key) (store.Found, error) {
	return passing(g, func() (store.Found, error) { return g.st.Get(ctx, k) })
}

// Sweep implements store.Store.
func (g *gate) Sweep(ctx context.Context, from store.Cursor, limit int) (store.SweepResult, error) {
	return passing(g, func() (store.SweepResult, error) { return g.st.Sweep(ctx, from, limit) })
}
