package outbox

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// lease is the time for which the store has granted the lanes, by the clock of this
// process. All lanes are renewed together, so it has one end.
type lease struct {
	parent context.Context //nolint:containedctx // of the contexts that the lease makes
	cancel context.CancelFunc
	ctx    context.Context //nolint:containedctx // ends with the lease
	over   chan struct{}   // gets a value when the lease has ended
	timer  *time.Timer
	until  atomic.Pointer[time.Time]
	once   sync.Once
}

// errLeaseOver is the error of a send after the end of the lease.
var errLeaseOver = errors.New("outbox: the lease of the lane is over")

func newLease(parent context.Context) *lease {
	l := &lease{parent: parent, over: make(chan struct{}, 1)}
	l.ctx, l.cancel = context.WithCancel(parent)
	return l
}

// extend sets the end of the lease to d after start.
func (l *lease) extend(start time.Time, d time.Duration) {
	until := start.Add(d)
	l.until.Store(&until)
	if l.timer != nil {
		l.timer.Stop()
	}
	l.timer = time.AfterFunc(time.Until(until), l.lapse)
}

// lapse ends the lease if its time is over.
func (l *lease) lapse() {
	if l.holds() {
		return
	}
	l.end()
	select {
	case l.over <- struct{}{}:
	default:
	}
}

// end ends the contexts of all sends.
func (l *lease) end() { l.once.Do(l.cancel) }

// holds reports whether the lease has not ended. The wall clock counts too, because the
// monotonic clock of a machine that was suspended has stood still.
func (l *lease) holds() bool {
	until := l.until.Load()
	now := time.Now()
	return until != nil && l.ctx.Err() == nil && now.Before(*until) && now.Round(0).Before(until.Round(0))
}

// context is the context of a send. Its Err looks at the clock, so that a process that
// was frozen sends nothing after it wakes, although no timer has run yet.
func (l *lease) context() (*leaseContext, context.CancelFunc) {
	ctx, cancel := context.WithCancel(l.ctx)
	return &leaseContext{ctx, l}, cancel
}

type leaseContext struct {
	context.Context //nolint:containedctx // it is one
	lease           *lease
}

// Err implements context.Context.
func (c *leaseContext) Err() error {
	if err := c.Context.Err(); err != nil {
		return err
	}
	if !c.lease.holds() {
		return errLeaseOver
	}
	return nil
}

type leaseReply struct {
	lanes    []Lane
	share    int
	start    time.Time
	err      error
	released []Lane
}

// renew renews the leases and claims lanes.
func (s *session) renew(ctx context.Context) {
	if s.leasing || s.draining && len(s.lanes) == 0 {
		return
	}
	s.leasing = true
	d := s.p.opt.Lease
	go func() {
		limited, cancel := context.WithTimeout(ctx, d/2)
		defer cancel()
		r := leaseReply{start: time.Now()}
		r.lanes, r.share, r.err = s.p.store.Lease(limited, s.name, d)
		s.leased <- r
	}()
}

// safety is the part of a lease for which the publisher sends no more, because clocks
// do not run at the same speed.
const safety = 10

// onLease notes which lanes the session has.
func (s *session) onLease(ctx context.Context, r leaseReply) {
	s.leasing, s.stays = false, r.err != nil
	if r.err != nil {
		s.p.observe(ctx, Event{Kind: EventStoreFailed, Lane: -1, Err: r.err})
		return
	}
	if r.released != nil {
		for _, l := range r.released {
			delete(s.lanes, l.Number)
			s.p.observe(ctx, Event{Kind: EventReleased, Lane: l.Number})
		}
		return
	}
	now := map[int]Lane{}
	for _, l := range r.lanes {
		now[l.Number] = l
	}
	lost := false
	for number, l := range s.lanes {
		if now[number] != l.Lane {
			lost = true
			delete(s.lanes, number)
			s.p.observe(ctx, Event{Kind: EventLost, Lane: number})
		}
	}
	if (lost || !s.lease.holds()) && !s.stopped {
		s.lease.end() // also the sends of messages that another publisher may have by now
		s.lease = newLease(s.lease.parent)
	}
	d := s.p.opt.Lease
	s.lease.extend(r.start, d-d/safety)
	for number, l := range now {
		if s.lanes[number] == nil {
			s.lanes[number] = &heldLane{Lane: l}
			s.wanted, s.nextLook = true, time.Time{}
			s.p.observe(ctx, Event{Kind: EventClaimed, Lane: number})
		}
	}
	s.markLeaving(len(s.lanes) - r.share)
}

// markLeaving marks the lanes with the highest numbers, so many that the rest is the
// session's share. A lane that was marked before keeps its time.
func (s *session) markLeaving(excess int) {
	numbers := make([]int, 0, len(s.lanes))
	for number := range s.lanes {
		numbers = append(numbers, number)
	}
	slices.Sort(numbers)
	slices.Reverse(numbers)
	for i, number := range numbers {
		switch l := s.lanes[number]; {
		case i >= excess:
			l.leaving = time.Time{}
		case l.leaving.IsZero():
			l.leaving = time.Now()
		}
	}
}

// leave gives back lanes that others are to have: a lane of which nothing is being sent,
// and one that has waited for that as long as a lease. The sends of the latter end, as at
// the end of a lease, and the next publisher repeats the messages without an answer.
func (s *session) leave(ctx context.Context) {
	if s.leasing || s.stays || s.draining {
		return
	}
	leaving := map[int]Lane{}
	for number, l := range s.lanes {
		if !l.leaving.IsZero() {
			leaving[number] = l.Lane
		}
	}
	if len(leaving) == 0 {
		return
	}
	for order, c := range s.busy {
		l := s.lanes[LaneOf(order)]
		switch {
		case l == nil || l.leaving.IsZero():
		case time.Since(l.leaving) >= s.p.opt.Lease:
			c.batch.cancel()
		default:
			delete(leaving, l.Number)
		}
	}
	if len(leaving) == 0 {
		return
	}
	lanes := slices.Collect(maps.Values(leaving))
	s.leasing = true
	go func() {
		limited, cancel := context.WithTimeout(ctx, s.p.opt.Lease/2)
		defer cancel()
		s.leased <- leaseReply{released: lanes, err: s.p.store.Release(limited, s.name, lanes)}
	}()
}

// loseAll forgets all lanes after the lease has ended without a renewal.
func (s *session) loseAll(ctx context.Context) {
	for number := range s.lanes {
		delete(s.lanes, number)
		s.p.observe(ctx, Event{Kind: EventLost, Lane: number})
	}
	if !s.draining {
		s.renew(ctx)
	}
}

// releaseTimeout is how long the end of a session waits for the store.
const releaseTimeout = 5 * time.Second

// releaseAll gives all lanes back when the session ends.
func (s *session) releaseAll(ctx context.Context) {
	var lanes []Lane
	for _, l := range s.lanes {
		lanes = append(lanes, l.Lane)
	}
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTimeout)
	defer cancel()
	if err := s.p.store.Release(limited, s.name, lanes); err != nil {
		s.p.observe(ctx, Event{Kind: EventStoreFailed, Lane: -1, Err: err})
		return
	}
	for _, l := range lanes {
		s.p.observe(ctx, Event{Kind: EventReleased, Lane: l.Number})
	}
}
