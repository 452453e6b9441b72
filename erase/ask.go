package erase

import (
	"context"

	"github.com/semel-go/semel/internal/retry"
	"github.com/semel-go/semel/store"
)

func (e *eraser) get(ctx context.Context, k store.Key) (f store.Found, err error) {
	err = retry.Ask(ctx, e.options.StoreTimeout, func(ctx context.Context) (err error) {
		f, err = e.store.Get(ctx, k)
		return err
	})
	return f, err
}

// change sends a change. If ctx ends meanwhile, it waits for the answer all the same, so that
// the Report counts what was done.
func (e *eraser) change(ctx context.Context, send func(ctx context.Context) error) error {
	return retry.Ask(context.WithoutCancel(ctx), e.options.StoreTimeout, send)
}

// confirm makes sure that no fail-over brings back what an earlier Run has erased without an
// answer. This one did not find those records.
func (e *eraser) confirm(ctx context.Context) error {
	c, ok := store.As[store.Confirmer](e.store)
	if !ok {
		return nil
	}
	return retry.Ask(ctx, e.options.StoreTimeout, c.Confirm)
}
