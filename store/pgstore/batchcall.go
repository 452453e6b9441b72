package pgstore

import (
	"context"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/driver"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/pgstore/internal/pgwire"
)

// batchCall is one call of a batch, and the store.Tx for its steps. Its key comes
// first, because all are looked for in one statement.
type batchCall struct {
	i     int
	y     *batchTry
	steps driver.TxCall // nil: the call is invalid
	id    pgtype.UUID
	ahead ahead

	swapped bool // it has replaced a record
	saved   bool // behind a savepoint

	p    store.Proposal  // what it claims
	won  *store.Proposal // what it claimed
	seen *store.Seen     // of the record that won replaced; nil: there was none
	was  *pending        // the claim, if it is not written yet

	said error // what its handler said
	res  semel.Result
	err  error
}

// claim goes up to the handler; nil: that is not to be run.
func (v *batchCall) claim(ctx context.Context) (x *semel.Execution) {
	if at := v.ahead.wrote; at != nil {
		v.won = &v.p
		return v.steps.Inserted(v, at.fence)
	}
	x, v.res, v.err = v.steps.Claim(ctx, v)
	return x
}

// settle goes on behind the handler.
func (v *batchCall) settle(ctx context.Context, o store.Outcome) {
	v.res, v.err = v.steps.Settle(ctx, o, v.said)
}

// undone reports whether nothing of the call is to stay. A failure that is kept
// comes bare.
func (v *batchCall) undone() bool {
	f, kept := v.err.(*semel.Failure) //nolint:errorlint // see above
	return v.err != nil && (!kept || f == nil)
}

// Claim implements store.Tx.
func (v *batchCall) Claim(ctx context.Context, p store.Proposal) (f store.Found, err error) {
	if v.y.prefetched != nil {
		if f, is, err := v.y.prefetched.claim(v, &p); is {
			return f, pgwire.Explain("claim in a transaction", err)
		}
	}
	v.p = p
	f, err = v.y.t.claimID(ctx, v.id, &v.p)
	if err == nil && f.Won {
		v.won, v.seen, v.was = &v.p, nil, v.y.t.pending[v.id]
	}
	return f, err
}

// Swap implements store.Tx.
func (v *batchCall) Swap(ctx context.Context, seen store.Seen, p store.Proposal) (store.Found, error) {
	if err := v.y.save(ctx, saveSwap); err != nil {
		return store.Found{}, err
	}
	v.saved, v.ofKey().found = v.y.careful, nil
	f, err := v.y.t.Swap(ctx, seen, p)
	if err == nil && f.Won {
		v.won, v.seen, v.swapped = &p, &seen, true
	}
	return f, err
}

// Settle implements store.Tx.
func (v *batchCall) Settle(ctx context.Context, l store.Lease, s store.Settlement) error {
	if v.ahead.wrote != nil {
		v.y.prefetched.settle(v, &l, &s)
		return nil
	}
	return v.settleNow(ctx, l, s)
}

func (v *batchCall) settleNow(ctx context.Context, l store.Lease, s store.Settlement) error {
	return pgwire.Explain("settle in a transaction", v.y.t.settle(ctx, v.id, &l, &s))
}

// Nested implements store.Tx. Steps do not use it.
func (v *batchCall) Nested(_ context.Context, fn func() error) error { return fn() }
