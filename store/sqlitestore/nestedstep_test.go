package sqlitestore

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/semel-go/semel"
)

// A step that runs again uses the names of its inner steps again.
func TestStep_OuterRetried_InnerTransactionIsReplayed(t *testing.T) {
	for name, first := range map[string]error{"error": errors.New("later"), "NoEffect": semel.NoEffect(errors.New("later"))} {
		t.Run(name, func(t *testing.T) {
			p := openShop(t, nil)
			g := leased(t, p.s, nil)
			err := semel.Once(t.Context(), g, call("k"), func(ctx context.Context, x *semel.Execution) error {
				for i, result := range []error{first, nil} {
					err := semel.Once(ctx, g, x.Step("ship"), func(ctx context.Context, o *semel.Execution) error {
						if _, err := Do(ctx, p.a, o.Step("book"), pay("k", nil)); err != nil {
							return fmt.Errorf("inner, use %d: %w", i, err)
						}
						return result
					})
					if result == nil && err != nil {
						t.Errorf("the retried step: %v", err)
					}
				}
				return nil
			})
			if err != nil {
				t.Error(err)
			}
			p.want(t, "k")
		})
	}
}

// The failure of a step undoes the steps in it.
func TestStep_UndoneByFailureOfOuter_RunsAgain(t *testing.T) {
	refused := &semel.Failure{Code: "refused", Message: "refused"}
	for name, run := range map[string]func(p *shop, g *semel.Guard, fn func(ctx context.Context, x *semel.Execution) error) error{
		"call of an Atomic": func(p *shop, _ *semel.Guard, fn func(ctx context.Context, x *semel.Execution) error) error {
			return semel.Once(t.Context(), p.a, call("k"), fn)
		},
		"leased call": func(p *shop, g *semel.Guard, fn func(ctx context.Context, x *semel.Execution) error) error {
			return semel.Once(t.Context(), g, call("k"), fn)
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := openShop(t, nil)
			err := run(p, leased(t, p.s, nil), func(ctx context.Context, x *semel.Execution) error {
				err := semel.Once(ctx, p.a, x.Step("outer"), func(ctx context.Context, _ *semel.Execution) error {
					if _, err := Do(ctx, p.a, x.Step("pay"), pay("k", nil)); err != nil {
						t.Errorf("the inner step: %v", err)
					}
					return refused
				})
				if f, ok := errors.AsType[*semel.Failure](err); !ok || f.Code != "refused" {
					t.Errorf("outer: %v", err)
				}
				_, err = Do(ctx, p.a, x.Step("pay"), pay("k", nil))
				return err
			})
			if err != nil {
				t.Error(err)
			}
			p.want(t, "k")
		})
	}
}
