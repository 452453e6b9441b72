package outbox

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/semel-go/semel/internal/callback"
	"github.com/semel-go/semel/internal/handlererr"
)

type takeReply struct {
	taken   []Taken
	limit   int
	took    time.Duration
	err     error
	partial bool // topics were left out
	idle    bool // nothing was being sent
}

// take asks the store for messages, if there may be some and places in flight are free.
func (s *session) take(ctx context.Context) {
	if s.draining || s.taking || !s.wanted || !s.lease.holds() {
		return
	}
	began := time.Now()
	limit, leftOut := s.capacity(began)
	if limit == 0 {
		s.poll.Reset(hangsAfter) // messages that hang by then are no reason to wait
		return
	}
	var lanes []Lane
	for _, l := range s.lanes {
		if l.leaving.IsZero() {
			lanes = append(lanes, l.Lane)
		}
	}
	if len(lanes) == 0 {
		return
	}
	slices.SortFunc(lanes, func(a, b Lane) int { return a.Number - b.Number })
	paused, next := s.outages.paused(began, s.nextLook)
	leftOut = append(leftOut, paused...)
	if len(leftOut) > 0 && began.Before(s.nextLook) {
		s.poll.Reset(next.Sub(began)) // after the last pause there is no reason to wait for nextLook
		return
	}
	busy := slices.Collect(maps.Keys(s.busy))
	s.taking, s.wanted = true, false
	go func() {
		limited, cancel := context.WithTimeout(ctx, storeTimeout)
		defer cancel()
		taken, err := s.p.store.Take(limited, lanes, busy, leftOut, limit)
		s.taken <- takeReply{taken, limit, time.Since(began), err, len(leftOut) > 0, len(busy) == 0}
	}()
}

// adapt sets how many messages the next Take reads. If their bodies are large and the
// network is slow, Options.Batch of them may never be read within storeTimeout. After a
// pause it is few, because nobody knows how large the next ones are.
func (s *session) adapt(r takeReply) {
	switch {
	case r.took >= storeTimeout:
		s.most = max(1, r.limit/2)
	case r.err != nil: // it says nothing about the messages
	case len(r.taken) > 0:
		s.largest = max(1, s.largest/2)
		for i := range r.taken {
			s.largest = max(s.largest, placesOf(&r.taken[i].Message))
		}
		if r.took < storeTimeout/4 {
			s.most = min(2*s.most, s.p.opt.Batch)
		}
	case r.idle && !r.partial:
		s.most = min(s.most, firstTake)
	}
}

// lookShare is how much longer than a Take the publisher waits after it, if topics are left
// out and no other has messages: the store may have read all their messages to find none.
const lookShare = 10

// longestLook is how long it waits at most if that Take has failed: the store may have been
// away, and others may have messages.
const longestLook = time.Minute

// onTake sends the messages that the store has returned.
func (s *session) onTake(ctx context.Context, r takeReply) {
	s.taking = false
	s.adapt(r)
	now := time.Now()
	if len(r.taken) == 0 && r.partial {
		pause := lookShare * r.took
		if r.err != nil {
			pause = min(pause, longestLook)
		}
		s.nextLook = now.Add(pause)
	}
	if r.err != nil {
		s.p.observe(ctx, Event{Kind: EventStoreFailed, Lane: -1, Err: r.err})
		return // the next poll tries again
	}
	if len(r.taken) == 0 || s.draining || !s.lease.holds() {
		return
	}
	s.wanted, s.lastWork = true, now
	// A store may return a few more. At least two are sent: a message that has failed before
	// and a new one.
	r.taken = s.outages.admit(r.taken[:min(len(r.taken), max(2, r.limit))], now)
	b := &sending{began: now, topics: map[string]*tally{}}
	held := map[int64]bool{} // Orders that wait for the end of a message before an unreadable one
	for i := range r.taken {
		t := r.taken[i]
		// An unreadable message stops its Order. Those before it must have ended by then.
		if held[t.Order] = held[t.Order] || t.Unreadable != nil && s.busy[t.Order] != nil; held[t.Order] {
			continue
		}
		lane := s.lanes[t.Lane.Number]
		if lane == nil || lane.Fence != t.Lane.Fence || !lane.leaving.IsZero() {
			continue // it was lost, claimed again or promised to others during the request
		}
		if s.byTopic[t.Topic] >= s.p.opt.InFlight {
			continue // its messages are larger than those of the last Takes
		}
		n := b.topics[t.Topic]
		if n == nil {
			n = &tally{}
		}
		n.taken++
		b.topics[t.Topic] = n
		c := s.busy[t.Order]
		if c == nil {
			c = &chain{batch: b}
			s.busy[t.Order] = c
		}
		c.open++
		places := placesOf(&t.Message)
		n.places += places
		s.byTopic[t.Topic] += places
		b.taken = append(b.taken, t)
	}
	if len(b.taken) == 0 {
		return
	}
	for topic := range b.topics {
		if out := s.outages[topic]; out != nil {
			out.probing = b
		}
	}
	b.ctx, b.cancel = s.lease.context()
	b.answered = make([]bool, len(b.taken))
	s.calls[b] = struct{}{}
	go s.publish(ctx, b, s.answers)
}

// publish calls the sink. A message without an answer counts as not sent, also if the sink
// has panicked. After the end of the session nobody reads answers.
func (s *session) publish(ctx context.Context, b *sending, answers chan<- answer) {
	tell := func(a answer) {
		select {
		case answers <- a:
		case <-ctx.Done():
		}
	}
	var messages []Message
	var indexes []int // of the messages in b.taken
	stopped := map[int64]bool{}
	for i := range b.taken {
		t := &b.taken[i]
		switch {
		case stopped[t.Order]:
			tell(answer{b, i, errBehind})
		case t.Unreadable != nil:
			stopped[t.Order] = true
			tell(answer{b, i, Poison(t.Unreadable)})
		default:
			messages, indexes = append(messages, t.Message), append(indexes, i)
		}
	}
	err := errNoAnswer // also if the sink calls runtime.Goexit
	defer func() { tell(answer{b, -1, err}) }()
	if len(messages) == 0 {
		return
	}
	err = cmp.Or(callback.Do(b.ctx, sinkName, func() error {
		s.p.sink.Publish(b.ctx, messages, func(i int, err error) {
			if i >= 0 && i < len(indexes) {
				tell(answer{b, indexes[i], err})
			}
		})
		return nil
	}), err)
}

// onAnswer notes how a message ended. Index -1 is the end of the call, with the error of the
// messages that have no answer.
func (s *session) onAnswer(ctx context.Context, a answer) {
	b := a.batch
	if a.index < 0 {
		for i, done := range b.answered {
			if !done {
				s.onAnswer(ctx, answer{b, i, a.err})
			}
		}
		b.cancel()
		delete(s.calls, b)
		return
	}
	if a.index >= len(b.taken) || b.answered[a.index] {
		return
	}
	b.answered[a.index] = true
	a.err = handlererr.Readable(a.err)
	t := &b.taken[a.index]
	c, n := s.busy[t.Order], b.topics[t.Topic]
	c.open--
	n.places -= placesOf(&t.Message)
	switch skipped := a.err != nil && (c.failed || b.ctx.Err() != nil); {
	case a.err == nil:
		n.sent++
		delete(s.outages, t.Topic)
		s.noteSent(t.Topic)
		s.p.observe(ctx, Event{Kind: EventSent, Entry: &t.Entry, Lane: t.Lane.Number, Took: max(0, time.Since(t.Written))})
		s.end(c, Result{Taken: t, Kind: Delivered, Keep: s.p.opt.Retention > 0})
	case skipped:
		c.failed = true
		s.free(t, c)
	default:
		c.failed = true
		if !IsPoison(a.err) {
			n.failed++
		}
		s.end(c, s.failure(ctx, b, t, a.err))
	}
	if n.answered++; n.answered == n.taken { // the call itself may wait for other topics
		s.outages.observe(t.Topic, b, time.Now())
	}
}

// failure is the result of a message that the sink did not send. t stays as it was taken, so that
// a store recognizes the result if it comes again.
func (s *session) failure(ctx context.Context, b *sending, t *Taken, err error) Result {
	failed := t.Entry
	failed.Attempts++
	failed.LastError = oneLine(err.Error())
	r := Result{Taken: t, Kind: Failed, Error: failed.LastError, Delay: delayOf(err, s.p.opt.Backoff(failed.Attempts))}
	exhausted := s.p.opt.MaxAttempts > 0 && failed.Attempts >= s.p.opt.MaxAttempts
	// Another message of the topic was sent since the attempt before this one.
	reachable := s.lastSent[t.Topic].After(s.attemptBefore(b, t))
	e := Event{Kind: EventFailed, Entry: &failed, Lane: t.Lane.Number, Delay: r.Delay, Err: err}
	if IsPoison(err) || exhausted && reachable {
		r.Kind, r.Delay = Refused, 0
		e.Kind, e.Delay = EventQuarantined, 0
		delete(s.lastFailed, t.Position) // after a retry by an operator, the topic may be away
	}
	s.p.observe(ctx, e)
	return r
}

// end queues a result.
func (s *session) end(c *chain, r Result) {
	c.unsettled++
	s.results = append(s.results, r)
}

// free makes room after a message has ended.
func (s *session) free(t *Taken, c *chain) {
	places := placesOf(&t.Message)
	if s.byTopic[t.Topic] -= places; s.byTopic[t.Topic] == 0 {
		delete(s.byTopic, t.Topic)
	}
	if c.open == 0 && c.unsettled == 0 {
		delete(s.busy, t.Order)
		s.wanted = true // its next messages may be there
	}
}
