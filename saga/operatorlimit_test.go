package saga_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/saga"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/memstore"
)

// frozen is a store that does not answer one method, as a server that is frozen.
type frozen struct {
	*memstore.Store
	method string
	noStep bool // it records no step either
}

func (f *frozen) wait(ctx context.Context, method string) error {
	if method != f.method {
		return nil
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(time.Hour):
		return errBoom
	}
}

func (f *frozen) Steps(ctx context.Context, l store.Lease) ([]store.Step, error) {
	if err := f.wait(ctx, "Steps"); err != nil {
		return nil, err
	}
	return f.Store.Steps(ctx, l)
}

func (f *frozen) SetTimer(ctx context.Context, k store.Key, seen, next store.Owner, wait time.Duration) (bool, error) {
	if err := f.wait(ctx, "SetTimer"); err != nil {
		return false, err
	}
	return f.Store.SetTimer(ctx, k, seen, next, wait)
}

func (f *frozen) Swap(ctx context.Context, seen store.Seen, p store.Proposal) (store.Found, error) {
	if err := f.wait(ctx, "Swap"); err != nil {
		return store.Found{}, err
	}
	return f.Store.Swap(ctx, seen, p)
}

func (f *frozen) RecordStep(ctx context.Context, l store.Lease, s store.Step) error {
	if f.noStep {
		return store.ErrTooLarge
	}
	if err := f.wait(ctx, "RecordStep"); err != nil {
		return err
	}
	return f.Store.RecordStep(ctx, l, s)
}

func (f *frozen) Settle(ctx context.Context, l store.Lease, s store.Settlement) error {
	if err := f.wait(ctx, "Settle"); err != nil {
		return err
	}
	return f.Store.Settle(ctx, l, s)
}

func TestIntervene_StoreDoesNotAnswer_Ends(t *testing.T) {
	t.Parallel()
	for name, freeze := range map[string]frozen{
		"when the steps are read": {method: "Steps"},
		"when the timer is set":   {method: "SetTimer"},
		"at the claim":            {method: "Swap"},
		"when a step is recorded": {method: "RecordStep"},
		"at the end":              {method: "Settle"},
		"after a refused step":    {method: "Settle", noStep: true},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, st *memstore.Store, w *world) {
				w.before = once("charge", errBoom)
				d := w.three()
				d.Run = func(ctx context.Context, r *saga.Run, _ order) (string, error) {
					return w.step(ctx, r, "charge", saga.Parked())
				}
				if _, err := newSaga(t, st, d).Do(t.Context(), "ann", "1", book); !errors.Is(err, semel.ErrParked) {
					t.Fatal(err)
				}
				freeze.Store = st
				start := time.Now()
				err := saga.Intervene(t.Context(), &freeze, record(t, st, "1"), saga.Intervention{Why: "ann: it did not happen", NotHappened: []string{"charge"}})
				if took := time.Since(start); !errors.Is(err, semel.ErrUnavailable) || took > 10*time.Second {
					t.Errorf("after %v: %v; want ErrUnavailable within 10 s", took, err)
				}
			})
		})
	}
}
