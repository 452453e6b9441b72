package consume

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/semel-go/semel/consume/driver"
)

// work is where a task of a session stands. It belongs to the worker while
// there is one, else to the loop.
type work struct {
	d     driver.Delivery
	lane  string
	probe bool // started although the store is down

	step      step
	disp      driver.Disposition
	forwarded bool // the copy is with the broker
	failed    int  // settlements, since it was tried
	lastTry   bool // of a settlement, before the message is given back
	gone      bool // ErrGone

	next  next
	delay time.Duration // of nextHold
	asked bool          // of a probe: the store answered

	begins func() // told when the handler of a probe begins; nil: it is none
}

// step is what the next worker has to do.
type step uint8

const (
	stepRun   step = iota
	stepCarry      // carry out disp
	stepReturn
)

// next is what comes after a worker.
type next uint8

const (
	nextDone   next = iota
	nextHold        // here, for delay
	nextStall       // until the store answers
	nextReject      // the consumer stops
)

func (t *task) revoked() bool {
	select {
	case <-t.d.Revoked():
		return true
	default:
		return false
	}
}

// resign gives the message back, after a last try to settle what has run.
func (t *task) resign() {
	if t.step == stepCarry && !t.lastTry {
		t.lastTry = true
		return
	}
	t.step = stepReturn
}

// work does one step of a task.
func (s *session) work(ctx context.Context, t *task) {
	defer func() { // also when a handler calls runtime.Goexit
		select {
		case s.results <- t:
		case <-s.gone:
		}
	}()
	switch t.step {
	case stepRun:
		s.try(ctx, t)
	case stepCarry:
		s.carry(ctx, t)
	case stepReturn:
		s.giveBack(ctx, t)
	}
}

func (s *session) try(ctx context.Context, t *task) {
	began := time.Now()
	t.disp = driver.Disposition{Action: driver.Retry, Reason: driver.ReasonError, Delay: s.c.opt.Backoff(1), Err: errGoexit}
	t.next, t.delay, t.failed = nextHold, t.disp.Delay, 0
	t.begins = nil
	if t.probe {
		t.begins = func() { s.begun(t) }
	}
	t.disp = s.c.try(ctx, t)
	s.c.observe(ctx, Event{Kind: EventDecided, Message: t.m, Disposition: t.disp, Took: time.Since(began)})
	switch t.disp.Reason {
	case driver.ReasonUnavailable:
		t.next = nextStall
		return
	case driver.ReasonRejected:
		t.next = nextReject
		return
	case driver.ReasonLate, driver.ReasonDeliveries, driver.ReasonInvalid, driver.ReasonDoneButNotStored:
	default:
		t.asked = t.refused == nil
	}
	switch t.disp.Action {
	case driver.Hold:
		t.next, t.delay = nextHold, t.disp.Delay
	case driver.Retry:
		s.retry(ctx, t)
	case driver.Ack, driver.DeadLetter, driver.Quarantine:
		s.carry(ctx, t)
	}
}

// shortRetry is how long a retry waits here in any case: less than it takes to
// send the message there and back.
const shortRetry = 100 * time.Millisecond

// retry leaves the wait to the broker, which has more room, unless the messages
// behind this one have to wait, too, or the next delivery would have another key,
// and so no attempts behind it.
func (s *session) retry(ctx context.Context, t *task) {
	t.next, t.delay = nextHold, t.disp.Delay
	if s.info.HoldsOnly || t.m.OrderKey != "" || t.delay <= shortRetry || strings.HasPrefix(t.m.Key, unprotected) {
		return
	}
	if s.tell(ctx, t, func(ctx context.Context) error { return t.d.Nak(ctx, t.delay) }) || t.gone {
		t.next = nextDone
	}
}

// How often an ack or a letter is tried before the message is given back, and
// the pauses between the settlements that fail.
const (
	mostAcks    = 10
	firstSettle = 20 * time.Millisecond
	lastSettle  = 5 * time.Second
)

// carry tells the broker what was decided: first the copy, then the ack.
func (s *session) carry(ctx context.Context, t *task) {
	t.step, t.next, t.delay = stepCarry, nextHold, min(firstSettle<<min(t.failed, 10), lastSettle)
	if to := t.disp.Action; (to == driver.DeadLetter || to == driver.Quarantine) && !t.forwarded {
		headers := driver.Letter(t.m, t.disp, t.call.Operation())
		if !s.tell(ctx, t, func(ctx context.Context) error { return t.d.Forward(ctx, to, headers) }) {
			s.unsent(ctx, t)
			return
		}
		t.forwarded, t.failed = true, 0
	}
	switch {
	case s.tell(ctx, t, t.d.Ack):
		t.next = nextDone
		s.c.observe(ctx, Event{Kind: EventSettled, Message: t.m, Disposition: t.disp})
	case t.gone:
		s.overtaken(ctx, t)
	case t.failed >= mostAcks:
		s.c.observe(ctx, Event{Kind: EventGivenUp, Message: t.m, Disposition: t.disp})
		s.giveBack(ctx, t)
	}
}

// letterPause is how long the broker keeps a message whose letter it does not
// take: as many as InFlight would stop the consumer.
const letterPause = 5 * time.Minute

// unsent is a letter that could not be sent. What it is about is stored, and is
// found again when the message comes back.
func (s *session) unsent(ctx context.Context, t *task) {
	if t.gone || t.failed < mostAcks || s.info.HoldsOnly {
		s.overtaken(ctx, t)
		return
	}
	if !s.tell(ctx, t, func(ctx context.Context) error { return t.d.Nak(ctx, letterPause) }) {
		s.overtaken(ctx, t) // the delivery may be over, which Forward need not know
		return
	}
	t.next = nextDone
	s.c.observe(ctx, Event{Kind: EventGivenUp, Message: t.m, Disposition: t.disp})
}

// overtaken lets go of a message that is not this delivery's any more.
func (s *session) overtaken(ctx context.Context, t *task) {
	if t.gone {
		t.next = nextDone
		s.c.observe(ctx, Event{Kind: EventGivenUp, Message: t.m, Disposition: t.disp, Err: driver.ErrGone})
	}
}

// giveBack says that nothing more will be done here. If the broker does not
// hear it, the message comes again all the same, later.
func (s *session) giveBack(ctx context.Context, t *task) {
	t.next = nextDone
	if s.tell(ctx, t, func(ctx context.Context) error { return t.d.Nak(ctx, 0) }) {
		s.c.observe(ctx, Event{Kind: EventReturned, Message: t.m, Disposition: t.disp})
	}
}

// settleTimeout is how long one word with the broker may take.
const settleTimeout = 10 * time.Second

// tell has a word with the broker, also when the handlers' context has ended.
func (s *session) tell(ctx context.Context, t *task, say func(context.Context) error) bool {
	sctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTimeout)
	defer cancel()
	err := say(sctx)
	if err != nil {
		t.failed++
		t.gone = errors.Is(err, driver.ErrGone)
		s.c.observe(ctx, Event{Kind: EventSettleFailed, Message: t.m, Disposition: t.disp, Err: err})
	}
	return err == nil
}
