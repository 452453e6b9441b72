package sim

import (
	"context"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/test/linear"
)

// link is the store as one process sees it: over the scheduler's network.
type link struct{ p *process }

var _ interface {
	store.Store
	store.Lister
	store.Journal
} = link{}

type callKey struct{}

func (l link) send(ctx context.Context, k kind, key store.Key, fence uint64, apply func() reply, in ...linear.Input) (reply, error) {
	if err := ctx.Err(); err != nil {
		return reply{}, err
	}
	c, _ := ctx.Value(callKey{}).(*call)
	return l.p.ask(ctx, &item{kind: k, c: c, key: key, fence: fence, apply: apply, inputs: in})
}

func (l link) Claim(ctx context.Context, p store.Proposal) (store.Found, error) {
	c, _ := ctx.Value(callKey{}).(*call)
	r, err := l.send(ctx, claims, p.Key, 0, func() reply { return l.p.w.truth.claim(l.p, c, p) }, linear.Input{Kind: linear.Claim, Key: p.Key, Proposal: p})
	return r.found, err
}

func (l link) Swap(ctx context.Context, seen store.Seen, p store.Proposal) (store.Found, error) {
	c, _ := ctx.Value(callKey{}).(*call)
	r, err := l.send(ctx, swaps, p.Key, seen.Fence, func() reply { return l.p.w.truth.swap(l.p, c, seen, p) },
		linear.Input{Kind: linear.Swap, Key: seen.Key, Seen: seen, Proposal: p})
	return r.found, err
}

func (l link) Renew(ctx context.Context, held []store.Lease, d time.Duration) ([]error, error) {
	held = slices.Clone(held)
	sorted := slices.SortedFunc(slices.Values(held), func(a, b store.Lease) int {
		return strings.Compare(a.Key.Operation+a.Key.Value, b.Key.Operation+b.Key.Value)
	})
	in := make([]linear.Input, len(held))
	for i, h := range held {
		in[i] = linear.Input{Kind: linear.Renew, Key: h.Key, Lease: h, For: d}
	}
	r, err := l.send(ctx, renews, sorted[0].Key, sorted[0].Fence, func() reply { return l.p.w.truth.renew(held, d) }, in...)
	return r.errs, err
}

func (l link) Settle(ctx context.Context, ls store.Lease, s store.Settlement) error {
	_, err := l.send(ctx, settles, ls.Key, ls.Fence, func() reply { return l.p.w.truth.settle(ls, s) },
		linear.Input{Kind: linear.Settle, Key: ls.Key, Lease: ls, Settlement: s})
	return err
}

func (l link) Get(ctx context.Context, k store.Key) (store.Found, error) {
	r, err := l.send(ctx, gets, k, 0, func() reply { return l.p.w.truth.get(k) }, linear.Input{Kind: linear.Get, Key: k})
	return r.found, err
}

func (l link) RecordStep(ctx context.Context, ls store.Lease, s store.Step) error {
	_, err := l.send(ctx, records, ls.Key, ls.Fence, func() reply { return l.p.w.truth.recordStep(ls, s) })
	return err
}

func (l link) Steps(ctx context.Context, ls store.Lease) ([]store.Step, error) {
	r, err := l.send(ctx, journals, ls.Key, ls.Fence, func() reply { return l.p.w.truth.readSteps(ls) })
	return r.steps, err
}

func (l link) Sweep(ctx context.Context, from store.Cursor, limit int) (store.SweepResult, error) {
	var in []linear.Input
	for _, k := range l.p.w.truth.keysEver() {
		in = append(in, linear.Input{Kind: linear.Sweep, Key: k})
	}
	r, err := l.send(ctx, sweeps, store.Key{Value: string(from)}, 0, func() reply { return l.p.w.truth.sweep(from, limit) }, in...)
	return r.swept, err
}

func (l link) List(ctx context.Context, f store.Filter) iter.Seq2[store.Found, error] {
	return func(yield func(store.Found, error) bool) {
		r, err := l.send(ctx, lists, store.Key{}, 0, func() reply { return l.p.w.truth.list(f) })
		if err != nil {
			yield(store.Found{}, err)
			return
		}
		for _, fd := range r.list {
			if !yield(fd, nil) {
				return
			}
		}
	}
}
