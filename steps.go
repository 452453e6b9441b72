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
	s := &Steps{}
	if err := s.t.init(g, &call); err != nil {
		return nil, err
	}
	return s, nil
}

// AllSteps begins with many calls: an error says that its call is invalid.
func (g *Guard) AllSteps(calls []Call) ([]*Steps, []error) {
	all, errs := make([]*Steps, len(calls)), make([]error, len(calls))
	var room []Steps // together, but not so many that one who keeps an Execution keeps them all
	for i := range calls {
		if len(room) == 0 {
			room = make([]Steps, min(len(calls)-i, 32))
		}
		if errs[i] = room[0].t.init(g, &calls[i]); errs[i] == nil {
			all[i] = &room[0]
			room = room[1:]
		}
	}
	return all, errs
}

// Key is what Claim will ask tx for.
func (s *Steps) Key() store.Key { return s.t.call.key }

// Proposal is what Claim will ask tx for: for a store that claims many keys in
// one statement first.
func (s *Steps) Proposal() store.Proposal {
	p := s.t.propose()
	s.t.owner = p.Owner
	return p
}

// Claim goes up to the handler. A nil Execution: it is not to be run, and
// the call has its end.
func (s *Steps) Claim(ctx context.Context, tx store.Tx) (*Execution, Result, error) {
	s.t.tx = tx
	x, err := s.t.claim(ctx, &s.x)
	if x == nil {
		res, err := s.t.end(err)
		return nil, res, err
	}
	return x, Result{}, nil
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
