package pgstore

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store/pgstore/internal/cuttest"
	"github.com/semel-go/semel/store/pgstore/pgtest"
)

// After ErrUnavailable a caller may do something different, so the error must say
// whether the effect may exist.
func TestAtomic_CommitFails_InDoubtOnlyIfUnknown(t *testing.T) {
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
				return p.a.RunWhole(t.Context(), []semel.Call{call(key)}, func(ctx context.Context, fresh []*NewCall) error {
					tx, _ := TxFrom(ctx)
					_, err := p.pay(key, nil)(ctx, fresh[0].Execution, tx)
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
				p.a.cleanupTimeout = 500 * time.Millisecond
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
