package pgstore

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/pgstore/internal/cuttest"
	"github.com/semel-go/semel/store/pgstore/internal/handlertx"
	"github.com/semel-go/semel/store/pgstore/pgtest"
)

// After ErrUnavailable a caller may do something different, so the error must say
// whether the effect may exist.
func TestAtomic_CommitFails_InDoubtOnlyIfUnknown(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		after, away bool // the server gets the COMMIT; and cannot be asked then
		err         error
		doubt       bool
	}{
		"it cannot be asked, and has committed": {after: true, away: true, err: semel.ErrUnavailable, doubt: true},
		"it cannot be asked, and has not":       {away: true, err: semel.ErrUnavailable, doubt: true},
		"it says that it has":                   {after: true},
		"it says that it has not":               {err: semel.ErrUnavailable},
	} {
		for kind, run := range map[string]func(p *shop, key string, lose func()) error{
			"one": func(p *shop, key string, lose func()) error {
				return Once(t.Context(), p.a, call(key), func(ctx context.Context, x *semel.Execution, tx pgx.Tx) error {
					_, err := p.pay(key, nil)(ctx, x, tx)
					lose()
					return err
				})
			},
			"batch": func(p *shop, key string, lose func()) error {
				return p.a.RunBatch(t.Context(), []semel.Call{call(key)}, func(ctx context.Context, newCalls []*PendingCall) error {
					tx, _ := TxFrom(ctx)
					_, err := p.pay(key, nil)(ctx, newCalls[0].Execution, tx)
					lose()
					return err
				})[0].Err
			},
		} {
			t.Run(name+", "+kind, func(t *testing.T) {
				first := openNew(t, nil)
				cut, through := cuttest.New(t, pgtest.URL(t), c.after)
				s := openThrough(t, first, through)
				p := newShop(t, s, nil)
				if p.a.cleanupTimeout = time.Minute; c.away {
					p.a.cleanupTimeout = 500 * time.Millisecond
				}
				err := run(p, "k", func() {
					cut.At("COMMIT")
					if c.away {
						s.ownPool.Close()
					}
				})
				if !errors.Is(err, c.err) || errors.Is(err, semel.ErrInDoubt) != c.doubt {
					t.Errorf("got %v; want %v, in doubt %v", err, c.err, c.doubt)
				}
				if cut.Cuts.Load() != 1 {
					t.Errorf("%d cuts", cut.Cuts.Load())
				}
			})
		}
	}
	p := newShop(t, openNew(t, nil), nil)
	if err := Once(t.Context(), p.a, call("k"), func(context.Context, *semel.Execution, pgx.Tx) error { return errors.New("no") }); err == nil || errors.Is(err, semel.ErrInDoubt) {
		t.Errorf("a handler's error: %v", err)
	}
}

// If a COMMIT gets no answer, only the calls with writes in it are in doubt. A call that
// did not run, or that failed before, had no effect, and its caller must know that.
func TestRunBatch_CommitUnanswered_OnlyItsCallsInDoubt(t *testing.T) {
	t.Parallel()
	cut, through := cuttest.New(t, pgtest.URL(t), false)
	p := newShop(t, openThrough(t, openNew(t, nil), through), nil)
	p.a.cleanupTimeout = 500 * time.Millisecond
	if err := Once(t.Context(), p.a, call("done"), func(context.Context, *semel.Execution, pgx.Tx) error { return nil }); err != nil {
		t.Fatal(err)
	}
	w, sizes := newWorker(p), []int{}
	calls := poll("a", "done", "bad", "b", "c", "d", "e", "f")
	ends := p.a.RunBatch(t.Context(), calls, func(ctx context.Context, newCalls []*PendingCall) error {
		if err := w.handlerExcept(&sizes, map[string]error{"bad": errors.New("poison")})(ctx, newCalls); err != nil {
			return err
		}
		if len(newCalls) > 4 {
			return errors.New("one of them is bad") // so the batch is divided
		}
		cut.At("COMMIT")
		p.s.ownPool.Close() // so the server cannot be asked
		return nil
	})
	for i, e := range ends {
		key := calls[i].Key
		if inDoubt := key == "a" || key == "b"; !errors.Is(e.Err, semel.ErrUnavailable) || errors.Is(e.Err, semel.ErrInDoubt) != inDoubt {
			t.Errorf("%s: %v; want in doubt %v", key, e.Err, inDoubt)
		}
	}
	if !slices.Equal(sizes, []int{7, 3}) || cut.Cuts.Load() != 1 {
		t.Errorf("the handler ran for %v calls, want 7 and 3; %d cuts", sizes, cut.Cuts.Load())
	}
}

// If a handler ends the transaction itself, a duplicate beside its calls is not in doubt.
func TestRunBatch_HandlerCommits_OnlyItsCallsInDoubt(t *testing.T) {
	t.Parallel()
	p := newShop(t, openNew(t, nil), nil)
	if err := Once(t.Context(), p.a, call("done"), func(context.Context, *semel.Execution, pgx.Tx) error { return nil }); err != nil {
		t.Fatal(err)
	}
	ends := p.a.RunBatch(t.Context(), poll("done", "a"), func(ctx context.Context, _ []*PendingCall) error {
		tx, _ := TxFrom(ctx)
		return tx.Conn().PgConn().Exec(ctx, "COMMIT").Close()
	})
	if err := ends[0].Err; !errors.Is(err, semel.ErrUnavailable) || errors.Is(err, semel.ErrInDoubt) {
		t.Errorf("the duplicate: %v; want ErrUnavailable, not in doubt", err)
	}
	if err := ends[1].Err; !errors.Is(err, semel.ErrInDoubt) {
		t.Errorf("the new call: %v; want ErrInDoubt", err)
	}
}

// A handler commits the transaction itself and begins another one, and the store's COMMIT
// gets no answer. There is no record, but the effect is there: the key is parked.
func TestAtomic_HandlerCommitsAndCommitUnanswered_Parked(t *testing.T) {
	t.Parallel()
	for form, run := range map[string]func(p *shop, fn func(ctx context.Context, tx pgx.Tx) error) error{
		"Once": func(p *shop, fn func(ctx context.Context, tx pgx.Tx) error) error {
			return Once(t.Context(), p.a, call("k"), func(ctx context.Context, _ *semel.Execution, tx pgx.Tx) error { return fn(ctx, tx) })
		},
		"batch": func(p *shop, fn func(ctx context.Context, tx pgx.Tx) error) error {
			return p.a.RunBatch(t.Context(), poll("k"), func(ctx context.Context, _ []*PendingCall) error {
				tx, _ := TxFrom(ctx)
				return fn(ctx, tx)
			})[0].Err
		},
	} {
		t.Run(form, func(t *testing.T) {
			first := openNew(t, nil)
			cut, through := cuttest.New(t, pgtest.URL(t), false)
			p := newShop(t, openThrough(t, first, through), nil)
			err := run(p, func(ctx context.Context, tx pgx.Tx) error {
				conn := tx.Conn()
				for _, sql := range []string{"INSERT INTO " + p.table + " VALUES ('k')", "COMMIT", "BEGIN"} {
					if _, err := conn.Exec(ctx, sql); err != nil {
						return err
					}
				}
				cut.At("COMMIT\x00")
				return nil
			})
			if !errors.Is(err, semel.ErrInDoubt) || !errors.Is(err, handlertx.ErrEnded) {
				t.Errorf("got %v; want ErrInDoubt and the rule", err)
			}
			if r, err := p.record(t, "k"); err != nil || r.State != store.Unknown || cut.Cuts.Load() != 1 {
				t.Errorf("the record is %v, %v; %d cuts", r.State, err, cut.Cuts.Load())
			}
			p.want(t, "k")
		})
	}
}
