package erase_test

import (
	"context"
	"errors"
	"testing"

	"github.com/semel-go/semel/erase"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/memstore"
)

// canceling is a store that ends the context of the run during a change, as somebody who
// presses Ctrl-C does, and answers with the error of the context if that has ended.
type canceling struct {
	*memstore.Store
	cancel context.CancelFunc
}

func (c canceling) Erase(ctx context.Context, seen store.Seen) error {
	c.cancel()
	return errors.Join(c.Store.Erase(ctx, seen), ctx.Err())
}

func (c canceling) Swap(ctx context.Context, seen store.Seen, p store.Proposal) (store.Found, error) {
	c.cancel()
	f, err := c.Store.Swap(ctx, seen, p)
	return f, errors.Join(err, ctx.Err())
}

func TestRun_CanceledDuringChange_CountsIt(t *testing.T) {
	for _, answersOnly := range []bool{false, true} {
		ctx, cancel := context.WithCancel(t.Context())
		st := canceling{memstore.New(nil), cancel}
		everyState(t, st.Store, "ann")
		r, err := erase.Run(ctx, st, erase.Scope{Tenant: "ann"}, &erase.Options{AnswersOnly: answersOnly})
		if !errors.Is(err, context.Canceled) || r.Erased != 1 {
			t.Errorf("answers only %v: %+v, error %v; want one erased and the cancellation", answersOnly, r, err)
		}
	}
}
