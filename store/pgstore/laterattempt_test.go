package pgstore

import (
	"context"
	"errors"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
)

// Undoing a handler does not undo the replacement of the record before it, so a key
// that failed before can end with a stored failure.
func TestAtomic_LaterAttemptFailure_Stored(t *testing.T) {
	t.Parallel()
	p := newShop(t, openNew(t, nil), nil)
	declined := &semel.Failure{Code: "declined"}
	for name, run := range map[string]func() error{
		"Run": func() error {
			_, err := Do(t.Context(), p.a, call("Run"), p.pay("Run", declined))
			return err
		},
		"In": func() (err error) {
			if cerr := pgx.BeginFunc(t.Context(), p.s.appPool, func(tx pgx.Tx) error {
				err = semel.Once(t.Context(), p.a.In(tx), call("In"), func(ctx context.Context, x *semel.Execution) error {
					_, err := p.pay("In", declined)(ctx, x, tx)
					return err
				})
				return nil
			}); cerr != nil {
				t.Error(cerr)
			}
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := Do(t.Context(), p.a, call(name), p.pay(name, errors.New("down"))); err == nil {
				t.Fatal("no error")
			}
			if err := run(); !errors.Is(err, declined) {
				t.Errorf("got %v, want the failure", err)
			}
			p.want(t)
			if r, err := p.record(t, name); err != nil || r.State != store.Failed || r.Attempt != 2 {
				t.Errorf("the record is %v, attempt %d, error %v", r.State, r.Attempt, err)
			}
		})
	}
}
