package storetest

import (
	"fmt"
	"time"

	"github.com/semel-go/semel/store"
)

// rules checks one side's record of one key after a step, given the record before
// the step. It returns the broken rule, or "". These rules of the protocol hold on
// each store, without a comparison with another store.
func (s *side) rules(p *step, k int, before, after *snapshot, res *result) string {
	if !after.there {
		if before.there && p.deed != doSweep {
			return "a record disappeared without a sweep"
		}
		if before.there && !before.found.Record.Expired(res.found.Now) {
			return fmt.Sprintf("a sweep at %v deleted a %v record that expires at %v", res.found.Now, before.found.Record.State, before.found.Record.Expires)
		}
		return ""
	}
	r, now := &after.found.Record, after.found.Now
	if bad := shape(r); bad != "" {
		return bad
	}
	if bad := s.grows(k, r.Fence); bad != "" {
		return bad
	}
	if bad := classified(p, r, now); bad != "" {
		return bad
	}
	if !before.there {
		return ""
	}
	old := &before.found.Record
	if r.Fence == old.Fence && (r.Owner != old.Owner || r.Created != old.Created || r.Fingerprint != old.Fingerprint || r.Policy != old.Policy) {
		return fmt.Sprintf("a record changed its owner or identity without a new fence: %s", diff(*old, *r))
	}
	if r.Fence != old.Fence && !res.found.Won {
		return "the fence changed although no call won"
	}
	if (old.State.Terminal() || old.State == store.Unknown) && !old.Expired(now) && !res.found.Won && !same(old, r) {
		return fmt.Sprintf("a %v record changed without a swap: %s", old.State, diff(*old, *r))
	}
	if res.mustLose && !same(old, r) {
		return fmt.Sprintf("a change was made although its comparison fails: %s", diff(*old, *r))
	}
	return ""
}

// grows updates the rank of the key's fences.
func (s *side) grows(k int, fence uint64) string {
	n := &s.rank[k]
	switch {
	case fence == 0 || fence < n.fence:
		return fmt.Sprintf("the fence of key %d fell from %d to %d", k, n.fence, fence)
	case fence > n.fence:
		n.fence = fence
		n.n++
	}
	return ""
}

// shape returns which fields do not fit the record's state, or "".
func shape(r *store.Record) string {
	live := r.State == store.Started || r.State == store.Processing
	ends := r.State == store.Released || r.State.Terminal()
	switch {
	case !r.State.Valid() || r.Format != store.Format || r.Owner == store.Owner{}:
		return fmt.Sprintf("a record has state %v, format %d, owner %v", r.State, r.Format, r.Owner)
	case r.Until.IsZero() == (live || r.State == store.Released):
		return fmt.Sprintf("a %v record has Until %v", r.State, r.Until)
	case r.Expires.IsZero() == ends:
		return fmt.Sprintf("a %v record has Expires %v", r.State, r.Expires)
	case r.Completed.IsZero() == r.State.Terminal():
		return fmt.Sprintf("a %v record has Completed %v", r.State, r.Completed)
	case !r.State.Terminal() && !r.Outcome.Equal(store.Outcome{}):
		return fmt.Sprintf("a %v record has an outcome", r.State)
	}
	return ""
}

// classified calls store.Decide for a call. While a claim is live, or the record
// has an outcome, Decide must not tell a caller to run, to park or to give up.
func classified(p *step, r *store.Record, now time.Time) string {
	c := p.call()
	token := p.pick(pickBearer, 4) == 0
	if token {
		c.Token = r.Created
	}
	a := store.Decide(r, &c, now).Action
	acts := a == store.Execute || a == store.TakeOver || a == store.DoPark || a == store.Exhausted
	switch live := now.Before(r.Until); {
	case a == store.Corrupt:
		return fmt.Sprintf("Decide finds a %v record corrupt", r.State)
	case !acts:
	case r.State == store.Processing && live:
		return fmt.Sprintf("Decide says %v on a claim that is live until %v at %v", a, r.Until, now)
	case r.State == store.Started && live && !token:
		return fmt.Sprintf("Decide says %v on a reservation that is live until %v at %v", a, r.Until, now)
	case r.State.Terminal() && now.Before(r.Expires), r.State == store.Unknown:
		return fmt.Sprintf("Decide says %v on a %v record", a, r.State)
	case r.State == store.Processing && r.Policy == store.Park && a != store.DoPark:
		return fmt.Sprintf("Decide says %v on a lapsed claim of a parking key", a)
	}
	return ""
}
