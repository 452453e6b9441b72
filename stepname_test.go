package semel_test

import (
	"context"
	"testing"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store/memstore"
)

// The handler makes each step "charge" with the Execution of the call, so that they have
// one name, wherever they are used.
func TestStep_NameUsedInTwoSteps_IsRefused(t *testing.T) {
	for name, outer := range map[string][][]string{
		"in two steps":              {{"book"}, {"lamp"}},
		"alone and in a step":       {{}, {"book"}},
		"in a step and alone":       {{"book"}, {}},
		"in a step and in a deeper": {{"book"}, {"order", "lamp"}},
	} {
		for _, policy := range []semel.Policy{semel.Retry, semel.Park} {
			t.Run(name+"/"+policy.String(), func(t *testing.T) {
				g := guard(t, memstore.New(nil), &semel.Options{OnDoubt: policy})
				charges := 0
				err := semel.Once(t.Context(), g, ann("k"), func(ctx context.Context, x *semel.Execution) error {
					for _, path := range outer {
						charge := func(ctx context.Context) error { return once(ctx, g, x, "charge", &charges, nil) }
						for _, step := range path {
							inner := charge
							charge = func(ctx context.Context) error {
								return semel.Once(ctx, g, x.Step(step), func(ctx context.Context, _ *semel.Execution) error { return inner(ctx) })
							}
						}
						if err := charge(ctx); err != nil {
							return err
						}
					}
					return nil
				})
				wantErr(t, err, semel.ErrInvalid)
				if charges != 1 {
					t.Errorf("charged %d times, want once", charges)
				}
			})
		}
	}
}
