package semelgrpc

import (
	"context"
	"testing"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/memstore"
)

// undoing is a Runner like a store's Atomic: it undoes the transaction of the first run
// because another one has committed the key meanwhile, and its repeat finds that outcome.
type undoing struct{ *semel.Guard }

func (u undoing) Run(ctx context.Context, c semel.Call, fn semel.Handler) (semel.Result, error) {
	scratch, err := semel.New(memstore.New(nil), nil)
	if err != nil {
		return semel.Result{}, err
	}
	_, _ = scratch.Run(ctx, c, fn)
	if _, err := u.Guard.Run(ctx, c, func(ctx context.Context, _ *semel.Execution) (store.Outcome, error) {
		msg, err := named(ctx, 99)
		return encode(msg), err
	}); err != nil {
		return semel.Result{}, err
	}
	return u.Guard.Run(ctx, c, fn)
}

func TestUnary_RunIsUndone_AnswerIsTheCommittedOne(t *testing.T) {
	client := serve(t, &service{answer: named}, undoing{guardOf(t, nil)}, Options{})
	if name, replayed, err := send(withKey(t.Context(), "k"), client, 1); err != nil || name != "effect 99" || !replayed {
		t.Errorf("got %q, replayed %v, %v; want effect 99 as a replay", name, replayed, err)
	}
}
