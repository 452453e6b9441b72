package erase

import (
	"context"

	"github.com/semel-go/semel/internal/retry"
	"github.com/semel-go/semel/store"
)

func (e *eraser) get(ctx context.Context, k store.Key) (f store.Found, err error) {
	err = e.ask(ctx, func(ctx context.Context) (err error) {
		f, err = e.store.Get(ctx, k)
		return err
	})
	return f, err
}

// change is ask for a change. If ctx ends meanwhile, it waits for the answer all the same,
// so that the Report counts what was done.
func (e *eraser) change(ctx context.Context, send func(ctx context.Context) error) error {
	return e.ask(context.WithoutCancel(ctx), send)
}

// ask repeats a request that is harmless to repeat, until the store answers.
func (e *eraser) ask(ctx context.Context, send func(ctx context.Context) error) error {
	limited, cancel := context.WithTimeout(ctx, e.options.StoreTimeout)
	defer cancel()
	_, err := retry.Do(limited, func() (store.Found, error) { return store.Found{}, send(limited) })
	return err
}
