package semel

import (
	"context"
	"slices"

	"github.com/semel-go/semel/store"
)

// Steps is one call of RunIn, step by step: for people who write stores, and
// run many calls in one transaction, all of which are looked for, or handled,
// together. It asks tx for no Nested. Where Claim or Settle returns an error
// that is not a *Failure, bare, its caller undoes what the call has written in
// the transaction. Not safe for concurrent use.
type Steps struct {
	t   inTx
	err error
	x   *Execution
	of  *executions // nil: it is made alone
}

// Steps begins with a call: it says so if the call is invalid.
func (g *Guard) Steps(call Call) (*Steps, error) {
	s := &Steps{}
	if err := s.t.init(g, &call); err != nil {
		return nil, err
	}
	return s, nil
}

// AllSteps begins with many calls, for one goroutine. It overwrites the Steps
// of room, which have come to their ends, and returns those of calls, in room
// if they fit. See Err.
func (g *Guard) AllSteps(room []Steps, calls []Call) []Steps {
	all := slices.Grow(room[:0], len(calls))[:len(calls)]
	of := &executions{}
	for i := range all {
		s := &all[i]
		s.x, s.of = nil, of
		s.err = s.t.init(g, &calls[i])
	}
	return all
}

// Err says that the call is invalid: it has no other step then.
func (s *Steps) Err() error { return s.err }

// executions makes some at a time. They are never used again, for a handler may
// keep one; but not so many together that it then keeps the batch.
type executions struct{ room []Execution }

func (e *executions) next() *Execution {
	if e == nil {
		return &Execution{}
	}
	if len(e.room) == 0 {
		e.room = make([]Execution, 32)
	}
	x := &e.room[0]
	e.room = e.room[1:]
	return x
}

// Key is what Claim will ask tx for.
func (s *Steps) Key() store.Key { return s.t.call.key }

// Proposal is what Claim will ask tx for: for a store that claims many keys in
// one statement first. False: only Claim can tell.
func (s *Steps) Proposal() (p store.Proposal, is bool) {
	p = s.t.propose()
	s.t.owner = p.Owner
	return p, s.t.call.token.IsZero()
}

// Won is Claim where the store has inserted, in the transaction, the record of
// what Proposal gave, with a fence: then nothing is left to be asked. It is only
// for Steps whose Proposal said true, and once; it checks neither.
func (s *Steps) Won(tx store.Tx, fence uint64) *Execution {
	t := &s.t
	t.tx = tx
	s.x = s.of.next()
	s.x.start(t.g, t.as.Policy, store.Lease{Key: t.call.key, Owner: t.owner, Fence: fence}, 1, t.as.Fingerprint.Sum, now())
	return s.x
}

// Claim goes up to the handler. A nil Execution: it is not to be run, and
// the call has its end.
func (s *Steps) Claim(ctx context.Context, tx store.Tx) (x *Execution, res Result, err error) {
	s.t.tx = tx
	if s.x, err = s.t.claim(ctx, s.of); s.x == nil {
		res, err = s.t.end(err)
	}
	return s.x, res, err
}

// Within is the context for the handler, which ends with the run.
func (s *Steps) Within(ctx context.Context) (context.Context, context.CancelFunc) {
	return s.x.within(ctx), func() { s.x.ctx.end(nil) }
}

// Settle goes on behind the handler, with what that returned.
func (s *Steps) Settle(ctx context.Context, o Outcome, err error) (Result, error) {
	defer s.x.ctx.end(nil)
	return s.t.end(s.t.settle(ctx, s.x, o, err))
}
