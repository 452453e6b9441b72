package semel

import (
	"context"

	"github.com/semel-go/semel/store"
)

// Steps is one call of RunIn, step by step: for people who write stores, and
// run many calls in one transaction, all of which are looked for, or handled,
// together. It asks tx for no Nested. Where Claim or Settle returns an error
// that is not a *Failure, bare, its caller undoes what the call has written in
// the transaction. Not safe for concurrent use.
type Steps struct {
	t inTx
	x Execution
}

// Steps begins with a call: it says so if the call is invalid.
func (g *Guard) Steps(call Call) (*Steps, error) {
	t, err := g.newInTx(call)
	if err != nil {
		return nil, err
	}
	return &Steps{t: t}, nil
}

// Key is what Claim will ask tx for.
func (s *Steps) Key() store.Key { return s.t.call.key }

// Claim goes up to the handler. A nil Execution: it is not to be run, and
// the call has its end.
func (s *Steps) Claim(ctx context.Context, tx store.Tx) (*Execution, Result, error) {
	s.t.tx = tx
	if goes, err := s.t.claim(ctx); !goes {
		res, err := s.t.end(err)
		return nil, res, err
	}
	s.x.begin(s.t.g, &s.t.record, now())
	return &s.x, Result{}, nil
}

// Within is the context for the handler, which ends with the run.
func (s *Steps) Within(ctx context.Context) (context.Context, context.CancelFunc) {
	return s.x.within(ctx), func() { s.x.ctx.end(nil) }
}

// Settle goes on behind the handler, with what that returned.
func (s *Steps) Settle(ctx context.Context, o Outcome, err error) (Result, error) {
	defer s.x.ctx.end(nil)
	return s.t.end(s.t.settle(ctx, &s.x, o, err))
}
