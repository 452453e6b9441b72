package storetest

import (
	"context"

	"github.com/semel-go/semel/store"
)

// eraseFlaw is a bug in the model's erasure.
type eraseFlaw struct {
	live, changed, keepsSteps, forgetsFence, silent, noContext bool
}

func (m *model) Erase(ctx context.Context, seen store.Seen) error {
	if m.at.erase.noContext {
		ctx = context.Background()
	}
	return m.change(ctx, func(b *book, _ int64) error {
		f := b.erase
		w, there := b.rows[seen.Key]
		current := w.record(seen.Key)
		if !f.live {
			if err := store.CheckErase(seen); err != nil {
				return err
			}
		}
		switch {
		case !there && f.silent:
			return nil
		case !there:
			return store.ErrNotFound
		case !f.changed && current.Seen() != seen:
			return store.ErrChanged
		case f.changed && w.state != seen.State:
			return store.ErrChanged
		}
		if !f.forgetsFence {
			b.floor = max(b.floor, w.fence)
		}
		delete(b.rows, seen.Key)
		if !f.keepsSteps {
			delete(b.steps, seen.Key)
		}
		return nil
	})
}

func erasesWith(f eraseFlaw) func(m *model) *hooks {
	return func(m *model) *hooks {
		m.at.erase = f
		return &hooks{model: m}
	}
}

var eraseMutants = []mutant{
	{"an erasure deletes what is live, or in doubt", "erase", erasesWith(eraseFlaw{live: true})},
	{"an erasure deletes a record that has changed", "erase", erasesWith(eraseFlaw{changed: true})},
	{"an erasure leaves the steps to the next life", "erase", erasesWith(eraseFlaw{keepsSteps: true})},
	{"an erasure forgets the fence", "erase", erasesWith(eraseFlaw{forgetsFence: true})},
	{"an erasure of nothing succeeds", "erase", erasesWith(eraseFlaw{silent: true})},
	{"an erasure goes on although its context has ended", "erase", erasesWith(eraseFlaw{noContext: true})},
}
