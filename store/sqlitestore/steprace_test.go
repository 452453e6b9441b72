package sqlitestore

import (
	"context"
	"database/sql"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/driver"
	"github.com/semel-go/semel/saga"
	"github.com/semel-go/semel/store"
)

// overlapping runs calls as an Atomic does. It says when a transaction asks for the steps,
// and so for the lock of the file.
type overlapping struct {
	atomic *Atomic
	asks   chan struct{}
}

type overlappingTx struct {
	*runTx
	asks chan struct{}
}

func (t overlappingTx) Steps(ctx context.Context, l store.Lease) ([]store.Step, error) {
	t.asks <- struct{}{}
	return t.runTx.Steps(ctx, l)
}

// Run implements semel.Runner.
func (o overlapping) Run(ctx context.Context, call semel.Call, fn semel.Handler) (semel.Result, error) {
	handlerCtx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	t := &runTx{s: o.atomic.s, handlerCtx: handlerCtx, cancel: cancel}
	defer t.rollback()
	res, err := driver.RunIn(handlerCtx, o.atomic.g, overlappingTx{t, o.asks}, call, func(ctx context.Context, x *semel.Execution) (store.Outcome, error) {
		return o.atomic.s.runWithTx(ctx, t.tx, x, fn)
	})
	if err == nil {
		err = t.commit()
	}
	return res, err
}

// A step that waits for the lock of the file must not hold up the step that has it.
func TestStep_TwoAtOnce_BothCommit(t *testing.T) {
	// do runs two functions in transactions at the same time, each as a step.
	for name, do := range map[string]func(*testing.T, *semel.Guard, semel.Runner, func(ctx context.Context, name string) error) error{
		"handler": func(t *testing.T, g *semel.Guard, r semel.Runner, fn func(ctx context.Context, name string) error) error {
			return semel.Once(t.Context(), g, call("k"), func(ctx context.Context, x *semel.Execution) error {
				errs := make(chan error)
				for _, name := range []string{"a", "b"} {
					go func() {
						errs <- semel.Once(ctx, r, x.Step(name), func(ctx context.Context, _ *semel.Execution) error { return fn(ctx, name) })
					}()
				}
				return errors.Join(<-errs, <-errs)
			})
		},
		"group of a saga": func(t *testing.T, g *semel.Guard, r semel.Runner, fn func(ctx context.Context, name string) error) error {
			s, err := saga.New(g, saga.Definition[string, string]{
				Name: "order", Steps: []string{"a", "b"},
				Run: func(ctx context.Context, run *saga.Run, _ string) (string, error) {
					group := run.Group(2)
					for _, name := range []string{"a", "b"} {
						group.Go(func() error {
							_, err := saga.StepIn(ctx, run, r, name, func(ctx context.Context, _ saga.At) (string, error) { return "", fn(ctx, name) }, nil)
							return err
						})
					}
					return "", group.Wait()
				},
			})
			if err != nil {
				return err
			}
			_, err = s.Do(t.Context(), semel.Shared, "1", "in")
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := openShop(t, &Options{MaxTx: time.Minute})
			r := overlapping{p.a, make(chan struct{}, 2)}
			var first sync.Once
			err := do(t, leased(t, p.s, nil), r, func(ctx context.Context, name string) error {
				first.Do(func() {
					<-r.asks
					<-r.asks // the other step waits for the lock
				})
				tx, _ := TxFrom(ctx)
				_, err := pay(name, nil)(ctx, nil, tx)
				return err
			})
			if err != nil {
				t.Error(err)
			}
			p.want(t, "a", "b")
		})
	}
}

// A step counts when its transaction has committed, with the steps in it.
func TestStep_NameUsedTwice_InTransactions_IsInvalid(t *testing.T) {
	p := openShop(t, nil)
	g := leased(t, p.s, nil)
	err := semel.Once(t.Context(), g, call("k"), func(ctx context.Context, x *semel.Execution) error {
		outer := func(result error) error {
			_, err := Do(ctx, p.a, x.Step("outer"), func(ctx context.Context, o *semel.Execution, _ *sql.Tx) (string, error) {
				if _, err := Do(ctx, p.a, o.Step("inner"), pay("k", nil)); err != nil {
					t.Errorf("the inner step: %v", err)
				}
				_, err := Do(ctx, p.a, o.Step("inner"), pay("twice", nil))
				if !errors.Is(err, semel.ErrInvalid) {
					t.Errorf("the inner step again: %v; want ErrInvalid", err)
				}
				return "", result
			})
			return err
		}
		later := errors.New("later")
		if err := outer(later); !errors.Is(err, later) {
			t.Error(err)
		}
		p.want(t)
		if err := outer(nil); err != nil { // the inner step was undone
			t.Error(err)
		}
		if err := outer(nil); !errors.Is(err, semel.ErrInvalid) {
			t.Errorf("the outer step again: %v; want ErrInvalid", err)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	p.want(t, "k")
}

// The caller commits, so that Semel does not learn whether the step is recorded.
func TestStep_InTransactionOfCaller_UsedAgain_LooksWhetherItIsRecorded(t *testing.T) {
	p := openShop(t, nil)
	g := leased(t, p.s, nil)
	err := semel.Once(t.Context(), g, call("k"), func(ctx context.Context, x *semel.Execution) error {
		for i, end := range []func(*sql.Tx) error{(*sql.Tx).Rollback, (*sql.Tx).Commit, (*sql.Tx).Commit} {
			tx, err := p.app.Begin()
			if err != nil {
				t.Fatal(err)
			}
			res, err := p.a.In(tx).Run(ctx, x.Step("pay"), func(ctx context.Context, x *semel.Execution) (store.Outcome, error) {
				_, err := pay("k", nil)(ctx, x, tx)
				return store.Outcome{}, err
			})
			if err != nil || res.Replayed != (i == 2) {
				t.Errorf("use %d: replayed %v, error %v", i, res.Replayed, err)
			}
			if err := end(tx); err != nil {
				t.Error(err)
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	p.want(t, "k")
}

// A step that fails is undone with the steps in it, and the transaction goes on.
func TestStep_RolledBackInTransaction_RunsAgainWithItsSteps(t *testing.T) {
	later := errors.New("later")
	for name, run := range map[string]func(p *shop, g *semel.Guard, fn func(ctx context.Context, x *semel.Execution) error) error{
		"call of an Atomic": func(p *shop, _ *semel.Guard, fn func(ctx context.Context, x *semel.Execution) error) error {
			return semel.Once(t.Context(), p.a, call("k"), fn)
		},
		"step of a leased call": func(p *shop, g *semel.Guard, fn func(ctx context.Context, x *semel.Execution) error) error {
			return semel.Once(t.Context(), g, call("k"), func(ctx context.Context, x *semel.Execution) error {
				return semel.Once(ctx, p.a, x.Step("transaction"), fn)
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := openShop(t, nil)
			err := run(p, leased(t, p.s, nil), func(ctx context.Context, x *semel.Execution) error {
				for _, result := range []error{later, nil} {
					err := semel.Once(ctx, p.a, x.Step("outer"), func(ctx context.Context, outer *semel.Execution) error {
						if _, err := Do(ctx, p.a, outer.Step("inner"), pay("k", nil)); err != nil {
							t.Errorf("the inner step: %v", err)
						}
						return result
					})
					if !errors.Is(err, result) {
						t.Errorf("the outer step: %v, want %v", err, result)
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
