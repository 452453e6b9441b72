package storetest

import (
	"errors"
	"slices"
	"time"

	"github.com/semel-go/semel/store"
)

// renewWith replaces what a renewal does with one lease.
func renewWith(fn func(m *model, l lease, d time.Duration, w row, there bool) (lease, time.Duration, error)) func(m *model) *hooks {
	return func(m *model) *hooks {
		return &hooks{model: m, renew: func(ctx ctxT, held []lease, d time.Duration) ([]error, error) {
			errs := make([]error, len(held))
			for i, l := range held {
				w, there := m.row(l.Key)
				l, d, err := fn(m, l, d, w, there)
				if errs[i] = err; err == nil && d != 0 {
					one, err := m.Renew(ctx, []lease{l}, d)
					if err != nil {
						return nil, err
					}
					errs[i] = one[0]
				}
			}
			return errs, ctx.Err()
		}}
	}
}

// renewBatch replaces what a renewal does with all.
func renewBatch(fn func(m *model, ctx ctxT, held []lease, d time.Duration) ([]error, error)) func(m *model) *hooks {
	return func(m *model) *hooks {
		return &hooks{model: m, renew: func(ctx ctxT, held []lease, d time.Duration) ([]error, error) { return fn(m, ctx, held, d) }}
	}
}

var renewMutants = []mutant{
	{"renews without comparing the fence", "renew", renewWith(func(_ *model, l lease, d time.Duration, w row, _ bool) (lease, time.Duration, error) {
		l.Fence = w.fence
		return l, d, nil
	})},
	{"renews without comparing the owner", "renew", renewWith(func(_ *model, l lease, d time.Duration, w row, _ bool) (lease, time.Duration, error) {
		l.Owner = w.owner
		return l, d, nil
	})},
	{"renews nothing", "renew", renewWith(func(_ *model, l lease, _ time.Duration, w row, _ bool) (lease, time.Duration, error) {
		if w.owner != l.Owner || w.fence != l.Fence || w.state != store.Processing {
			return l, 0, store.ErrLeaseLost
		}
		return l, 0, nil
	})},
	{"renews but never to an earlier time", "renew", renewWith(func(m *model, l lease, d time.Duration, w row, _ bool) (lease, time.Duration, error) {
		return l, max(d, time.Duration(w.until-m.clock())*time.Microsecond), nil
	})},
	{"renews from the end of the lease", "renew", renewWith(func(m *model, l lease, d time.Duration, w row, _ bool) (lease, time.Duration, error) {
		return l, d + max(0, time.Duration(w.until-m.clock())*time.Microsecond), nil
	})},
	{"renewing inserts", "renew", renewWith(func(m *model, l lease, d time.Duration, _ row, there bool) (lease, time.Duration, error) {
		if !there {
			w := written(&prop{Key: l.Key, State: store.Processing, Owner: l.Owner}, m.clock(), 0, m.clock())
			m.mu.Lock()
			m.at.rows[l.Key] = w
			m.mu.Unlock()
			l.Fence = w.fence
		}
		return l, d, nil
	})},
	{"renews a reservation", "renew", renewWith(func(m *model, l lease, d time.Duration, w row, _ bool) (lease, time.Duration, error) {
		if w.state == store.Started {
			m.edit(l.Key, func(w *row) { w.until = m.clock() + d.Microseconds() })
			return l, 0, nil
		}
		return l, d, nil
	})},
	{"a lapsed claim is not renewed", "renew", renewWith(func(m *model, l lease, d time.Duration, w row, _ bool) (lease, time.Duration, error) {
		if w.until <= m.clock() {
			return l, 0, store.ErrLeaseLost
		}
		return l, d, nil
	})},
	{"renewing changes what is kept with the claim", "renew", renewWith(func(m *model, l lease, d time.Duration, _ row, _ bool) (lease, time.Duration, error) {
		m.edit(l.Key, func(w *row) { w.created = m.clock() })
		return l, d, nil
	})},
	{"renewing does not touch Updated", "renew", func(m *model) *hooks {
		return &hooks{model: m, renew: func(ctx ctxT, held []lease, d time.Duration) ([]error, error) {
			errs, err := m.Renew(ctx, held, d)
			for _, l := range held {
				m.edit(l.Key, func(w *row) { w.updated = w.created })
			}
			return errs, err
		}}
	}},
	{"one lost lease loses all", "renew", renewBatch(func(m *model, ctx ctxT, held []lease, d time.Duration) ([]error, error) {
		errs, err := m.Renew(ctx, held, d)
		if slices.ContainsFunc(errs, func(err error) bool { return err != nil }) {
			for i := range errs {
				errs[i] = store.ErrLeaseLost
			}
		}
		return errs, err
	})},
	{"a lost lease fails the batch", "renew", renewBatch(func(m *model, ctx ctxT, held []lease, d time.Duration) ([]error, error) {
		errs, err := m.Renew(ctx, held, d)
		return errs, errors.Join(append(errs, err)...)
	})},
	{"results come in another order", "renew", renewBatch(func(m *model, ctx ctxT, held []lease, d time.Duration) ([]error, error) {
		errs, err := m.Renew(ctx, held, d)
		slices.Reverse(errs)
		return errs, err
	})},
	{"only a hundred are renewed", "renew", renewBatch(func(m *model, ctx ctxT, held []lease, d time.Duration) ([]error, error) {
		errs, err := m.Renew(ctx, held[:min(100, len(held))], d)
		return append(errs, make([]error, len(held)-len(errs))...), err
	})},
	{"the lost are left out of the results", "renew", renewBatch(func(m *model, ctx ctxT, held []lease, d time.Duration) ([]error, error) {
		errs, err := m.Renew(ctx, held, d)
		return slices.DeleteFunc(errs, func(err error) bool { return err != nil }), err
	})},
	{"a lease that comes twice is lost", "renew", renewBatch(func(m *model, ctx ctxT, held []lease, d time.Duration) ([]error, error) {
		errs, err := m.Renew(ctx, held, d)
		for i, l := range held {
			if slices.Contains(held[:i], l) {
				errs[i] = store.ErrLeaseLost
			}
		}
		return errs, err
	})},
	{"an empty batch is an error", "renew", renewBatch(func(m *model, ctx ctxT, held []lease, d time.Duration) ([]error, error) {
		if len(held) == 0 {
			return nil, errors.New("syntax error at or near \")\"")
		}
		return m.Renew(ctx, held, d)
	})},
	{"renewing is not seen by a swap", "renew", func(m *model) *hooks {
		return swapIgnores(func(seen, stored *store.Seen) { seen.Until = stored.Until })(m)
	}},
}
