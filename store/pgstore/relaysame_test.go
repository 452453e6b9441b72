package pgstore

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store/pgstore/pgtest"
)

// A run ends as any other, whatever its handler does, on a connection that it was
// handed too, and whichever way its statements go.
func TestARunOnAHandedConnectionIsAsAnyOther(t *testing.T) {
	declined := &semel.Failure{Code: "declined", Message: "no funds"}
	type handler func(ctx context.Context, c *crowded, tx pgx.Tx, try int) error
	for name, h := range map[string]handler{
		"well":     func(context.Context, *crowded, pgx.Tx, int) error { return nil },
		"an error": func(context.Context, *crowded, pgx.Tx, int) error { return errors.New("oops") },
		"an error once": func(_ context.Context, _ *crowded, _ pgx.Tx, try int) error {
			return cond(try == 1, errors.New("oops"), nil)
		},
		"a failure": func(context.Context, *crowded, pgx.Tx, int) error { return declined },
		"a failure by and by": func(_ context.Context, _ *crowded, _ pgx.Tx, try int) error {
			return cond(try == 1, errors.New("oops"), declined)
		},
		"no effect": func(context.Context, *crowded, pgx.Tx, int) error { return semel.NoEffect(errors.New("refused")) },
		"a panic":   func(context.Context, *crowded, pgx.Tx, int) error { panic("oops") },
		"a serialization failure": func(ctx context.Context, _ *crowded, tx pgx.Tx, try int) error {
			if try > 1 {
				return nil
			}
			_, err := tx.Exec(ctx, "DO $$ BEGIN RAISE EXCEPTION 'again' USING ERRCODE = '40001'; END $$")
			return err
		},
		"a statement that fails": func(ctx context.Context, _ *crowded, tx pgx.Tx, _ int) error {
			_, _ = tx.Exec(ctx, "SELECT 1/0")
			return nil
		},
		"a statement that fails, and a failure": func(ctx context.Context, _ *crowded, tx pgx.Tx, _ int) error {
			_, _ = tx.Exec(ctx, "SELECT 1/0")
			return declined
		},
		"a savepoint undone": func(ctx context.Context, c *crowded, tx pgx.Tx, _ int) error {
			sp, err := tx.Begin(ctx)
			if err != nil {
				return err
			}
			_, err = sp.Exec(ctx, "INSERT INTO "+c.table+" VALUES ('undone')")
			return errors.Join(err, sp.Rollback(ctx))
		},
		"a savepoint kept, and a failure": func(ctx context.Context, c *crowded, tx pgx.Tx, _ int) error {
			sp, err := tx.Begin(ctx)
			if err != nil {
				return err
			}
			_, err = sp.Exec(ctx, "INSERT INTO "+c.table+" VALUES ('undone')")
			return errors.Join(err, sp.Commit(ctx), declined)
		},
		"a run inside": func(ctx context.Context, c *crowded, _ pgx.Tx, _ int) error {
			_, err := Do(ctx, c.a, call("inner"), c.pay("inner", nil))
			return err
		},
		"a run inside that fails": func(ctx context.Context, c *crowded, _ pgx.Tx, _ int) error {
			_, err := Do(ctx, c.a, call("inner"), c.pay("inner", declined))
			return cond(errors.Is(err, declined), nil, err)
		},
	} {
		t.Run(name, func(t *testing.T) {
			ends := map[string]string{}
			for way, newCrowd := range crowds {
				for _, behind := range []bool{false, true} {
					c := newCrowd(t, pgtest.URL(t), 1, nil)
					end := ""
					for range 2 { // the second finds what the first has left
						end += c.end(t, behind, func(ctx context.Context, tx pgx.Tx, try int) error { return h(ctx, c, tx, try) })
					}
					if handed := c.n.Load() > 0; handed != behind {
						t.Errorf("%s: handed over: %v", way, handed)
					}
					ends[end] += fmt.Sprintf(" %s, handed over %v;", way, behind)
				}
			}
			if len(ends) != 1 {
				t.Errorf("it ended in %d ways: %q", len(ends), ends)
			}
		})
	}
}

func cond(is bool, a, b error) error {
	if is {
		return a
	}
	return b
}

// end runs the key k, behind another run or by itself, and says how it ended.
func (c *crowded) end(t *testing.T, behind bool, h func(ctx context.Context, tx pgx.Tx, try int) error) string {
	t.Helper()
	c.others++
	first := c.holding(t, itoa(c.others))
	if !behind {
		first.goOn <- fine
		<-first.done
		c.allBack(t)
	}
	done := make(chan string)
	go func() {
		said := "panic"
		defer func() { _ = recover(); done <- said }()
		tries, attempt := 0, 0
		got, err := Do(t.Context(), c.a, call("k"), func(ctx context.Context, x *semel.Execution, tx pgx.Tx) (string, error) {
			tries++
			attempt = x.Attempt()
			got, err := c.pay("k", nil)(ctx, x, tx)
			if err == nil {
				err = h(ctx, tx, x.Attempt()+tries-1)
			}
			return got, err
		})
		said = fmt.Sprintf("%q %v, %d tries, attempt %d", got, err, tries, attempt)
	}()
	if behind {
		c.waits(t, 1)
		first.goOn <- fine
		<-first.done
	}
	said := <-done
	c.allBack(t)
	mustExec(t, c.app, "DELETE FROM "+c.table+" WHERE key ~ '^[0-9]'")
	r, err := c.record(t, "k")
	return fmt.Sprintf("%s; rows %q; record %v attempt %d %q %v\n", said, c.payments(t), r.State, r.Attempt, r.LastError, err)
}
