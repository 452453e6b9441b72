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

// frozenEnd is a store that answers no settlement, as a server that is frozen.
type frozenEnd struct{ *memstore.Store }

func (frozenEnd) Settle(ctx context.Context, _ store.Lease, _ store.Settlement) error {
	<-ctx.Done()
	return ctx.Err()
}

// noSteps is a frozenEnd that records no step either.
type noSteps struct{ frozenEnd }

func (noSteps) RecordStep(context.Context, store.Lease, store.Step) error { return store.ErrTooLarge }

func TestIntervene_StoreDoesNotAnswer_Ends(t *testing.T) {
	t.Parallel()
	for name, freeze := range map[string]func(*memstore.Store) store.Store{
		"at the end":           func(st *memstore.Store) store.Store { return frozenEnd{st} },
		"after a refused step": func(st *memstore.Store) store.Store { return noSteps{frozenEnd{st}} },
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
				start := time.Now()
				err := saga.Intervene(t.Context(), freeze(st), record(t, st, "1"), saga.Intervention{Why: "ann: it did not happen", NotHappened: []string{"charge"}})
				if took := time.Since(start); !errors.Is(err, semel.ErrUnavailable) || took > 10*time.Second {
					t.Errorf("after %v: %v; want ErrUnavailable within 10 s", took, err)
				}
			})
		})
	}
}
