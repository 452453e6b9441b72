package consume

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/semel-go/semel/consume/driver"
)

// fetch is the result of a Next.
type fetch struct {
	tasks []*task
	err   error
}

// startReady starts the work of messages that are ready, and the next fetch.
func (s *session) startReady(ctx, hctx context.Context) {
	s.releaseRevoked()
	s.stopSource(hctx)
	waiting := s.ready[:0]
	for i, t := range s.ready {
		switch {
		case s.returning || t.revoked():
			t.prepareReturn()
		case s.draining: // given back once the source has stopped
			waiting = append(waiting, s.ready[i])
			continue
		case t.isDecided(): // it needs no handler, so Concurrency does not limit it
		case s.outage.on && !t.probe && !t.alone:
			s.outage.stalled = append(s.outage.stalled, t)
			continue
		case s.running >= s.c.opt.Concurrency:
			waiting = append(waiting, s.ready[i])
			continue
		case s.outage.reported && !s.outage.on:
			t.asProbe()
		}
		s.start(hctx, t)
	}
	clear(s.ready[len(waiting):])
	s.ready = waiting

	if s.draining || s.fetching || s.outage.on || s.fetchPause.timer != nil || len(s.ready) >= s.c.opt.Concurrency {
		return
	}
	if n := s.fetchLimit(); n > 0 {
		s.fetching = true
		go s.fetch(ctx, n)
	}
}

// stopSource has the source stop when Serve ends, once its last Next has
// returned.
func (s *session) stopSource(ctx context.Context) {
	if !s.draining || s.fetching || s.stopping {
		return
	}
	s.stopping = true
	go func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTimeout)
		defer cancel()
		err := s.src.Stop(ctx)
		select {
		case s.stopped <- err:
		case <-s.gone:
		}
	}()
}

func (s *session) fetch(ctx context.Context, limit int) {
	ds, err := s.src.Next(ctx, limit)
	f := fetch{tasks: make([]*task, len(ds)), err: err}
	for i, d := range ds {
		f.tasks[i] = &task{m: d.Message(), work: work{d: d}}
	}
	s.identify(f, 0)
}

// identify finds the calls of fetched messages, beginning with message i.
func (s *session) identify(f fetch, i int) {
	defer func() {
		if i < len(f.tasks) { // a CallFunc called runtime.Goexit, which must end its own message only
			go s.identify(f, i+1)
			return
		}
		select {
		case s.fetched <- f:
		case <-s.gone:
		}
	}()
	for ; i < len(f.tasks); i++ {
		s.c.identify(f.tasks[i])
	}
}

// The first and the longest pause after the broker has failed.
const (
	firstFetchPause   = 50 * time.Millisecond
	longestFetchPause = 10 * time.Second
)

func (s *session) take(ctx context.Context, f fetch) {
	s.fetching = false
	for _, t := range f.tasks {
		s.taken++
		s.revocable = s.revocable || t.d.Revoked() != nil
		s.extends.add(t.d, t.m)
		t.line = lineOf(t.m)
		if t.line == "" {
			s.ready = append(s.ready, t)
			continue
		}
		queue := s.lines[t.line]
		if s.lines[t.line] = append(queue, t); len(queue) == 0 {
			s.ready = append(s.ready, t)
		} else {
			s.waiting.add(t)
		}
	}
	closed := errors.Is(f.err, driver.ErrClosed)
	failed := f.err != nil && !closed && ctx.Err() == nil
	if failed {
		s.c.observe(ctx, Event{Kind: EventReceiveFailed, Err: f.err})
	}
	switch {
	case len(f.tasks) > 0:
		s.fetchPause = pause{}
	case closed:
		s.drain(f.err)
	case failed:
		s.fetchPause.begin(firstFetchPause, longestFetchPause)
	case f.err == nil: // so that a source that does not wait does not spin
		s.fetchPause = pause{timer: time.After(firstFetchPause / 10)}
	}
}

// lineOf returns the name of the line in which a message waits: its order key;
// without one, its idempotency key, because only one message of a key can run.
func lineOf(m *Message) string {
	switch {
	case m.OrderKey != "":
		return "o" + m.OrderKey
	case m.Key != "":
		return "k" + m.Key
	}
	return ""
}

// ended says what follows after a worker has ended.
func (s *session) ended(ctx context.Context, t *task) {
	s.probed(ctx, t)
	s.freeSuspect(t)
	switch t.next {
	case nextDone:
		s.finish(t)
	case nextStall:
		s.stall(ctx, t)
	case nextReject:
		s.drain(t.disp.Err)
		s.ready = append(s.ready, t)
	case nextHold:
		if t.mayBeOvertaken() {
			s.leave(t)
		}
		if t.turn == nil || s.info.DeliveryLimit == 0 { // see fetchLimit
			s.waiting.add(t)
		}
		go s.hold(t, t.delay)
	}
}

// mayBeOvertaken reports whether the next message of the line need not wait for a message
// that is held: its outcome is stored, and so is its copy, if it has one. After too many
// refusals it does not wait for the copy either, because its line would stop for ever.
func (t *task) mayBeOvertaken() bool {
	return t.isDecided() && (t.disp.Action == driver.Ack || t.forwarded || t.failed >= maxSettlements)
}

// hold keeps a message here for a while, or until its turn has come.
func (s *session) hold(t *task, d time.Duration) {
	var over <-chan time.Time
	var ready <-chan struct{}
	if t.turn != nil {
		ready = t.turn.Ready()
	} else {
		timer := time.NewTimer(d)
		defer timer.Stop()
		over = timer.C
	}
	select {
	case <-ready:
	case <-over:
	case <-t.d.Revoked():
	case <-s.stop:
	}
	select {
	case s.woken <- t:
	case <-s.gone:
		t.leaveTurn()
	}
}

// finish removes a message from the session.
func (s *session) finish(t *task) {
	s.taken--
	s.waiting.remove(t)
	s.extends.remove(t.d)
	s.leave(t)
}

// leave starts the next message of the line.
func (s *session) leave(t *task) {
	if t.line == "" {
		return
	}
	line := t.line
	t.line = ""
	queue := slices.Delete(s.lines[line], 0, 1)
	if len(queue) == 0 {
		delete(s.lines, line)
		return
	}
	s.lines[line] = queue
	s.waiting.remove(queue[0])
	s.ready = append(s.ready, queue[0])
}
