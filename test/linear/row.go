package linear

import (
	"fmt"
	"time"

	"github.com/semel-go/semel/store"
)

// row is the model of one record, as far as the operations so far determine it.
// Times are microseconds. If the time of a change is unknown, the times that it set
// are known as distances from it.
type row struct {
	there   bool
	state   store.State
	policy  store.Policy
	owner   store.Owner
	holder  string
	print   store.Fingerprint
	attempt int
	text    string
	outcome string

	fence   uint64 // 0: not known
	highest uint64 // of all fences before
	updated int64  // 0: not known
	until   int64  // from updated; none: there is none
	expires int64  // from updated; none: there is none
	created int64  // 0: not known
	born    bool   // created is updated

	steps string // of this life of the key
	timer timer  // in a history of a timer, which has nothing else
}

const none = -1

func micros(d time.Duration) int64 { return d.Microseconds() }

// told is the text that an outcome is compared by.
func told(o store.Outcome) string {
	return fmt.Sprintf("%d %q %q %q %v", o.Code, o.Header, o.Body, o.Codec, o.Gone)
}

// proposed is the row that p makes, at a moment not known, after an old one.
func proposed(p *store.Proposal, old *row) row {
	r := row{
		there: true, policy: p.Policy, owner: p.Owner, holder: p.Holder, print: p.Fingerprint, highest: max(old.highest, old.fence),
		created: old.created,
	}
	if !old.there || p.Restart {
		r.created, r.born = 0, true
	} else {
		r.steps = old.steps
	}
	return r.ended(p.State, p.Attempt, p.Error, p.Outcome, p.Lease, p.Keep)
}

// ended is r in a new state, from a moment not known.
func (r row) ended(s store.State, attempt int, text string, o store.Outcome, wait, keep time.Duration) row {
	r.state, r.attempt, r.text, r.outcome, r.updated, r.until, r.expires = s, attempt, text, told(store.Outcome{}), 0, none, none
	switch s {
	case store.Started, store.Processing:
		r.until = micros(wait)
	case store.Released:
		r.until, r.expires = micros(wait), micros(max(wait, keep))
	case store.Completed, store.Failed:
		r.expires, r.outcome = micros(keep), told(o)
	}
	return r
}

// settled is r after a settlement.
func (r row) settled(s *store.Settlement) row {
	r.born = false
	return r.ended(s.State, s.Attempt, s.Error, s.Outcome, s.Wait, s.Keep)
}

// renewed is r after a renewal.
func (r row) renewed(d time.Duration) row {
	r.updated, r.until, r.born = 0, micros(d), false
	return r
}

// gone is what is left of r when it is swept.
func (r row) gone() row { return row{highest: max(r.highest, r.fence)} }

// learn is r once a record was read that must be it. False: it cannot be.
func (r row) learn(rec *store.Record) (row, bool) {
	r, ok := r.recognize(rec)
	u := store.Micros(rec.Updated)
	if !ok || !fits(&r.updated, u) {
		return r, false
	}
	if r.born {
		r.created, r.born = u, false
	}
	completed := int64(0)
	if r.state.Terminal() {
		completed = u
	}
	ok = fits(&r.created, store.Micros(rec.Created)) && store.Micros(rec.Completed) == completed &&
		store.Micros(rec.Until) == r.at(r.until) && store.Micros(rec.Expires) == r.at(r.expires)
	return r, ok
}

// recognize is learn without the times.
func (r row) recognize(rec *store.Record) (row, bool) {
	if !r.there || rec.State != r.state || rec.Policy != r.policy || rec.Owner != r.owner || rec.Holder != r.holder ||
		rec.Fingerprint != r.print || rec.Attempt != r.attempt || rec.LastError != r.text || told(rec.Outcome) != r.outcome {
		return r, false
	}
	ok := (r.fence != 0 || rec.Fence > r.highest) && fits(&r.fence, rec.Fence)
	return r, ok
}

// fits compares v with the known value, or sets it if none is known.
func fits[T int64 | uint64](known *T, v T) bool {
	if *known == 0 {
		*known = v
	}
	return *known == v
}

// at is the time that is d after the row's last change.
func (r *row) at(d int64) int64 {
	if d == none {
		return 0
	}
	return r.updated + d
}

// answer is how far something is so.
type answer uint8

const (
	no answer = iota
	maybe
	yes
)

// seen tells whether the row is what a swap compares with.
func (r *row) seen(s *store.Seen) answer {
	if !r.there || s.State != r.state || s.Owner != r.owner || r.fence != 0 && s.Fence != r.fence {
		return no
	}
	if s.Until.IsZero() != (r.until == none) || s.Expires.IsZero() != (r.expires == none) {
		return no
	}
	if r.updated != 0 && (store.Micros(s.Until) != r.at(r.until) || store.Micros(s.Expires) != r.at(r.expires)) {
		return no
	}
	if r.fence == 0 || r.updated == 0 && (r.until != none || r.expires != none) {
		return maybe
	}
	return yes
}

// held tells whether a lease is the row's.
func (r *row) held(l *store.Lease) answer {
	switch {
	case !r.there || l.Owner != r.owner || r.fence != 0 && l.Fence != r.fence:
		return no
	case r.fence == 0:
		return maybe
	}
	return yes
}
