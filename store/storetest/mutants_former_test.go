package storetest

import (
	"slices"

	"github.com/semel-go/semel/store"
)

// formerOwnersBy is a store that keeps other former owners than a swap proposes.
func formerOwnersBy(fn func(old row, p *prop) []store.FormerOwner) func(m *model) *hooks {
	return swapChanges(func(old row, p *prop) { p.FormerOwners = fn(old, p) }, nil)
}

var formerOwnerMutants = []mutant{
	{"no former owner is kept", "former owners", formerOwnersBy(func(row, *prop) []store.FormerOwner { return nil })},
	{"the former owners grow without a limit", "former owners", formerOwnersBy(func(old row, p *prop) []store.FormerOwner {
		if len(p.FormerOwners) == 0 {
			return nil
		}
		return append(slices.Clone(old.former), p.FormerOwners[len(p.FormerOwners)-1])
	})},
	{"the first former owners are kept, not the last", "former owners", formerOwnersBy(func(old row, p *prop) []store.FormerOwner {
		if len(old.former) == 8 {
			return old.former
		}
		return p.FormerOwners
	})},
	{"seven former owners are kept", "former owners", formerOwnersBy(func(_ row, p *prop) []store.FormerOwner {
		return p.FormerOwners[max(0, len(p.FormerOwners)-7):]
	})},
	{"former owners outlive a restart", "former owners", formerOwnersBy(func(old row, p *prop) []store.FormerOwner {
		if p.Restart {
			return old.former
		}
		return p.FormerOwners
	})},
	{"an owner's end is not kept", "former owners", formerOwnersBy(func(_ row, p *prop) []store.FormerOwner {
		changed := slices.Clone(p.FormerOwners)
		for i := range changed {
			changed[i].State = store.Processing
		}
		return changed
	})},
	{"a settlement drops the former owners", "former owners", settleWith(func(m *model, ctx ctxT, l lease, s ending, _ row, _ bool) error {
		err := m.Settle(ctx, l, s)
		m.edit(l.Key, func(w *row) { w.former = nil })
		return err
	})},
	{"a claim's answer has no former owners", "former owners", func(m *model) *hooks {
		return &hooks{model: m, claim: func(ctx ctxT, p prop) (store.Found, error) {
			f, err := m.Claim(ctx, p)
			f.Record.FormerOwners = nil
			return f, err
		}}
	}},
	{"a sweep's answer has no former owners", "former owners", func(m *model) *hooks {
		return &hooks{model: m, sweep: func(ctx ctxT, from store.Cursor, limit int) (store.SweepResult, error) {
			res, err := m.Sweep(ctx, from, limit)
			for i := range res.Lapsed {
				res.Lapsed[i].FormerOwners = nil
			}
			return res, err
		}}
	}},
	{"a swap that lost gives no former owners", "former owners", func(m *model) *hooks {
		return &hooks{model: m, swap: func(ctx ctxT, seen store.Seen, p prop) (store.Found, error) {
			f, err := m.Swap(ctx, seen, p)
			if !f.Won {
				f.Record.FormerOwners = nil
			}
			return f, err
		}}
	}},
}
