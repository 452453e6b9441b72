package storetest

import (
	"bytes"
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/semel-go/semel/store"
)

// model is a second reading of the protocol, written from its rules and not
// from the code of package store: it shares no function with the memory store
// but the types. Times are microseconds, 0 for none.
type model struct {
	writing sync.Mutex // held by a change, and by a transaction to its end
	mu      sync.Mutex // guards what follows
	clock   func() int64
	at      book
	effects []string
}

// book is what a model holds.
type book struct {
	rows  map[store.Key]row
	steps map[store.Key][]store.Step
	floor uint64
	flaw  journalFlaw
	erase eraseFlaw
}

type row struct {
	state                                       store.State
	policy                                      store.Policy
	owner                                       store.Owner
	fence                                       uint64
	holder, err                                 string
	print                                       store.Fingerprint
	attempt                                     int
	out                                         store.Outcome
	until, created, updated, completed, expires int64
	former                                      []store.FormerOwner
}

func newModel(clock func() int64) *model {
	return &model{clock: clock, at: book{rows: map[store.Key]row{}, steps: map[store.Key][]store.Step{}}}
}

func when(us int64) time.Time {
	if us == 0 {
		return time.Time{}
	}
	return time.Unix(us/1e6, us%1e6*1e3).UTC()
}

func (w row) record(k store.Key) store.Record {
	return store.Record{
		Key: k, State: w.state, Policy: w.policy, Fence: w.fence, Owner: w.owner, Holder: w.holder, Fingerprint: w.print, Attempt: w.attempt,
		Until: when(w.until), Outcome: w.out, LastError: w.err, Created: when(w.created), Updated: when(w.updated),
		Completed: when(w.completed), Expires: when(w.expires), Format: 1, FormerOwners: w.former,
	}
}

// written is the row that p makes at now, above a fence.
func written(p *store.Proposal, now int64, above uint64, created int64) row {
	w := row{
		policy: p.Policy, owner: p.Owner, holder: p.Holder, print: p.Fingerprint, created: created, fence: uint64(now),
	}
	if w.fence <= above {
		w.fence = above + 1
	}
	return ended(w, p.State, p.Attempt, p.Error, p.Outcome, p.Lease, p.Keep, now)
}

// ended is w in a new state, with the times and the outcome that it has there.
func ended(w row, s store.State, attempt int, text string, out store.Outcome, wait, keep time.Duration, now int64) row {
	w.state, w.attempt, w.err, w.updated = s, attempt, text, now
	w.until, w.completed, w.expires, w.out = 0, 0, 0, store.Outcome{}
	over := now + keep.Microseconds()
	switch s.String() {
	case "started", "processing":
		w.until = now + wait.Microseconds()
	case "released":
		w.until = now + wait.Microseconds()
		w.expires = over
		if over < w.until {
			w.expires = w.until
		}
	case "completed", "failed":
		w.completed, w.expires, w.out = now, over, out.Clone()
	}
	return w
}

func (w *row) wonBy(p *store.Proposal) bool {
	return p.Owner != store.Owner{} && w.owner == p.Owner && w.state == p.State
}

func (b *book) claim(p *store.Proposal, now int64) (row, bool) {
	w, there := b.rows[p.Key]
	if !there {
		w = written(p, now, b.floor, now)
		b.rows[p.Key] = w
	}
	return w, w.wonBy(p)
}

func (b *book) swap(seen store.Seen, p *store.Proposal, now int64) (row, bool, bool) {
	w, there := b.rows[seen.Key]
	if !there {
		return row{}, false, false
	}
	if w.state == seen.State && w.owner == seen.Owner && w.fence == seen.Fence && when(w.until).Equal(seen.Until) && when(w.expires).Equal(seen.Expires) {
		created := w.created
		if p.Restart {
			created = now
			if !b.flaw.keepsOnRestart {
				delete(b.steps, seen.Key)
			}
		}
		if b.flaw.dropsOnSwap {
			delete(b.steps, seen.Key)
		}
		w = written(p, now, w.fence, created)
		w.former = slices.Clone(p.FormerOwners)
		b.rows[seen.Key] = w
	}
	return w, w.wonBy(p), true
}

func (b *book) settle(l store.Lease, s *store.Settlement, now int64) error {
	w, there := b.rows[l.Key]
	if !there || w.owner != l.Owner || w.fence != l.Fence {
		return store.ErrLeaseLost
	}
	if w.state == store.Processing {
		if b.flaw.dropsOnSettle {
			delete(b.steps, l.Key)
		}
		b.rows[l.Key] = ended(w, s.State, s.Attempt, s.Error, s.Outcome, s.Wait, s.Keep, now)
		return nil
	}
	kept := w.state == store.Completed || w.state == store.Failed
	if w.state != s.State || kept && !alike(w.out, s.Outcome) {
		return store.ErrLeaseLost
	}
	return nil
}

func alike(a, b store.Outcome) bool {
	if a.Code != b.Code || a.Codec != b.Codec || a.Gone != b.Gone || !bytes.Equal(a.Body, b.Body) || len(a.Header) != len(b.Header) {
		return false
	}
	for i, h := range a.Header {
		if h.Name != b.Header[i].Name || h.Value != b.Header[i].Value {
			return false
		}
	}
	return true
}

// change runs fn alone, on the book and at one time.
func (m *model) change(ctx context.Context, fn func(b *book, now int64) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	m.writing.Lock()
	defer m.writing.Unlock()
	m.mu.Lock()
	defer m.mu.Unlock()
	return fn(&m.at, m.clock())
}

func (m *model) Claim(ctx context.Context, p store.Proposal) (f store.Found, err error) {
	err = m.change(ctx, func(b *book, now int64) error {
		w, won := b.claim(&p, now)
		f = store.Found{Record: w.record(p.Key), Won: won, Now: when(now)}
		return nil
	})
	return f, err
}

func (m *model) Swap(ctx context.Context, seen store.Seen, p store.Proposal) (f store.Found, err error) {
	err = m.change(ctx, func(b *book, now int64) error {
		w, won, there := b.swap(seen, &p, now)
		if !there {
			return store.ErrNotFound
		}
		f = store.Found{Record: w.record(seen.Key), Won: won, Now: when(now)}
		return nil
	})
	return f, err
}

func (m *model) Renew(ctx context.Context, held []store.Lease, d time.Duration) (errs []error, err error) {
	err = m.change(ctx, func(b *book, now int64) error {
		for _, l := range held {
			w, there := b.rows[l.Key]
			if !there || w.owner != l.Owner || w.fence != l.Fence || w.state != store.Processing {
				errs = append(errs, store.ErrLeaseLost)
				continue
			}
			w.until, w.updated = now+d.Microseconds(), now
			b.rows[l.Key] = w
			errs = append(errs, nil)
		}
		return nil
	})
	return errs, err
}

func (m *model) Settle(ctx context.Context, l store.Lease, s store.Settlement) error {
	return m.change(ctx, func(b *book, now int64) error { return b.settle(l, &s, now) })
}

func (m *model) Get(ctx context.Context, k store.Key) (store.Found, error) {
	if err := ctx.Err(); err != nil {
		return store.Found{}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	w, there := m.at.rows[k]
	if !there {
		return store.Found{}, store.ErrNotFound
	}
	return store.Found{Record: w.record(k), Now: when(m.clock())}, nil
}

func dead(w row, now int64) bool { return w.expires != 0 && w.expires <= now }

func late(w row, now int64) bool {
	return (w.state == store.Started || w.state == store.Processing) && w.until <= now
}

func (m *model) Sweep(ctx context.Context, from store.Cursor, limit int) (store.SweepResult, error) {
	return m.sweep(ctx, from, limit, dead, late)
}

// sweep goes through the keys in order; the cursor is the last one done.
func (m *model) sweep(ctx context.Context, from store.Cursor, limit int, dead, late func(w row, now int64) bool) (res store.SweepResult, err error) {
	order := func(k store.Key) string { return k.Operation + "\x00" + k.Tenant + "\x00" + k.Value }
	err = m.change(ctx, func(b *book, now int64) error {
		res.Now = when(now)
		keys := slices.SortedFunc(maps.Keys(b.rows), func(x, y store.Key) int { return strings.Compare(order(x), order(y)) })
		for _, k := range keys {
			w := b.rows[k]
			if order(k) <= string(from) || !dead(w, now) && !late(w, now) {
				continue
			}
			if limit--; limit < 0 {
				return nil
			}
			res.Next = store.Cursor(order(k))
			if dead(w, now) {
				b.floor = max(b.floor, w.fence)
				delete(b.rows, k)
				if !b.flaw.keepsOnSweep {
					delete(b.steps, k)
				}
				res.Deleted++
			} else {
				res.Lapsed = append(res.Lapsed, w.record(k))
			}
		}
		res.Next = ""
		return nil
	})
	return res, err
}
