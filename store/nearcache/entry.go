package nearcache

import (
	"slices"
	"strings"
	"time"

	"github.com/semel-go/semel/store"
)

// entry is a cached record. Only the list's links, used and settling change once it
// is in a shard.
type entry struct {
	record store.Record
	hash   uint64
	cost   int64 // bytes
	// The store was asked at asked, and answered at answered that its clock was
	// clock.
	asked, answered stamp
	clock           time.Time
	// settling is when the settlement of an own claim was first sent, if it got no
	// answer: the store may have applied it then.
	settling stamp
	// life is how long after asked the record may be used.
	life time.Duration
	// ownClaim: it is a claim that this process won, and no answer yet.
	ownClaim bool
	// estimated: this process, and not the store, set the record's times.
	estimated bool

	used       bool
	next, prev *entry
}

// overhead is the size in bytes of an entry without its texts, and of its place
// in a map.
const overhead = 600

// headerSize is the size in bytes of a store.Header: two strings.
const headerSize = 32

// formerOwnerSize is the size in bytes of a store.FormerOwner without its text.
const formerOwnerSize = 80

// newEntry copies a record: the store's may be a small part of a large buffer.
func newEntry(r *store.Record) *entry {
	e := &entry{record: *r}
	c := &e.record
	o := &c.Outcome
	texts := [...]*string{
		&c.Key.Operation, &c.Key.Tenant, &c.Key.Value, &c.Holder, &c.Fingerprint.Alg, &c.Fingerprint.KeyID, &c.Fingerprint.Sum, &c.LastError, &o.Codec,
	}
	size := 0
	for _, t := range texts {
		size += len(*t)
	}
	*o = o.Clone()
	for i := range o.Header {
		size += len(o.Header[i].Name) + len(o.Header[i].Value)
	}
	c.FormerOwners = slices.Clone(c.FormerOwners)
	for i := range c.FormerOwners {
		size += len(c.FormerOwners[i].Holder)
	}
	var b strings.Builder // one string for all texts: one allocation to keep
	b.Grow(size)
	move := func(t *string) {
		b.WriteString(*t)
		*t = b.String()[b.Len()-len(*t):]
	}
	for _, t := range texts {
		move(t)
	}
	for i := range o.Header {
		move(&o.Header[i].Name)
		move(&o.Header[i].Value)
	}
	for i := range c.FormerOwners {
		move(&c.FormerOwners[i].Holder)
	}
	e.cost = overhead + int64(size+len(o.Body)+len(o.Header)*headerSize+len(c.FormerOwners)*formerOwnerSize)
	return e
}

// found is the answer to a duplicate that asks at now.
func (e *entry) found(now stamp) store.Found {
	_, most := now.since(e.asked)
	return store.Found{Record: e.record, Now: store.Time(store.Micros(e.clock.Add(most)))}
}

// expired reports whether the entry must not be used any more.
func (e *entry) expired(now stamp) bool {
	_, most := now.since(e.asked)
	return most >= e.life
}

// replayable reports whether a duplicate of the call that made r gets r's
// outcome. store.Decide says so, because nothing else may judge a record.
func replayable(r *store.Record, now time.Time) bool {
	action := store.Decide(r, &store.Call{Policy: r.Policy, Fingerprint: r.Fingerprint}, now).Action
	return action == store.Replay || action == store.ReplayFailure
}

// stamp is a moment by two clocks of this machine, in nanoseconds. The
// monotonic clock never jumps, but may stand still while the machine sleeps;
// people and daemons set the wall clock.
type stamp struct{ mono, wall int64 }

func (s *Store) stamp() stamp {
	t := s.now()
	return stamp{int64(t.Sub(s.start)), t.UnixNano()}
}

// since returns the least and the most time that may have passed from b to a,
// if one of the two clocks is right.
func (a stamp) since(b stamp) (least, most time.Duration) {
	mono, wall := time.Duration(a.mono-b.mono), time.Duration(a.wall-b.wall)
	return max(0, min(mono, wall)), max(mono, wall)
}

// drift is by how much two clocks may differ after d: 0.1 %, ten times what
// quartz clocks do.
func drift(d time.Duration) time.Duration { return d >> 10 }
