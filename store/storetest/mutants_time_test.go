package storetest

import (
	"errors"
	"time"

	"github.com/semel-go/semel/store"
)

// afterChange edits the row that a won swap, a settlement or a renewal made.
func afterChange(swap func(old row, p *prop, w *row, now int64), settle func(old row, w *row, s *ending), renew func(w *row)) func(m *model) *hooks {
	return func(m *model) *hooks {
		h := &hooks{model: m}
		if swap != nil {
			h.swap = func(ctx ctxT, seen store.Seen, p prop) (store.Found, error) {
				old, _ := m.row(seen.Key)
				f, err := m.Swap(ctx, seen, p)
				if w, _ := m.row(seen.Key); err == nil && f.Won && w.fence != old.fence {
					m.edit(seen.Key, func(w *row) { swap(old, &p, w, m.clock()) })
					f = m.found(seen.Key, true)
				}
				return f, err
			}
		}
		if settle != nil {
			h.settle = func(ctx ctxT, l lease, s ending) error {
				old, _ := m.row(l.Key)
				err := m.Settle(ctx, l, s)
				if err == nil && old.state == store.Processing {
					m.edit(l.Key, func(w *row) { settle(old, w, &s) })
				}
				return err
			}
		}
		if renew != nil {
			h.renew = func(ctx ctxT, held []lease, d time.Duration) ([]error, error) {
				errs, err := m.Renew(ctx, held, d)
				for _, l := range held {
					m.edit(l.Key, renew)
				}
				return errs, err
			}
		}
		return h
	}
}

// answers changes what comes back from each method that tells the time.
func answers(change func(m *model, f *store.Found)) func(m *model) *hooks {
	return func(m *model) *hooks {
		out := func(f store.Found, err error) (store.Found, error) {
			if err == nil {
				change(m, &f)
			}
			return f, err
		}
		return &hooks{
			model: m,
			claim: func(ctx ctxT, p prop) (store.Found, error) { return out(m.Claim(ctx, p)) },
			swap:  func(ctx ctxT, seen store.Seen, p prop) (store.Found, error) { return out(m.Swap(ctx, seen, p)) },
			get:   func(ctx ctxT, k store.Key) (store.Found, error) { return out(m.Get(ctx, k)) },
		}
	}
}

var timeMutants = []mutant{
	{"the fence counts from one again after a restart", "fence", afterChange(func(_ row, p *prop, w *row, _ int64) {
		if p.Restart {
			w.fence = 1
		}
	}, nil, nil)},
	{"the fence is the clock", "fence", afterChange(func(_ row, _ *prop, w *row, now int64) { w.fence = uint64(now) }, nil, nil)},
	{"the fence stays over a swap", "fence", afterChange(func(old row, _ *prop, w *row, _ int64) { w.fence = old.fence }, nil, nil)},
	{"the fence stays when its owner does", "swap", afterChange(func(old row, p *prop, w *row, _ int64) {
		if old.owner == p.Owner || old.state == store.Unknown {
			w.fence = old.fence
		}
	}, nil, nil)},
	{"the fence is forgotten by a sweep", "fence", func(m *model) *hooks {
		return &hooks{model: m, sweep: func(ctx ctxT, from store.Cursor, limit int) (store.SweepResult, error) {
			res, err := m.Sweep(ctx, from, limit)
			m.mu.Lock()
			m.at.floor = 0
			m.mu.Unlock()
			return res, err
		}}
	}},
	{"the fence counts a key's claims", "fence", func(m *model) *hooks {
		return &hooks{model: m, claim: func(ctx ctxT, p prop) (store.Found, error) {
			_, there := m.row(p.Key)
			f, err := m.Claim(ctx, p)
			if !there {
				m.edit(p.Key, func(w *row) { w.fence = 1 })
				return m.found(p.Key, f.Won), err
			}
			return f, err
		}}
	}},
	{"a settlement moves the fence", "fence", afterChange(nil, func(_ row, w *row, _ *ending) { w.fence++ }, nil)},
	{"a renewal moves the fence", "fence", afterChange(nil, nil, func(w *row) { w.fence++ })},

	{"retention counts from the claim", "expiry", afterChange(nil, func(old row, w *row, s *ending) {
		if w.expires != 0 {
			w.expires = old.created + s.Keep.Microseconds()
		}
	}, nil)},
	{"retention counts from the end of the lease", "expiry", afterChange(nil, func(old row, w *row, s *ending) {
		if w.expires != 0 {
			w.expires = old.until + s.Keep.Microseconds()
		}
	}, nil)},
	{"a release forgets its wait", "expiry", afterChange(nil, func(_ row, w *row, s *ending) {
		if w.state == store.Released {
			w.expires = w.updated + s.Keep.Microseconds()
		}
	}, nil)},
	{"a release lasts for wait and keep", "expiry", afterChange(nil, func(_ row, w *row, s *ending) {
		if w.state == store.Released {
			w.expires = w.updated + (s.Keep + s.Wait).Microseconds()
		}
	}, nil)},
	{"unknown records expire", "expiry", afterChange(nil, func(_ row, w *row, s *ending) {
		if w.state == store.Unknown {
			w.expires = w.updated + s.Keep.Microseconds()
		}
	}, nil)},
	{"Completed is the time of the claim", "expiry", afterChange(nil, func(old row, w *row, _ *ending) {
		if w.completed != 0 {
			w.completed = old.created
		}
	}, nil)},
	{"expired records are absent", "expiry", func(m *model) *hooks {
		return &hooks{model: m, get: func(ctx ctxT, k store.Key) (store.Found, error) {
			f, err := m.Get(ctx, k)
			if err == nil && f.Record.Expired(f.Now) {
				return store.Found{}, store.ErrNotFound
			}
			return f, err
		}}
	}},
	{"a sweep deletes a microsecond early", "expiry", sweepWhere(func(w row, now int64) bool { return dead(w, now+1) }, late)},
	{"a sweep deletes a microsecond late", "expiry", sweepWhere(func(w row, now int64) bool { return dead(w, now-1) }, late)},
	{"a lease lasts a microsecond longer", "expiry", sweepWhere(dead, func(w row, now int64) bool { return late(w, now-1) })},
	{"a lease ends a microsecond early", "expiry", sweepWhere(dead, func(w row, now int64) bool { return late(w, now+1) })},

	{"Now is not given", "clock", answers(func(_ *model, f *store.Found) { f.Now = time.Time{} })},
	{"Now is when the record changed", "clock", answers(func(_ *model, f *store.Found) { f.Now = f.Record.Updated })},
	{"Now is the caller's clock", "clock", answers(func(_ *model, f *store.Found) { f.Now = store.Time(time.Now().UnixMicro()) })},
	{"Now is an hour ahead", "clock", answers(func(_ *model, f *store.Found) { f.Now = f.Now.Add(time.Hour) })},
	{"Now is when the transaction began", "clock", func(m *model) *hooks {
		began := m.clock()
		return answers(func(_ *model, f *store.Found) { f.Now = when(began) })(m)
	}},
	{"times are local", "clock", answers(func(_ *model, f *store.Found) { f.Record.Updated = f.Record.Updated.In(time.FixedZone("local", 3600)) })},
	{"Now is local", "clock", answers(func(_ *model, f *store.Found) { f.Now = f.Now.In(time.FixedZone("local", 3600)) })},
	{"times have nanoseconds", "clock", answers(func(_ *model, f *store.Found) {
		if !f.Record.Until.IsZero() {
			f.Record.Until = f.Record.Until.Add(1)
		}
	})},
	{"the zero time is 1970", "clock", answers(func(_ *model, f *store.Found) {
		if f.Record.Expires.IsZero() {
			f.Record.Expires = time.Unix(0, 0).UTC()
		}
	})},
	{"a lost claim brings no time", "clock", func(m *model) *hooks {
		return &hooks{model: m, claim: func(ctx ctxT, p prop) (store.Found, error) {
			f, err := m.Claim(ctx, p)
			if !f.Won {
				f.Now = time.Time{}
			}
			return f, err
		}}
	}},
}

// sweepWhere sweeps by other conditions.
func sweepWhere(dead, late func(w row, now int64) bool) func(m *model) *hooks {
	return func(m *model) *hooks {
		return &hooks{model: m, sweep: func(ctx ctxT, from store.Cursor, limit int) (store.SweepResult, error) {
			return m.sweep(ctx, from, limit, dead, late)
		}}
	}
}

// sweepChanges changes what a sweep is asked, or gives.
func sweepChanges(fn func(m *model, ctx ctxT, from store.Cursor, limit int) (store.SweepResult, error)) func(m *model) *hooks {
	return func(m *model) *hooks {
		return &hooks{model: m, sweep: func(ctx ctxT, from store.Cursor, limit int) (store.SweepResult, error) {
			return fn(m, ctx, from, limit)
		}}
	}
}

var errNoSweep = errors.New("model: nothing to sweep")

var sweepMutants = []mutant{
	{"deletes unknown records", "sweep", sweepWhere(func(w row, now int64) bool { return dead(w, now) || w.state == store.Unknown }, late)},
	{"deletes lapsed claims", "sweep", sweepWhere(func(w row, now int64) bool { return dead(w, now) || late(w, now) }, late)},
	{"deletes lapsed reservations", "sweep", sweepWhere(func(w row, now int64) bool { return dead(w, now) || late(w, now) && w.state == store.Started }, late)},
	{"deletes all that is terminal", "sweep", sweepWhere(func(w row, now int64) bool { return dead(w, now) || w.state == store.Completed }, late)},
	{"deletes what is old", "sweep", sweepWhere(func(w row, now int64) bool { return dead(w, now) || w.updated < now-1e6 }, late)},
	{"keeps failures for ever", "sweep", sweepWhere(func(w row, now int64) bool { return dead(w, now) && w.state != store.Failed }, late)},
	{"keeps releases for ever", "sweep", sweepWhere(func(w row, now int64) bool { return dead(w, now) && w.state != store.Released }, late)},
	{"hands back live claims", "sweep", sweepWhere(dead, func(w row, now int64) bool { return late(w, now) || w.state == store.Processing })},
	{"hands back unknown records", "sweep", sweepWhere(dead, func(w row, now int64) bool { return late(w, now) || w.state == store.Unknown })},
	{"hands back no reservation", "sweep", sweepWhere(dead, func(w row, now int64) bool { return late(w, now) && w.state != store.Started })},
	{"hands back nothing", "sweep", sweepWhere(dead, func(row, int64) bool { return false })},
	{"counts the lapsed beside the limit", "sweep", sweepChanges(func(m *model, ctx ctxT, from store.Cursor, limit int) (store.SweepResult, error) {
		res, err := m.sweep(ctx, from, limit, dead, func(row, int64) bool { return false })
		more, _ := m.sweep(ctx, from, limit, func(row, int64) bool { return false }, late)
		res.Lapsed = more.Lapsed
		return res, err
	})},
	{"has no limit", "sweep", sweepChanges(func(m *model, ctx ctxT, from store.Cursor, _ int) (store.SweepResult, error) {
		return m.Sweep(ctx, from, 1<<30)
	})},
	{"never says that it is over", "sweep", sweepChanges(func(m *model, ctx ctxT, from store.Cursor, limit int) (store.SweepResult, error) {
		res, err := m.Sweep(ctx, "", limit)
		res.Next = "more"
		return res, err
	})},
	{"says that it is over at the limit", "sweep", sweepChanges(func(m *model, ctx ctxT, from store.Cursor, limit int) (store.SweepResult, error) {
		res, err := m.Sweep(ctx, from, limit)
		res.Next = ""
		return res, err
	})},
	{"begins again at each step", "sweep", sweepChanges(func(m *model, ctx ctxT, _ store.Cursor, limit int) (store.SweepResult, error) {
		return m.Sweep(ctx, "", limit)
	})},
	{"skips a record at each step", "sweep", sweepChanges(func(m *model, ctx ctxT, from store.Cursor, limit int) (store.SweepResult, error) {
		if from != "" {
			from += "\xff"
		}
		return m.Sweep(ctx, from, limit)
	})},
	{"counts what it did not delete", "sweep", sweepChanges(func(m *model, ctx ctxT, from store.Cursor, limit int) (store.SweepResult, error) {
		res, err := m.Sweep(ctx, from, limit)
		if res.Deleted > 0 && res.Deleted < limit {
			res.Deleted++
		}
		return res, err
	})},
	{"an empty store is an error", "sweep", sweepChanges(func(m *model, ctx ctxT, from store.Cursor, limit int) (store.SweepResult, error) {
		res, err := m.Sweep(ctx, from, limit)
		if res.Deleted == 0 && err == nil && len(res.Lapsed) == 0 {
			err = errNoSweep
		}
		return res, err
	})},
	{"hands back half a record", "sweep", sweepChanges(func(m *model, ctx ctxT, from store.Cursor, limit int) (store.SweepResult, error) {
		res, err := m.Sweep(ctx, from, limit)
		for i := range res.Lapsed {
			res.Lapsed[i].Fingerprint = store.Fingerprint{}
		}
		return res, err
	})},
	{"releases what has lapsed by itself", "sweep", sweepChanges(func(m *model, ctx ctxT, from store.Cursor, limit int) (store.SweepResult, error) {
		res, err := m.Sweep(ctx, from, limit)
		for _, r := range res.Lapsed {
			m.edit(r.Key, func(w *row) { w.state = store.Released })
		}
		return res, err
	})},
	{"selects and then deletes", "sweep", sweepChanges(func(m *model, ctx ctxT, from store.Cursor, limit int) (store.SweepResult, error) {
		var chosen []store.Key
		m.mu.Lock()
		for k, w := range m.at.rows {
			if dead(w, m.clock()) && len(chosen) < limit {
				chosen = append(chosen, k)
			}
		}
		m.mu.Unlock()
		yield()
		m.mu.Lock()
		for _, k := range chosen {
			delete(m.at.rows, k)
		}
		m.mu.Unlock()
		res, err := m.sweep(ctx, from, limit-len(chosen), func(row, int64) bool { return false }, late)
		res.Deleted = len(chosen)
		return res, err
	})},
	{"each of two sweeps counts what either deleted", "sweep", sweepChanges(func(m *model, ctx ctxT, from store.Cursor, limit int) (store.SweepResult, error) {
		n := 0
		m.mu.Lock()
		for _, w := range m.at.rows {
			if dead(w, m.clock()) && n < limit {
				n++
			}
		}
		m.mu.Unlock()
		yield()
		res, err := m.Sweep(ctx, from, limit)
		res.Deleted = max(n, res.Deleted)
		return res, err
	})},
}
