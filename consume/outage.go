package consume

import (
	"context"
	"slices"
	"time"

	"github.com/semel-go/semel/store"
)

// outage is a session's knowledge of a store that does not answer.
type outage struct {
	on       bool
	reported bool    // EventOutage was, and EventResumed was not; if not on, the next messages are probes
	stalled  []*task // messages for which the store did not answer, or that wait for it
	pause    pause   // until the next probe
}

// The first and the longest pause between two probes of the store.
const (
	firstProbe   = 100 * time.Millisecond
	longestProbe = 10 * time.Second
)

// stall keeps a message for which the store did not answer.
func (s *session) stall(ctx context.Context, t *task) {
	if s.draining {
		s.ready = append(s.ready, t)
		return
	}
	s.outage.stalled = append(s.outage.stalled, t)
	s.outage.on = true
	if !s.outage.reported {
		s.outage.reported = true
		s.c.observe(ctx, Event{Kind: EventOutage, Message: t.m, Disposition: t.disp, Err: t.disp.Err})
	}
	if t.probe = false; s.outage.pause.timer == nil {
		s.outage.pause.begin(firstProbe, longestProbe)
	}
}

// probe tries one message.
func (s *session) probe() {
	if len(s.outage.stalled) == 0 { // there is no message to probe with: the next ones show whether it answers
		s.outage = outage{reported: true}
		return
	}
	t := s.outage.stalled[0]
	s.outage.stalled = s.outage.stalled[1:]
	t.asProbe()
	s.ready = append(s.ready, t)
}

// asProbe marks a message whose try shows whether the store answers.
func (t *task) asProbe() { t.probe, t.storeAnswered = true, false }

// started ends the outage when the store has let a probe's handler start. The
// other messages need not wait for the handler's end.
func (s *session) started(t *task) {
	if !t.probe {
		return
	}
	t.probe = false // its end has no further meaning
	select {
	case s.answers <- struct{}{}:
	case <-s.gone:
	}
}

// resume ends the outage.
func (s *session) resume(ctx context.Context) {
	if !s.outage.reported {
		return
	}
	s.ready = append(s.outage.stalled, s.ready...)
	s.outage = outage{}
	s.c.observe(ctx, Event{Kind: EventResumed})
}

// probed ends the outage if a probe's end shows that the store answers. Tries
// that began before the outage show nothing.
func (s *session) probed(ctx context.Context, t *task) {
	if !t.probe {
		return
	}
	t.probe = false
	switch {
	case !s.outage.reported || t.next == nextStall:
	case t.storeAnswered:
		s.resume(ctx)
	case t.alone: // the next message may be served
		if len(s.outage.stalled) == 0 {
			s.resume(ctx)
		} else if s.outage.pause.timer == nil {
			s.outage.pause.begin(firstProbe, longestProbe)
		}
	default: // it did not reach the store; the next message may
		s.probe()
	}
}

// releaseRevoked removes the messages that the broker has taken away.
func (s *session) releaseRevoked() {
	s.outage.stalled = slices.DeleteFunc(s.outage.stalled, func(t *task) bool {
		gone := t.revoked()
		if gone {
			s.ready = append(s.ready, t)
		}
		return gone
	})
	s.wakeSuspects()
	s.releaseBehind()
}

// releaseBehind removes the revoked messages that wait for an earlier one of their line. The
// earlier one may be of another partition, and may wait for an hour.
func (s *session) releaseBehind() {
	if !s.revocable || s.waiting.messages == 0 || time.Since(s.looked) < revokedPoll {
		return
	}
	s.looked = time.Now()
	for line, queue := range s.lines {
		rest := slices.DeleteFunc(queue[1:], func(t *task) bool {
			gone := t.revoked()
			if gone {
				t.line = ""
				s.waiting.remove(t)
				s.ready = append(s.ready, t)
			}
			return gone
		})
		s.lines[line] = queue[:1+len(rest)]
	}
}

// pingTimeout limits the question whether the store answers.
const pingTimeout = 5 * time.Second

// concernsKeyOnly reports whether the store's error concerns the message's key
// only: the error says so, or the store answers and this was a probe, or it served
// another message meanwhile. Otherwise the store may be down.
func (s *session) concernsKeyOnly(ctx context.Context, t *task, began time.Time) bool {
	if store.Affects(t.disp.Err) != store.ExtentStore {
		return true
	}
	p, ok := runnerAs[interface{ Ping(context.Context) error }](s.c.runner)
	if !ok || !t.probe && !t.alone && s.served.Load() <= began.UnixNano() {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, pingTimeout)
	defer cancel()
	return p.Ping(ctx) == nil
}
