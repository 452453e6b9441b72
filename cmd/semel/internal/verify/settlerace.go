package verify

import (
	"context"
	"errors"

	"github.com/semel-go/semel/store"
)

var settleRace = check{
	name:  "settle-race",
	claim: "Of many different settlements of one claim, and of a settlement and a take-over, sent at once, one is accepted, and it is the one that is kept.",
	run: func(ctx context.Context, p *probe) error {
		for i := range p.o.Keys {
			race := p.settlements
			if i%2 == 1 {
				race = p.settlementAndTakeOver
			}
			r, err := p.claimed(ctx, i, p.proposal(p.key("k", i), store.Processing))
			if err != nil || r == nil {
				return err
			}
			if err := race(ctx, r); err != nil {
				return err
			}
		}
		return nil
	},
}

// settlements race.
func (p *probe) settlements(ctx context.Context, r *store.Record) error {
	n := p.o.Parallel
	sent, refused := make([]store.Settlement, n), make([]bool, n)
	err := pack(n, func(g int) (err error) {
		sent[g] = p.settlement(store.Completed, long)
		refused[g], err = lost(p.store(g).Settle(ctx, r.Lease(), sent[g]))
		return err
	})
	if err != nil {
		return err
	}
	p.tried(n)
	accepted, winner := 0, 0
	for g := range refused {
		if !refused[g] {
			accepted, winner = accepted+1, g
		}
	}
	if accepted != 1 {
		p.broken("%q: %d of %d different settlements were accepted, want 1", r.Key.Value, accepted, n)
		return nil
	}
	f, err := p.store(winner+1).Get(ctx, r.Key)
	if err != nil {
		return p.vanished(r.Key, err)
	}
	p.expect(r.Key.Value+": after settlements that raced", settled(&sent[winner], r, &f.Record))
	return nil
}

// settlementAndTakeOver race.
func (p *probe) settlementAndTakeOver(ctx context.Context, r *store.Record) error {
	s, c := p.settlement(store.Completed, long), p.proposal(r.Key, store.Processing)
	var refused bool
	var f store.Found
	err := pack(2, func(g int) (err error) {
		if g == 0 {
			refused, err = lost(p.store(0).Settle(ctx, r.Lease(), s))
		} else {
			f, err = p.store(1).Swap(ctx, r.Seen(), c)
		}
		return err
	})
	if err != nil {
		return err
	}
	p.tried(1)
	now, err := p.store(2).Get(ctx, r.Key)
	switch {
	case err != nil:
		return p.vanished(r.Key, err)
	case refused != f.Won:
		p.broken("%q: a settlement is refused: %v, and a take-over at the same time is made: %v; want one of the two", r.Key.Value, refused, f.Won)
	case f.Won:
		p.expect(r.Key.Value+": after a take-over that beat a settlement", replaced(&c, r, &now.Record))
	default:
		p.expect(r.Key.Value+": after a settlement that beat a take-over", settled(&s, r, &now.Record))
	}
	return nil
}

// lost tells store.ErrLeaseLost, an answer, from errors.
func lost(err error) (bool, error) {
	if errors.Is(err, store.ErrLeaseLost) {
		return true, nil
	}
	return false, err
}

// vanished is broken if err says that a record that has to be there is not.
func (p *probe) vanished(k store.Key, err error) error {
	if errors.Is(err, store.ErrNotFound) {
		p.broken("%q: its record has vanished", k.Value)
		return nil
	}
	return err
}
