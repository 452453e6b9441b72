package storetest

import (
	"context"
	"errors"
	"fmt"

	"github.com/semel-go/semel/store"
)

// side is one of the stores that a history is played on, with the actors' memory
// of it. Each side has tokens, fences and times of its own.
type side struct {
	name   string
	st     store.Store
	keys   [subjects]store.Key
	mem    [actors][subjects]memory
	after  [subjects]snapshot // the last step
	before [subjects]snapshot // the last step
	rank   [subjects]rank
}

// memory is one actor's memory of one key.
type memory struct {
	saw        bool
	seen       store.Seen
	held       bool
	lease      store.Lease
	claimed    store.Proposal
	swapped    store.Proposal
	swapSeen   store.Seen
	settled    store.Settlement
	settleWith store.Lease
}

// snapshot is a record as a read found it.
type snapshot struct {
	there bool
	found store.Found
}

// rank numbers the fences of one key in the order in which they appear. The
// numbers agree between two stores even if the fences differ.
type rank struct {
	fence uint64
	n     int
}

// result is the result of a step.
type result struct {
	skipped  bool // the actor remembers nothing to do it with
	key      int  // the step's, or the next with which the actor can do it
	found    store.Found
	has      bool // found holds a record
	answer   verdict
	mustLose bool
	action   store.Action
	renewals []verdict
	deleted  int
	lapsed   []store.Record
}

func (s *side) scope(name string) {
	for i := range s.keys {
		s.keys[i] = store.Key{Operation: "history", Tenant: name, Value: string(rune('a' + i))}
	}
	s.mem, s.after, s.before, s.rank = [actors][subjects]memory{}, [subjects]snapshot{}, [subjects]snapshot{}, [subjects]rank{}
}

// verdict is the meaning of a store's error.
type verdict uint8

const (
	fine verdict = iota
	notFound
	leaseLost
)

func (v verdict) String() string { return [...]string{"fine", "not found", "lease lost"}[v] }

// judge returns the meaning of a store's error. An error without one ends the
// history.
func judge(err error) (verdict, error) {
	switch {
	case err == nil:
		return fine, nil
	case errors.Is(err, store.ErrNotFound):
		return notFound, nil
	case errors.Is(err, store.ErrLeaseLost):
		return leaseLost, nil
	}
	return fine, err
}

// do plays one step.
func (s *side) do(ctx context.Context, p *step, tm *times) (result, error) {
	res := result{key: s.find(p)}
	if res.skipped = res.key < 0; res.skipped {
		res.key = int(p.key)
		return res, nil
	}
	m, k := &s.mem[p.actor][res.key], s.keys[res.key]
	var err error
	switch p.deed {
	case doClaim:
		m.claimed = p.proposal(k, [...]store.State{store.Started, store.Processing, store.Processing}[p.pick(pickState, 3)], tm)
		err = s.claim(ctx, m.claimed, &res)
	case doClaimAgain:
		err = s.claim(ctx, m.claimed, &res)
	case doDecide:
		err = s.decide(ctx, p, m, tm, &res)
	case doSwapStale:
		m.swapSeen, m.swapped = m.seen, p.proposal(k, states[p.pick(pickState, uint64(len(states)))], tm)
		err = s.swap(ctx, m, &res)
	case doSwapWrong:
		m.swapSeen, m.swapped = p.wrong(&s.after[res.key].found.Record), p.proposal(k, store.Processing, tm)
		res.mustLose = true
		err = s.swap(ctx, m, &res)
	case doSwapAgain:
		err = s.swap(ctx, m, &res)
	case doRenew:
		err = s.renew(ctx, p, tm, &res)
	case doSettle, doSettleWrong, doSettleAgain:
		err = s.settle(ctx, p, m, tm, &res)
	case doGet:
		res.found, err = s.st.Get(ctx, k)
		res.has = err == nil
		res.answer, err = judge(err)
	case doSweep:
		err = s.sweep(ctx, p.limit(), &res)
	case doAdvance: // is done for all sides at once
	}
	if err != nil {
		return res, fmt.Errorf("%s: %w", s.name, err)
	}
	if res.has {
		m.saw, m.seen = true, res.found.Record.Seen()
		if res.found.Won && res.found.Record.State == store.Processing {
			m.held, m.lease = true, res.found.Record.Lease()
		}
	}
	return res, nil
}

// find returns the first key, from the step's own key on, with which the actor can
// do the step; -1: none.
func (s *side) find(p *step) int {
	for i := range subjects {
		k := (int(p.key) + i) % subjects
		can, m := false, &s.mem[p.actor][k]
		switch p.deed {
		default:
			can = true
		case doClaimAgain:
			can = m.claimed.State != 0
		case doSwapStale:
			can = m.saw
		case doSwapWrong:
			can = s.after[k].there
		case doSwapAgain:
			can = m.swapped.State != 0
		case doSettle, doSettleWrong:
			can = m.held
		case doSettleAgain:
			can = m.settled.State != 0
		}
		if can {
			return k
		}
	}
	return -1
}

func (s *side) claim(ctx context.Context, p store.Proposal, res *result) error {
	var err error
	res.found, err = s.st.Claim(ctx, p)
	res.has = err == nil
	return err
}

func (s *side) swap(ctx context.Context, m *memory, res *result) error {
	var err error
	res.found, err = s.st.Swap(ctx, m.swapSeen, m.swapped)
	res.has = err == nil
	res.answer, err = judge(err)
	return err
}

// decide acts like a caller: it reads, calls store.Decide, and claims or swaps.
func (s *side) decide(ctx context.Context, p *step, m *memory, tm *times, res *result) error {
	f, err := s.st.Get(ctx, s.keys[res.key])
	if errors.Is(err, store.ErrNotFound) {
		m.claimed = p.proposal(s.keys[res.key], store.Processing, tm)
		return s.claim(ctx, m.claimed, res)
	} else if err != nil {
		return err
	}
	res.found, res.has = f, true
	c := p.call()
	if p.pick(pickBearer, 4) == 0 {
		c.Token = f.Record.Created
	}
	d := store.Decide(&f.Record, &c, f.Now)
	res.action = d.Action
	to := store.Processing
	switch d.Action {
	case store.Execute, store.TakeOver:
	case store.DoPark:
		to = store.Unknown
	case store.Exhausted:
		to = [...]store.State{store.Retry: store.Failed, store.Park: store.Unknown}[d.Policy]
	case store.Parked: // an operator resolves it, or a reconciler takes it
		to = [...]store.State{store.Completed, store.Failed, store.Released, store.Processing}[p.pick(pickState, 4)]
	default:
		return nil
	}
	pr := p.proposal(s.keys[res.key], to, tm)
	pr.Policy, pr.Restart, pr.Attempt = d.Policy, d.Restart, f.Record.Attempt
	if to == store.Processing {
		pr.Attempt++
	}
	if d.Restart {
		pr.Attempt = 1
	}
	m.swapSeen, m.swapped = f.Record.Seen(), pr
	return s.swap(ctx, m, res)
}

// wrong is the Seen of a record with one field changed.
func (p *step) wrong(r *store.Record) store.Seen {
	seen := r.Seen()
	switch p.pick(pickWrong, 5) {
	case 0:
		seen.Fence++
	case 1:
		seen.Owner[p.pick(pickVariant, 16)] ^= 1
	case 2:
		seen.State = seen.State%store.Unknown + 1
	case 3:
		seen.Until = atLeastEpoch(seen.Until).Add(1000)
	case 4:
		seen.Expires = atLeastEpoch(seen.Expires).Add(1000)
	}
	return seen
}
