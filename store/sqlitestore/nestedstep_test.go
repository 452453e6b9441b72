package sqlitestore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
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

// undone runs a step in a savepoint of the handler's, and rolls that back.
func undone(ctx context.Context, t *testing.T, p *shop, tx *sql.Tx, step semel.Call) {
	t.Helper()
	if _, err := tx.ExecContext(ctx, "SAVEPOINT mine"); err != nil {
		t.Fatal(err)
	}
	if _, err := Do(ctx, p.a, step, pay("undone", nil)); err != nil {
		t.Errorf("the step in the savepoint: %v", err)
	}
	if _, err := tx.ExecContext(ctx, "ROLLBACK TO mine"); err != nil {
		t.Fatal(err)
	}
}

// Semel does not learn of a savepoint of the handler's, so that only the transaction knows
// whether the step is recorded.
func TestStep_UndoneBySavepointOfHandler_RunsAgain(t *testing.T) {
	for _, when := range []string{"in the transaction", "after its commit", "outside of a transaction"} {
		t.Run(when, func(t *testing.T) {
			p := openShop(t, nil)
			g := leased(t, p.s, &semel.Options{OnDoubt: semel.Park})
			err := semel.Once(t.Context(), g, call("k"), func(ctx context.Context, x *semel.Execution) error {
				_, err := Do(ctx, p.a, x.Step("outer"), func(ctx context.Context, _ *semel.Execution, tx *sql.Tx) (string, error) {
					undone(ctx, t, p, tx, x.Step("pay"))
					if when != "in the transaction" {
						return "", nil
					}
					if _, err := Do(ctx, p.a, x.Step("pay"), pay("k", nil)); err != nil {
						t.Errorf("the step again: %v", err)
					}
					_, err := Do(ctx, p.a, x.Step("pay"), pay("twice", nil))
					if !errors.Is(err, semel.ErrInvalid) {
						t.Errorf("the step a third time: %v; want ErrInvalid", err)
					}
					return "", nil
				})
				if err != nil {
					t.Errorf("outer: %v", err)
				}
				switch when {
				case "after its commit":
					_, err = Do(ctx, p.a, x.Step("pay"), pay("k", nil))
				case "outside of a transaction":
					err = semel.Once(ctx, g, x.Step("pay"), func(context.Context, *semel.Execution) error {
						_, err := p.app.ExecContext(ctx, "INSERT INTO payment VALUES ('k')")
						return err
					})
				}
				return err
			})
			if err != nil {
				t.Error(err)
			}
			p.want(t, "k")
		})
	}
}

// The steps of an Atomic's call are not recorded, so that nobody can tell whether the
// handler has undone one. The error says what to do.
func TestStep_OfAtomicCall_UndoneBySavepointOfHandler_ErrorSaysNextStep(t *testing.T) {
	p := openShop(t, nil)
	_, err := Do(t.Context(), p.a, call("k"), func(ctx context.Context, x *semel.Execution, tx *sql.Tx) (string, error) {
		undone(ctx, t, p, tx, x.Step("pay"))
		_, err := Do(ctx, p.a, x.Step("pay"), pay("twice", nil))
		if !errors.Is(err, semel.ErrInvalid) || !strings.Contains(err.Error(), "savepoint") {
			t.Errorf("the step again: %v; want ErrInvalid that speaks of the savepoint", err)
		}
		_, err = Do(ctx, p.a, x.Step("pay again"), pay("k", nil))
		return "", err
	})
	if err != nil {
		t.Error(err)
	}
	p.want(t, "k")
}
