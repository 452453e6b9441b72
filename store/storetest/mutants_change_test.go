package storetest

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync/atomic"
	"time"

	"github.com/semel-go/semel/store"
)

type (
	ctxT = context.Context
	prop = store.Proposal
)

// yield lets the others of a pack come between.
func yield() {
	for range 20 {
		runtime.Gosched()
	}
}

var claimMutants = []mutant{
	{"checks and then sets", "claim", func(m *model) *hooks {
		return &hooks{model: m, claim: func(ctx ctxT, p prop) (store.Found, error) {
			if _, there := m.row(p.Key); there {
				return m.Claim(ctx, p)
			}
			yield()
			m.mu.Lock()
			m.at.rows[p.Key] = written(&p, m.clock(), 0, m.clock())
			m.mu.Unlock()
			return m.found(p.Key, true), nil
		}}
	}},
	{"a lost race goes on as if it were won", "claim", func(m *model) *hooks {
		return &hooks{model: m, claim: func(ctx ctxT, p prop) (store.Found, error) {
			_, there := m.row(p.Key)
			yield()
			f, err := m.Claim(ctx, p)
			f.Won = f.Won || !there
			return f, err
		}}
	}},
	{"own claim is taken for a conflict", "claim", func(m *model) *hooks {
		return &hooks{model: m, claim: func(ctx ctxT, p prop) (store.Found, error) {
			_, there := m.row(p.Key)
			f, err := m.Claim(ctx, p)
			f.Won = f.Won && !there
			return f, err
		}}
	}},
	{"the owner alone makes a claim won", "claim", func(m *model) *hooks {
		return &hooks{model: m, claim: func(ctx ctxT, p prop) (store.Found, error) {
			f, err := m.Claim(ctx, p)
			f.Won = f.Record.Owner == p.Owner
			return f, err
		}}
	}},
	{"nobody's claim is everybody's", "claim", func(m *model) *hooks {
		return &hooks{model: m, claim: func(ctx ctxT, p prop) (store.Found, error) {
			f, err := m.Claim(ctx, p)
			f.Won = f.Won || err == nil && p.Owner == store.Owner{} && f.Record.Owner == p.Owner
			return f, err
		}}
	}},
	{"a claim takes an expired record", "claim", claimTakes(func(f store.Found) bool { return f.Record.Expired(f.Now) })},
	{"a claim takes a lapsed claim", "claim", claimTakes(func(f store.Found) bool { return f.Record.Lapsed(f.Now) })},
	{"a claim takes a released record", "claim", claimTakes(func(f store.Found) bool { return f.Record.State == store.Released })},
	{"a loser gets its own proposal back", "claim", func(m *model) *hooks {
		return &hooks{model: m, claim: func(ctx ctxT, p prop) (store.Found, error) {
			f, err := m.Claim(ctx, p)
			if !f.Won {
				f.Record = p.Insert(f.Now, 0)
			}
			return f, err
		}}
	}},
	{"a lost claim counts an attempt", "claim", func(m *model) *hooks {
		return &hooks{model: m, claim: func(ctx ctxT, p prop) (store.Found, error) {
			f, err := m.Claim(ctx, p)
			if !f.Won {
				m.edit(p.Key, func(w *row) { w.attempt++ })
			}
			return f, err
		}}
	}},
	{"a resent claim renews its lease", "claim", func(m *model) *hooks {
		return &hooks{model: m, claim: func(ctx ctxT, p prop) (store.Found, error) {
			_, there := m.row(p.Key)
			f, err := m.Claim(ctx, p)
			if f.Won && there {
				m.edit(p.Key, func(w *row) { w.fence++ })
			}
			return f, err
		}}
	}},
	{"batched answers are mixed up", "claim", func(m *model) *hooks {
		var last atomic.Pointer[store.Found]
		return &hooks{model: m, claim: func(ctx ctxT, p prop) (store.Found, error) {
			f, err := m.Claim(ctx, p)
			if other := last.Swap(&f); other != nil {
				return *other, err
			}
			return f, err
		}}
	}},
}

func claimTakes(take func(f store.Found) bool) func(m *model) *hooks {
	return func(m *model) *hooks {
		return &hooks{model: m, claim: func(ctx ctxT, p prop) (store.Found, error) {
			f, err := m.Claim(ctx, p)
			if err == nil && !f.Won && take(f) {
				return m.Swap(ctx, f.Record.Seen(), p)
			}
			return f, err
		}}
	}
}

// swapIgnores copies a field of the stored record into seen, so that the swap
// does not compare it.
func swapIgnores(field func(seen, stored *store.Seen)) func(m *model) *hooks {
	return func(m *model) *hooks {
		return &hooks{model: m, swap: func(ctx ctxT, seen store.Seen, p prop) (store.Found, error) {
			if w, there := m.row(seen.Key); there {
				r := w.record(seen.Key)
				stored := r.Seen()
				field(&seen, &stored)
			}
			return m.Swap(ctx, seen, p)
		}}
	}
}

// swapChanges changes a proposal, or the row that a won swap has made.
func swapChanges(before func(old row, p *prop), after func(old row, p *prop, w *row)) func(m *model) *hooks {
	return func(m *model) *hooks {
		return &hooks{model: m, swap: func(ctx ctxT, seen store.Seen, p prop) (store.Found, error) {
			old, _ := m.row(seen.Key)
			sent := p
			if before != nil {
				before(old, &p)
			}
			f, err := m.Swap(ctx, seen, p)
			if after != nil && f.Won && err == nil {
				m.edit(seen.Key, func(w *row) { after(old, &sent, w) })
				f = m.found(seen.Key, true)
			}
			return f, err
		}}
	}
}

var swapMutants = []mutant{
	{"compares no state", "swap", swapIgnores(func(seen, stored *store.Seen) { seen.State = stored.State })},
	{"compares no owner", "swap", swapIgnores(func(seen, stored *store.Seen) { seen.Owner = stored.Owner })},
	{"compares half of the owner", "swap", swapIgnores(func(seen, stored *store.Seen) { copy(seen.Owner[8:], stored.Owner[8:]) })},
	{"compares no fence", "swap", swapIgnores(func(seen, stored *store.Seen) { seen.Fence = stored.Fence })},
	{"takes a higher fence for the same", "swap", swapIgnores(func(seen, stored *store.Seen) { seen.Fence = min(seen.Fence, stored.Fence) })},
	{"compares no until", "swap", swapIgnores(func(seen, stored *store.Seen) { seen.Until = stored.Until })},
	{"compares no expires", "swap", swapIgnores(func(seen, stored *store.Seen) { seen.Expires = stored.Expires })},
	{"compares times to the millisecond", "swap", swapIgnores(func(seen, stored *store.Seen) {
		if seen.Until.Truncate(time.Millisecond).Equal(stored.Until.Truncate(time.Millisecond)) {
			seen.Until = stored.Until
		}
	})},
	{"compares nothing", "swap", swapIgnores(func(seen, stored *store.Seen) { *seen = *stored })},
	{"refuses to swap a live claim", "swap", func(m *model) *hooks {
		return &hooks{model: m, swap: func(ctx ctxT, seen store.Seen, p prop) (store.Found, error) {
			if f := m.found(seen.Key, false); f.Record.State == store.Processing && f.Now.Before(f.Record.Until) {
				return f, nil
			}
			return m.Swap(ctx, seen, p)
		}}
	}},
	{"takes an expired record for absent", "swap", func(m *model) *hooks {
		return &hooks{model: m, swap: func(ctx ctxT, seen store.Seen, p prop) (store.Found, error) {
			if f := m.found(seen.Key, false); f.Record.Expired(f.Now) {
				return store.Found{}, store.ErrNotFound
			}
			return m.Swap(ctx, seen, p)
		}}
	}},
	{"own swap is not found again", "swap", func(m *model) *hooks {
		return &hooks{model: m, swap: func(ctx ctxT, seen store.Seen, p prop) (store.Found, error) {
			f, err := m.Swap(ctx, seen, p)
			f.Won = f.Won && f.Record.Fence == p.Replace(&store.Record{Fence: seen.Fence}, f.Record.Updated).Fence && m.first(p.Owner)
			return f, err
		}}
	}},
	{"inserts if there is nothing", "swap", func(m *model) *hooks {
		return &hooks{model: m, swap: func(ctx ctxT, seen store.Seen, p prop) (store.Found, error) {
			f, err := m.Swap(ctx, seen, p)
			if errors.Is(err, store.ErrNotFound) {
				return m.Claim(ctx, p)
			}
			return f, err
		}}
	}},
	{"says not found when it loses", "swap", func(m *model) *hooks {
		return &hooks{model: m, swap: func(ctx ctxT, seen store.Seen, p prop) (store.Found, error) {
			f, err := m.Swap(ctx, seen, p)
			if err == nil && !f.Won {
				return store.Found{}, store.ErrNotFound
			}
			return f, err
		}}
	}},
	{"compares and then sets", "swap", func(m *model) *hooks {
		return &hooks{model: m, swap: func(ctx ctxT, seen store.Seen, p prop) (store.Found, error) {
			w, there := m.row(seen.Key)
			r := w.record(seen.Key)
			if !there || r.Seen() != seen {
				return m.Swap(ctx, seen, p)
			}
			yield()
			m.edit(seen.Key, func(w *row) { *w = written(&p, m.clock(), w.fence, w.created) })
			return m.found(seen.Key, true), nil
		}}
	}},
	{"a restart keeps Created", "swap", swapChanges(func(_ row, p *prop) { p.Restart = false }, nil)},
	{"each swap restarts", "swap", swapChanges(func(_ row, p *prop) { p.Restart = true }, nil)},
	{"keeps the outcome of before", "swap", swapChanges(nil, func(old row, _ *prop, w *row) {
		if w.out.Code == 0 {
			w.out = old.out
		}
	})},
	{"keeps Expires of before", "swap", swapChanges(nil, func(old row, _ *prop, w *row) { w.expires = max(w.expires, old.expires) })},
	{"keeps Completed of before", "swap", swapChanges(nil, func(old row, _ *prop, w *row) { w.completed = max(w.completed, old.completed) })},
	{"keeps the holder of before", "swap", swapChanges(func(old row, p *prop) { p.Holder = old.holder + "'" }, nil)},
	{"keeps the error of before", "swap", swapChanges(nil, func(old row, _ *prop, w *row) { w.err += old.err })},
	{"never weakens the policy by itself", "record", swapChanges(func(old row, p *prop) { p.Policy = store.Retry }, nil)},
}

// first reports whether this is the first time that it hears of o.
func (m *model) first(o store.Owner) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	name := string(o[:])
	if slices.Contains(m.effects, name) {
		return false
	}
	m.effects = append(m.effects, name)
	return true
}
