package store

import "time"

// Proposal is a claim, or any other change by a process that does not own the
// record. It has durations instead of times: the store adds its clock, and
// chooses the fence.
type Proposal struct {
	Key    Key
	State  State // Claim: Started or Processing. Swap: any
	Policy Policy
	// Owner is new for each claim, and the same when that claim is sent again, so
	// that a caller who lost the reply finds its own claim.
	Owner       Owner
	Holder      string
	Fingerprint Fingerprint
	Attempt     int           // the new count, including this attempt
	Lease       time.Duration // from now to Until; ignored where Until is not used
	Keep        time.Duration // from now to Expires; ignored where Expires is not used
	Outcome     Outcome       // Completed and Failed
	Error       string        // LastError
	// FormerOwners replaces the record's; see [Record.FormerOwnersAfter]. Only for Swap,
	// and nil with Restart.
	FormerOwners []FormerOwner
	// Restart replaces an expired record by a new one, whose Created is now.
	// Only for Swap.
	Restart bool
}

// Insert makes the record of a Claim that wins at the time now. floor is the
// highest fence that the store has ever swept; 0 if the store does not know it.
func (p *Proposal) Insert(now time.Time, floor uint64) Record {
	r := Record{Created: Time(Micros(now))}
	p.apply(&r, now, floor)
	return r
}

// Replace makes the record of a Swap that replaces old at the time now. The fence
// grows.
func (p *Proposal) Replace(old *Record, now time.Time) Record {
	r := Record{Created: old.Created}
	if p.Restart {
		r.Created = Time(Micros(now))
	}
	p.apply(&r, now, old.Fence)
	r.FormerOwners = p.FormerOwners
	return r
}

// Found is the answer to p, for which a store has found or written r at the time now.
func (p *Proposal) Found(r *Record, now time.Time) Found {
	won := p.Owner != Owner{} && r.Owner == p.Owner && r.State == p.State
	return Found{Record: *r, Won: won, Now: now}
}

func (p *Proposal) apply(r *Record, now time.Time, floor uint64) {
	r.Key, r.State, r.Policy, r.Owner, r.Holder = p.Key, p.State, p.Policy, p.Owner, p.Holder
	r.Fingerprint, r.Attempt, r.LastError, r.Format = p.Fingerprint, p.Attempt, p.Error, Format
	r.Fence = max(floor+1, uint64(max(0, Micros(now))))
	r.settle(p.Outcome, p.Lease, p.Keep, now)
}

// Settlement is how the owner of a claim ends it.
type Settlement struct {
	State   State // Completed, Failed, Released or Unknown
	Attempt int   // the new count; one less than before gives the attempt back
	Outcome Outcome
	Error   string
	Wait    time.Duration // Released: from now to the earliest next attempt
	Keep    time.Duration // from now to Expires; Unknown: ignored
}

// Apply makes the record of a settlement of r at the time now. The fence, the owner
// and the fingerprint stay.
func (s *Settlement) Apply(r Record, now time.Time) Record {
	r.State, r.Attempt, r.LastError = s.State, s.Attempt, s.Error
	r.settle(s.Outcome, s.Wait, s.Keep, now)
	return r
}

// Done reports whether s has been applied to r already, so that a settlement that
// is sent again succeeds. The caller must have compared owner and fence.
func (s *Settlement) Done(r *Record) bool {
	return r.State == s.State && (!s.State.Terminal() || r.Outcome.Equal(s.Outcome))
}

// settle sets the fields that depend on the state.
func (r *Record) settle(o Outcome, wait, keep time.Duration, now time.Time) {
	r.Until, r.Expires, r.Completed, r.Outcome = time.Time{}, time.Time{}, time.Time{}, Outcome{}
	r.Updated = Time(Micros(now))
	switch r.State {
	case Started, Processing:
		r.Until = Time(Micros(now.Add(wait)))
	case Released:
		r.Until, r.Expires = Time(Micros(now.Add(wait))), Time(Micros(now.Add(max(wait, keep))))
	case Completed, Failed:
		r.Completed, r.Expires, r.Outcome = r.Updated, Time(Micros(now.Add(keep))), o
	case Unknown: // the record stays until it is resolved
	}
}
