package nearcache

import (
	"context"
	"time"

	"github.com/semel-go/semel/store"
)

// worth reports whether a duplicate of the call that made r would be answered
// by r as it is. Decide says so: the cache has no opinion of its own.
func worth(r *store.Record, now time.Time) bool {
	a := store.Decide(r, &store.Call{Policy: r.Policy, Fingerprint: r.Fingerprint}, now).Action
	return a == store.Replay || a == store.ReplayFailure
}

// fill keeps what the store said, if it is of use, and reports whether it can
// be handed out.
func (s *Store) fill(ctx context.Context, q *question, f *store.Found) bool {
	if f.Won {
		s.remember(q, f)
		return false
	}
	if !worth(&f.Record, f.Now) {
		return false
	}
	e := s.entry(q, f)
	if e.life = s.lifetime(e, q.asked); e.life <= 0 {
		return false
	}
	q.sh.put(e, q.epoch, e.told)
	s.show(ctx, e)
	return true
}

// remember keeps a claim that was won, so that its outcome can be kept.
func (s *Store) remember(q *question, f *store.Found) {
	if f.Record.State == store.Processing {
		e := s.entry(q, f)
		e.mine = true
		q.sh.put(e, q.epoch, e.told)
	}
}

func (s *Store) entry(q *question, f *store.Found) *entry {
	e := keep(&f.Record)
	e.hash, e.asked, e.told, e.clock = q.h, q.asked, s.stamp(), f.Now
	return e
}

// settled keeps the outcome of a claim. The store was asked for it at q.asked
// and wrote it then or later, so its times are not before those that are
// reckoned here.
func (s *Store) settled(ctx context.Context, q *question, claim *entry, t *store.Settlement) {
	least, _ := q.asked.since(claim.told)
	now := claim.clock.Add(least - drift(least))
	r := t.Apply(claim.record, now)
	if !worth(&r, now) {
		return
	}
	e := keep(&r)
	e.hash, e.asked, e.told, e.clock, e.reckoned = q.h, claim.asked, q.asked, claim.clock, true
	if e.life = s.lifetime(e, q.asked); e.life > 0 {
		q.sh.put(e, q.epoch, q.asked)
		s.show(ctx, e)
	}
}

// lifetime is how long after it was asked for a record may be handed out that
// was confirmed by then.
func (s *Store) lifetime(e *entry, confirmed stamp) time.Duration {
	least, _ := confirmed.since(e.asked)
	left := e.record.Expires.Sub(e.clock)
	return min(left-drift(left)-s.skew, least+s.maxAge)
}

// found is the entry as a duplicate sees it at now.
func (e *entry) found(now stamp) store.Found {
	_, most := now.since(e.asked)
	return store.Found{Record: e.record, Now: store.Time(store.Micros(e.clock.Add(most)))}
}

// over reports whether the entry is of no use any more.
func (e *entry) over(now stamp) bool {
	_, most := now.since(e.asked)
	return most >= e.life
}
