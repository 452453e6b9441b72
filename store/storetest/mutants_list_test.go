package storetest

import (
	"context"
	"iter"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/semel-go/semel/store"
)

// listWith is a model that can be searched by conditions of its own.
func listWith(match func(f store.Filter, r *store.Record, now time.Time) bool) func(m *model) *hooks {
	return listSeq(func(m *model, _ ctxT, f store.Filter, yield func(store.Found, error) bool) { m.search(f, match, yield) })
}

// listSeq is a model that can be searched, if the context is not over.
func listSeq(seq func(m *model, ctx ctxT, f store.Filter, yield func(store.Found, error) bool)) func(m *model) *hooks {
	return listAnyway(func(m *model, ctx ctxT, f store.Filter, yield func(store.Found, error) bool) {
		if err := ctx.Err(); err != nil {
			yield(store.Found{}, err)
			return
		}
		seq(m, ctx, f, yield)
	})
}

func listAnyway(seq func(m *model, ctx ctxT, f store.Filter, yield func(store.Found, error) bool)) func(m *model) *hooks {
	return func(m *model) *hooks {
		return &hooks{model: m, list: func(ctx context.Context, f store.Filter) iter.Seq2[store.Found, error] {
			return func(yield func(store.Found, error) bool) { seq(m, ctx, f, yield) }
		}}
	}
}

// search gives the rows that match.
func (m *model) search(f store.Filter, match func(f store.Filter, r *store.Record, now time.Time) bool, yield func(store.Found, error) bool) {
	m.mu.Lock()
	now := when(m.clock())
	var all []store.Found
	for k, w := range m.at.rows {
		if r := w.record(k); match(f, &r, now) {
			all = append(all, store.Found{Record: r, Now: now})
		}
	}
	m.mu.Unlock()
	for i, fd := range all {
		if f.Limit > 0 && i >= f.Limit || !yield(fd, nil) {
			return
		}
	}
}

func matches(f store.Filter, r *store.Record, now time.Time) bool { return f.Match(r, now) }

func TestRun_ModelWithList_Passes(t *testing.T) {
	h := mutantHarness(mutant{make: listWith(matches)})
	runChecks(t, &h, listChecks)
}

// doubtSet is a model that finds the records in doubt by a set of their keys, which it
// changes only after the given operations.
func doubtSet(claims, swaps, settles, leaves bool) func(m *model) *hooks {
	return func(m *model) *hooks {
		keys := map[store.Key]bool{}
		h := listWith(matches)(m)
		all := h.list
		h.claim = func(ctx ctxT, p prop) (store.Found, error) {
			f, err := m.Claim(ctx, p)
			if claims && f.Won && p.State == store.Unknown {
				keys[p.Key] = true
			}
			return f, err
		}
		h.swap = func(ctx ctxT, seen store.Seen, p prop) (store.Found, error) {
			f, err := m.Swap(ctx, seen, p)
			if swaps && f.Won && p.State == store.Unknown {
				keys[p.Key] = true
			} else if leaves && f.Won {
				delete(keys, p.Key)
			}
			return f, err
		}
		h.settle = func(ctx ctxT, l store.Lease, s store.Settlement) error {
			err := m.Settle(ctx, l, s)
			if settles && err == nil && s.State == store.Unknown {
				keys[l.Key] = true
			}
			return err
		}
		h.list = func(ctx context.Context, f store.Filter) iter.Seq2[store.Found, error] {
			if !f.InDoubt() {
				return all(ctx, f)
			}
			return func(yield func(store.Found, error) bool) {
				f.States = nil // the set is believed
				m.search(f, func(f store.Filter, r *store.Record, now time.Time) bool { return keys[r.Key] && f.Match(r, now) }, yield)
			}
		}
		return h
	}
}

var listMutants = []mutant{
	{"a claim in doubt is not listed", "list", doubtSet(false, true, true, true)},
	{"a swap into doubt is not listed", "list", doubtSet(true, false, true, true)},
	{"a settlement into doubt is not listed", "list", doubtSet(true, true, false, true)},
	{"the end of a doubt is not listed", "list", doubtSet(true, true, true, false)},
	{"the operation is not looked at", "list", listWith(func(f store.Filter, r *store.Record, now time.Time) bool {
		f.Operation = ""
		return f.Match(r, now)
	})},
	{"the operation is a prefix", "list", listWith(func(f store.Filter, r *store.Record, now time.Time) bool {
		if strings.HasPrefix(r.Key.Operation, f.Operation) {
			f.Operation = ""
		}
		return f.Match(r, now)
	})},
	{"the operation is a pattern", "list", listWith(func(f store.Filter, r *store.Record, now time.Time) bool {
		if rest, ok := strings.CutSuffix(f.Operation, "%"); ok && strings.HasPrefix(r.Key.Operation, rest) {
			f.Operation = ""
		}
		return f.Match(r, now)
	})},
	{"the case of the operation is not looked at", "list", listWith(func(f store.Filter, r *store.Record, now time.Time) bool {
		if strings.EqualFold(f.Operation, r.Key.Operation) {
			f.Operation = ""
		}
		return f.Match(r, now)
	})},
	{"the tenant is not looked at", "list", listWith(func(f store.Filter, r *store.Record, now time.Time) bool {
		f.Tenant = ""
		return f.Match(r, now)
	})},
	{"no tenant is the empty one", "list", listWith(func(f store.Filter, r *store.Record, now time.Time) bool {
		return f.Tenant == r.Key.Tenant && f.Match(r, now)
	})},
	{"only the first state is looked for", "list", listWith(func(f store.Filter, r *store.Record, now time.Time) bool {
		f.States = f.States[:min(1, len(f.States))]
		return f.Match(r, now)
	})},
	{"an empty list of states is none", "list", listWith(func(f store.Filter, r *store.Record, now time.Time) bool {
		return (f.States == nil || len(f.States) > 0) && f.Match(r, now)
	})},
	{"the key is not looked at", "list", listWith(func(f store.Filter, r *store.Record, now time.Time) bool {
		f.Keys = nil
		return f.Match(r, now)
	})},
	{"only the first key is looked for", "list", listWith(func(f store.Filter, r *store.Record, now time.Time) bool {
		f.Keys = f.Keys[:min(1, len(f.Keys))]
		return f.Match(r, now)
	})},
	{"a hash is not looked for", "list", listWith(func(f store.Filter, r *store.Record, now time.Time) bool {
		return f.Match(r, now) && (len(f.Keys) == 0 || slices.Contains(f.Keys, r.Key.Value))
	})},
	{"a key that looks like a hash is not found", "list", listWith(func(f store.Filter, r *store.Record, now time.Time) bool {
		return f.Match(r, now) && (len(f.Hashes()) == 0 || !slices.Contains(f.Keys, r.Key.Value))
	})},
	{"expiry is not looked at", "list", listWith(func(f store.Filter, r *store.Record, now time.Time) bool {
		f.Expired = false
		return f.Match(r, now)
	})},
	{"idle is not looked at", "list", listWith(func(f store.Filter, r *store.Record, now time.Time) bool {
		f.Idle = 0
		return f.Match(r, now)
	})},
	{"idle is more than", "list", listWith(func(f store.Filter, r *store.Record, now time.Time) bool {
		if f.Idle > 0 {
			f.Idle++
		}
		return f.Match(r, now)
	})},
	{"idle counts from the claim", "list", listWith(func(f store.Filter, r *store.Record, now time.Time) bool {
		return f.Idle == 0 && f.Match(r, now) || f.Idle > 0 && now.Sub(r.Created) < f.Idle
	})},
	{"expired records are left out", "list", listWith(func(f store.Filter, r *store.Record, now time.Time) bool {
		return f.Match(r, now) && !r.Expired(now)
	})},
	{"lapsed records are left out", "list", listWith(func(f store.Filter, r *store.Record, now time.Time) bool {
		return f.Match(r, now) && !r.Lapsed(now)
	})},
	{"the limit is not looked at", "list", listSeq(func(m *model, ctx ctxT, f store.Filter, yield func(store.Found, error) bool) {
		f.Limit = 0
		m.search(f, matches, yield)
	})},
	{"the limit counts what does not match", "list", listSeq(func(m *model, ctx ctxT, f store.Filter, yield func(store.Found, error) bool) {
		n, limit := 0, f.Limit
		f.Limit = 0
		m.search(f, func(f store.Filter, r *store.Record, now time.Time) bool {
			n++
			return (limit == 0 || n <= limit) && f.Match(r, now)
		}, yield)
	})},
	{"no more than a page", "list", listSeq(func(m *model, ctx ctxT, f store.Filter, yield func(store.Found, error) bool) {
		if f.Limit == 0 || f.Limit > 100 {
			f.Limit = 100
		}
		m.search(f, matches, yield)
	})},
	{"records come twice", "list", listSeq(func(m *model, ctx ctxT, f store.Filter, yield func(store.Found, error) bool) {
		m.search(f, matches, func(fd store.Found, err error) bool {
			return yield(fd, err) && yield(store.Found{Record: fd.Record, Now: fd.Now}, err)
		})
	})},
	{"listing tells no time", "list", listSeq(func(m *model, ctx ctxT, f store.Filter, yield func(store.Found, error) bool) {
		m.search(f, matches, func(fd store.Found, err error) bool { fd.Now = time.Time{}; return yield(fd, err) })
	})},
	{"listing leaves out outcomes", "list", listSeq(func(m *model, ctx ctxT, f store.Filter, yield func(store.Found, error) bool) {
		m.search(f, matches, func(fd store.Found, err error) bool {
			fd.Record.Outcome = store.Outcome{}
			return yield(fd, err)
		})
	})},
	{"listing does not look at its context", "list", listAnyway(func(m *model, ctx ctxT, f store.Filter, yield func(store.Found, error) bool) {
		m.search(f, matches, yield)
	})},
	{"a listing that is over early looks empty", "list", listAnyway(func(m *model, ctx ctxT, f store.Filter, yield func(store.Found, error) bool) {
		if ctx.Err() == nil {
			m.search(f, matches, yield)
		}
	})},
}
