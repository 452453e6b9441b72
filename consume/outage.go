package consume

import (
	"context"
	"slices"
	"time"
)

// outage is what a session knows of a store that does not answer.
type outage struct {
	on      bool
	stalled []*task // what was tried in vain, or not started
	pause   pause   // until the next probe
}

// The first and the longest pause between two probes of a store that is down.
const (
	firstProbe = 100 * time.Millisecond
	lastProbe  = 10 * time.Second
)

// stall keeps a message for which the store did not answer.
func (s *session) stall(ctx context.Context, t *task) {
	if s.draining {
		s.ready = append(s.ready, t)
		return
	}
	s.outage.stalled = append(s.outage.stalled, t)
	if !s.outage.on {
		s.outage.on = true
		s.c.observe(ctx, Event{Kind: EventOutage, Message: t.m, Disposition: t.disp, Err: t.disp.Err})
	}
	if t.probe = false; s.outage.pause.timer == nil {
		s.outage.pause.begin(firstProbe, lastProbe)
	}
}

// probe tries one message.
func (s *session) probe() {
	if len(s.outage.stalled) == 0 { // nothing to ask with: the next messages will tell
		s.outage = outage{}
		return
	}
	t := s.outage.stalled[0]
	s.outage.stalled = s.outage.stalled[1:]
	t.probe, t.asked = true, false
	s.ready = append(s.ready, t)
}

// begun says that the store has let the handler of a probe begin. The others
// do not wait for its end, which may be far.
func (s *session) begun(t *task) {
	if !t.probe {
		return
	}
	t.probe = false // its end says nothing more
	select {
	case s.answers <- struct{}{}:
	case <-s.gone:
	}
}

// resume ends the outage.
func (s *session) resume(ctx context.Context) {
	if !s.outage.on {
		return
	}
	s.ready = append(s.outage.stalled, s.ready...)
	s.outage = outage{}
	s.c.observe(ctx, Event{Kind: EventResumed})
}

// heard ends the outage if a probe has found that the store answers. What
// began before says nothing of now.
func (s *session) heard(ctx context.Context, t *task) {
	if !t.probe {
		return
	}
	t.probe = false
	switch {
	case !s.outage.on || t.next == nextStall:
	case t.asked:
		s.resume(ctx)
	default: // it did not ask the store: the next one may
		s.probe()
	}
}

// release takes what the broker has taken away out of the outage.
func (s *session) release() {
	s.outage.stalled = slices.DeleteFunc(s.outage.stalled, func(t *task) bool {
		gone := t.revoked()
		if gone {
			s.ready = append(s.ready, t)
		}
		return gone
	})
}
