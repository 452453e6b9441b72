package pgstore

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
)

// visitor is one call of a batch, and the store.Tx that Guard.RunIn gets for
// it. The call goes through RunIn more than once: first as far as its claim, to
// learn its key, because all are looked for in one statement; then with what
// was found. In a batch with one handler for all that second pass ends at the
// handler, and a third brings what the handler said.
type visitor struct {
	i    int
	call semel.Call
	y    *inbox

	keyed   bool // the first pass came as far as the claim
	id      pgtype.UUID
	depth   int
	swapped bool // it has replaced a record
	saved   bool // behind a savepoint

	won      *store.Proposal // what it claimed
	seen     *store.Seen     // of the record that won replaced; nil: there was none
	was      *pending        // the claim, if it is not written yet
	admitted bool            // it is at its handler, between two passes
	claimed  store.Found     // what the second pass found, for the third
	replaced store.Found

	said error // what its handler said
	res  semel.Result
	err  error
}

// errPause ends a pass of a call that is to go on. Observers are not told.
var errPause = errors.New("pgstore: a batch goes on with this call later")

// unpaused is observe without what a batch only looks at.
func unpaused(observe func(context.Context, semel.Event)) func(context.Context, semel.Event) {
	if observe == nil {
		return nil
	}
	return func(ctx context.Context, e semel.Event) {
		if !errors.Is(e.Err, errPause) {
			observe(ctx, e)
		}
	}
}

// pass sends the call through RunIn.
func (v *visitor) pass(ctx context.Context, fn semel.Handler) {
	v.res, v.err = v.y.a.g.RunIn(ctx, v, v.call, fn)
}

// Claim implements store.Tx.
func (v *visitor) Claim(ctx context.Context, p store.Proposal) (store.Found, error) {
	switch {
	case !v.keyed:
		v.keyed, v.id = true, idOf(p.Key)
		return store.Found{}, errPause
	case v.admitted:
		return v.claimed, nil
	}
	f, err := v.y.t.claimID(ctx, v.id, &p)
	if err == nil && f.Won {
		v.won, v.seen, v.was = &p, nil, v.y.t.pending[v.id]
	}
	v.claimed = f
	return f, err
}

// Swap implements store.Tx.
func (v *visitor) Swap(ctx context.Context, seen store.Seen, p store.Proposal) (store.Found, error) {
	if v.admitted {
		return v.replaced, nil
	}
	if err := v.y.save(ctx, saveSwap); err != nil {
		return store.Found{}, err
	}
	v.saved = v.y.careful
	f, err := v.y.t.Swap(ctx, seen, p)
	if err == nil && f.Won {
		v.won, v.seen, v.swapped, v.replaced = &p, &seen, true, f
	}
	return f, err
}

// Settle implements store.Tx.
func (v *visitor) Settle(ctx context.Context, l store.Lease, s store.Settlement) error {
	return explain("settle in a transaction", v.y.t.settle(ctx, v.id, &l, &s))
}

// Nested implements store.Tx. The inner one, the handler's, is the batch's: it
// undoes what there is before the handler's error comes here.
func (v *visitor) Nested(ctx context.Context, fn func() error) error {
	v.depth++
	outer := v.depth == 1
	err := fn()
	v.depth--
	if !outer || errors.Is(err, errPause) {
		return err
	}
	if err != nil && v.was != nil && v.y.t.pending[v.id] == v.was {
		delete(v.y.t.pending, v.id)
	}
	if v.saved || v.swapped {
		if broken := v.y.leave(ctx, saveSwap, err); v.y.broken == nil {
			v.y.broken = broken
		}
	}
	return err
}
