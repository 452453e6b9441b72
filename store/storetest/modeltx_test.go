package storetest

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/semel-go/semel/store"
)

// modelTx is a transaction of a model: it works on a copy of the book, alone,
// until it ends.
type modelTx struct {
	m       *model
	at      book
	effects []string
	over    bool
}

var errOver = errors.New("model: the transaction is over")

func (m *model) begin() *modelTx {
	m.writing.Lock()
	m.mu.Lock()
	defer m.mu.Unlock()
	return &modelTx{m: m, at: m.at.copy(), effects: slices.Clone(m.effects)}
}

func (b book) copy() book {
	return book{rows: maps.Clone(b.rows), steps: maps.Clone(b.steps), floor: b.floor, flaw: b.flaw, erase: b.erase}
}

func (x *modelTx) check(ctx context.Context) error {
	if x.over {
		return errOver
	}
	return ctx.Err()
}

func (x *modelTx) now() int64 {
	x.m.mu.Lock()
	defer x.m.mu.Unlock()
	return x.m.clock()
}

func (x *modelTx) Claim(ctx context.Context, p store.Proposal) (store.Found, error) {
	if err := x.check(ctx); err != nil {
		return store.Found{}, err
	}
	now := x.now()
	w, won := x.at.claim(&p, now)
	return store.Found{Record: w.record(p.Key), Won: won, Now: when(now)}, nil
}

func (x *modelTx) Swap(ctx context.Context, seen store.Seen, p store.Proposal) (store.Found, error) {
	if err := x.check(ctx); err != nil {
		return store.Found{}, err
	}
	now := x.now()
	w, won, there := x.at.swap(seen, &p, now)
	if !there {
		return store.Found{}, store.ErrNotFound
	}
	return store.Found{Record: w.record(seen.Key), Won: won, Now: when(now)}, nil
}

func (x *modelTx) Settle(ctx context.Context, l store.Lease, s store.Settlement) error {
	if err := x.check(ctx); err != nil {
		return err
	}
	return x.at.settle(l, &s, x.now())
}

func (x *modelTx) Nested(_ context.Context, fn func() error) error {
	at, effects := x.at.copy(), slices.Clone(x.effects)
	done := false
	defer func() {
		if !done {
			x.at, x.effects = at, effects
		}
	}()
	err := fn()
	done = err == nil
	return err
}

func (x *modelTx) Effect(ctx context.Context, name string) error {
	if err := x.check(ctx); err != nil {
		return err
	}
	x.effects = append(x.effects, name)
	return nil
}

func (x *modelTx) Effects(context.Context) ([]string, error) {
	x.m.mu.Lock()
	defer x.m.mu.Unlock()
	return slices.Clone(x.m.effects), nil
}

func (x *modelTx) Commit(ctx context.Context) error {
	if err := x.check(ctx); err != nil {
		return err
	}
	x.m.mu.Lock()
	x.m.at, x.m.effects = x.at, x.effects
	x.m.mu.Unlock()
	return x.Rollback(ctx)
}

func (x *modelTx) Rollback(context.Context) error {
	if !x.over {
		x.over = true
		x.m.writing.Unlock()
	}
	return nil
}
