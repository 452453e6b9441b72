package saga_test

import (
	"context"
	"strings"
	"testing"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/saga"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/memstore"
)

// A step without a function is refused before it is marked as begun, and does not panic.
func TestStep_FunctionIsNil_SagaIsStuck(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, st *memstore.Store, _ *world) {
		guard, err := semel.New(st, nil)
		if err != nil {
			t.Fatal(err)
		}
		s, err := saga.New(guard, saga.Definition[order, string]{
			Name: "order", Steps: []string{"charge"},
			Run: func(ctx context.Context, r *saga.Run, _ order) (string, error) {
				return saga.Step[string](ctx, r, "charge", nil, nil, saga.Parked())
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		_, _ = s.Do(t.Context(), "ann", "1", book)
		if r := record(t, st, "1"); r.State != store.Unknown || !strings.Contains(r.LastError, "its function is nil") {
			t.Errorf("the saga is %v: %s", r.State, r.LastError)
		}
	})
}
