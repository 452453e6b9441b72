package linear

import (
	"errors"

	"github.com/semel-go/semel/store"
)

// step gives all that may be of a row after an operation with that answer:
// nothing, if it cannot have answered so.
func step(r row, in *Input, a *Answer) (next []any) {
	can := func(r row, ok bool) {
		if ok {
			next = append(next, r)
		}
	}
	if !a.Known {
		can(r, true) // it never arrived, or changes nothing
		for _, n := range applied(r, in) {
			can(n, true)
		}
		return next
	}
	switch in.Kind {
	case Claim:
		claim(r, in, a, can)
	case Swap:
		swap(r, in, a, can)
	case Renew:
		if a.Err == nil {
			can(r.taught(in).renewed(in.For), r.held(&in.Lease) != no && r.state == store.Processing)
		} else {
			can(r, errors.Is(a.Err, store.ErrLeaseLost) && !(r.held(&in.Lease) == yes && r.state == store.Processing))
		}
	case Settle:
		settle(r, in, a, can)
	case Get:
		if a.Err != nil {
			can(r, errors.Is(a.Err, store.ErrNotFound) && !r.there)
		} else {
			can(r.learn(&a.Found.Record))
		}
	case Sweep:
		sweep(r, a, can)
	case RecordStep:
		recordStep(r, in, a, can)
	case Steps:
		readSteps(r, in, a, can)
	case SetTimer, DropTimer:
		changeTimer(r, in, a, can)
	case DueTimers:
		dueTimer(r, in, a, can)
	}
	return next
}

func claim(r row, in *Input, a *Answer, can func(row, bool)) {
	if a.Err != nil {
		return // a claim finds a record, or makes one
	}
	won := true
	if r.there {
		won = r.owner == in.Proposal.Owner && r.state == in.Proposal.State
	} else {
		r = proposed(&in.Proposal, &r)
	}
	n, ok := r.learn(&a.Found.Record)
	if in.Cached && !won && r.state.Terminal() {
		n, ok = r.recognize(&a.Found.Record)
	}
	can(n, ok && won == a.Found.Won)
}

func swap(r row, in *Input, a *Answer, can func(row, bool)) {
	if a.Err != nil {
		can(r, errors.Is(a.Err, store.ErrNotFound) && !r.there)
		return
	}
	is := r.seen(&in.Seen)
	if is != no {
		n, ok := r.swapped(in).learn(&a.Found.Record)
		can(n, ok && a.Found.Won)
	}
	if is != yes && r.there {
		n, ok := r.learn(&a.Found.Record)
		can(n, ok && a.Found.Won == (r.owner == in.Proposal.Owner && r.state == in.Proposal.State))
	}
}

// swapped is r after a swap whose comparison holds.
func (r row) swapped(in *Input) row {
	r.fence = in.Seen.Fence
	return proposed(&in.Proposal, &r)
}

// taught is r with the fence of a lease that is valid.
func (r row) taught(in *Input) row {
	r.fence = in.Lease.Fence
	return r
}

func settle(r row, in *Input, a *Answer, can func(row, bool)) {
	held := r.held(&in.Lease)
	again := r.state == in.Settlement.State && (!r.state.Terminal() || r.outcome == told(in.Settlement.Outcome))
	if a.Err != nil {
		can(r, errors.Is(a.Err, store.ErrLeaseLost) && !(held == yes && (r.state == store.Processing || again)))
		return
	}
	if held == no {
		return
	}
	can(r.taught(in).settled(&in.Settlement), r.state == store.Processing)
	can(r.taught(in), r.state != store.Processing && again)
}

// sweep may pass over any record, and remove one that has expired by its clock.
func sweep(r row, a *Answer, can func(row, bool)) {
	now := store.Micros(a.Now)
	if a.Lapsed {
		n, ok := r.learn(&a.Found.Record)
		can(n, ok && (n.state == store.Started || n.state == store.Processing) && n.at(n.until) <= now)
		return
	}
	can(r, true)
	can(r.gone(), r.there && r.expires != none && (r.updated == 0 || r.at(r.expires) <= now))
}

// applied are the rows that an operation may leave whose answer nobody got.
func applied(r row, in *Input) []row {
	switch in.Kind {
	case Claim:
		if !r.there {
			return []row{proposed(&in.Proposal, &r)}
		}
	case Swap:
		if r.seen(&in.Seen) != no {
			return []row{r.swapped(in)}
		}
	case Renew:
		if r.held(&in.Lease) != no && r.state == store.Processing {
			return []row{r.taught(in).renewed(in.For)}
		}
	case Settle:
		if r.held(&in.Lease) != no && r.state == store.Processing {
			return []row{r.taught(in).settled(&in.Settlement)}
		}
	case Sweep:
		if r.there && r.expires != none {
			return []row{r.gone()}
		}
	case RecordStep:
		if r.held(&in.Lease) != no && r.state == store.Processing {
			return []row{r.taught(in).withStep(&in.Step)}
		}
	case SetTimer, DropTimer:
		if changed, ok := r.timer.with(in); ok {
			r.timer = changed
			return []row{r}
		}
	}
	return nil
}
