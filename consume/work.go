package consume

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/semel-go/semel/consume/driver"
)

// work is the state of a task in a session. It belongs to the task's worker
// while one runs, otherwise to the loop.
type work struct {
	d       driver.Delivery
	lane    string
	probe   bool // started although the store is down
	waits   bool // it is counted in the room
	alone   bool // the store did not answer for its key, and answered for others
	slot    bool // it has a place among the suspects that run
	running bool // it has one of the places of Concurrency

	step      step
	disp      driver.Disposition
	forwarded bool // the broker has stored the copy
	failed    int  // failed settlements since the last try
	lastTry   bool // of the settlement, before the message is given back
	gone      bool // ErrGone

	next          next
	delay         time.Duration // of nextHold
	storeAnswered bool          // during a probe

	onStart func() // called when the handler of a probe starts; nil: the task is no probe
}

// step is the next worker's task.
type step uint8

const (
	stepRun    step = iota
	stepSettle      // carry out disp
	stepReturn
)

// next says what follows after a worker.
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

// prepareReturn gives the message back, after a last try to settle it if its
// handler has run.
func (t *task) prepareReturn() {
	if t.step == stepSettle && !t.lastTry {
		t.lastTry = true
		return
	}
	t.step = stepReturn
}

// start gives a task to a worker that is free, or to a new one. Workers stay until Serve
// returns: a new goroutine for each message spent a tenth of its time on growing its stack.
func (s *session) start(ctx context.Context, t *task) {
	if t.step == stepRun {
		s.running++
		t.running = true
	}
	select {
	case s.idle <- t:
	default:
		go s.worker(ctx, t)
	}
}

// worker works on tasks until Serve returns.
func (s *session) worker(ctx context.Context, t *task) {
	for ok := true; ok; {
		s.work(ctx, t)
		select {
		case t = <-s.idle:
		case <-s.gone:
			ok = false
		}
	}
}

// work does one step of a task.
func (s *session) work(ctx context.Context, t *task) {
	defer func() { // runs also after runtime.Goexit, which ends the worker
		select {
		case s.results <- t:
		case <-s.gone:
		}
	}()
	switch t.step {
	case stepRun:
		s.try(ctx, t)
	case stepSettle:
		s.settle(ctx, t)
	case stepReturn:
		s.giveBack(ctx, t)
	}
}

func (s *session) try(ctx context.Context, t *task) {
	began := time.Now()
	t.disp = driver.Disposition{Action: driver.Retry, Reason: driver.ReasonError, Delay: s.c.opt.Backoff(1), Err: errGoexit}
	t.next, t.delay, t.failed = nextHold, t.disp.Delay, 0
	t.onStart = nil
	if t.probe {
		t.onStart = func() { s.started(t) }
	}
	t.disp = s.c.try(ctx, t)
	s.c.observe(ctx, Event{Kind: EventDecided, Message: t.m, Disposition: t.disp, Took: time.Since(began)})
	switch t.disp.Reason {
	case driver.ReasonUnavailable:
		t.next, t.alone = nextStall, s.concernsKeyOnly(ctx, t, began)
		if t.alone {
			t.next, t.delay = nextHold, t.disp.Delay
		}
		return
	case driver.ReasonRejected:
		t.next = nextReject
		return
	case driver.ReasonLate, driver.ReasonDeliveries, driver.ReasonInvalid, driver.ReasonDoneButNotStored:
	default:
		if t.storeAnswered = t.refused == nil; t.storeAnswered {
			s.served.Store(time.Now().UnixNano())
		}
	}
	switch t.disp.Action {
	case driver.Hold:
		t.next, t.delay = nextHold, t.disp.Delay
	case driver.Retry:
		s.firstSettlement(ctx, t, s.retry)
	case driver.Ack, driver.DeadLetter, driver.Quarantine:
		s.firstSettlement(ctx, t, s.settle)
	}
}

// slowSettle is how long the first settlement of a message may keep the place of its
// handler. Then another handler may run.
const slowSettle = 100 * time.Millisecond

// firstSettlement tells the broker what follows after a handler. If that takes long, it
// tells the loop.
func (s *session) firstSettlement(ctx context.Context, t *task, settle func(context.Context, *task)) {
	ended := make(chan struct{})
	slow := time.AfterFunc(slowSettle, func() {
		defer close(ended)
		select {
		case s.settling <- t:
		case <-s.gone:
		}
	})
	settle(ctx, t)
	if !slow.Stop() {
		<-ended // so that the loop does not hear of it after the task has begun again
	}
}

// freePlace ends the time in which a message counts among the handlers.
func (s *session) freePlace(t *task) {
	if t.running {
		t.running = false
		s.running--
	}
}

// shortRetry is the longest pause that always passes here, because sending the
// message to the broker and back would take as long.
const shortRetry = 100 * time.Millisecond

// retry leaves the wait to the broker, which has more room. The message waits
// here if messages of its order key wait for it, or if its next delivery would
// have a new key, and so would not count this attempt.
func (s *session) retry(ctx context.Context, t *task) {
	t.next, t.delay = nextHold, t.disp.Delay
	if s.info.HoldsOnly || t.m.OrderKey != "" || t.delay <= shortRetry || strings.HasPrefix(t.m.Key, unprotected) {
		return
	}
	if s.nak(ctx, t, t.delay) || t.gone {
		t.next = nextDone
	}
}

// How often an ack or a letter is tried before the message is given back, and
// the first and the longest pause between these tries.
const (
	maxSettlements     = 10
	firstSettlePause   = 20 * time.Millisecond
	longestSettlePause = 5 * time.Second
)

// settle tells the broker what was decided: the copy first, then the ack.
func (s *session) settle(ctx context.Context, t *task) {
	t.step, t.next, t.delay = stepSettle, nextHold, min(firstSettlePause<<min(t.failed, 10), longestSettlePause)
	if to := t.disp.Action; (to == driver.DeadLetter || to == driver.Quarantine) && !t.forwarded {
		headers := driver.Letter(t.m, t.disp, t.call.Operation)
		if !s.call(ctx, t, func(ctx context.Context) error { return t.d.Forward(ctx, to, headers) }) {
			s.letterFailed(ctx, t)
			return
		}
		t.forwarded, t.failed = true, 0
	}
	switch {
	case s.call(ctx, t, t.d.Ack):
		t.next = nextDone
		s.c.observe(ctx, Event{Kind: EventSettled, Message: t.m, Disposition: t.disp})
	case t.gone:
		s.dropIfGone(ctx, t)
	case t.failed >= maxSettlements:
		s.c.observe(ctx, Event{Kind: EventGivenUp, Message: t.m, Disposition: t.disp})
		s.giveBack(ctx, t)
	}
}

// letterPause is how long the broker keeps a message whose letter it does not
// accept. Held here, such messages would fill InFlight and stop the consumer.
const letterPause = 5 * time.Minute

// letterFailed gives the message back after the last try. Its outcome is
// stored, and found again at the next delivery.
func (s *session) letterFailed(ctx context.Context, t *task) {
	if t.gone || t.failed < maxSettlements || s.info.HoldsOnly {
		s.dropIfGone(ctx, t)
		return
	}
	if !s.nak(ctx, t, letterPause) {
		s.dropIfGone(ctx, t) // Forward need not notice that the delivery is over
		return
	}
	t.next = nextDone
	s.c.observe(ctx, Event{Kind: EventGivenUp, Message: t.m, Disposition: t.disp})
}

// dropIfGone ends the work on a message that does not belong to this delivery
// any more.
func (s *session) dropIfGone(ctx context.Context, t *task) {
	if t.gone {
		t.next = nextDone
		s.c.observe(ctx, Event{Kind: EventGivenUp, Message: t.m, Disposition: t.disp, Err: driver.ErrGone})
	}
}

// giveBack tells the broker that this consumer does nothing more with the
// message. If the broker misses it, it redelivers the message later.
func (s *session) giveBack(ctx context.Context, t *task) {
	t.next = nextDone
	if s.nak(ctx, t, 0) {
		s.c.observe(ctx, Event{Kind: EventReturned, Message: t.m, Disposition: t.disp})
	}
}

// nak gives the message back. An Extend after that would keep it from other consumers, so
// that none runs or begins unless the Nak fails: then the message is still here.
func (s *session) nak(ctx context.Context, t *task, delay time.Duration) bool {
	ok := s.call(ctx, t, func(ctx context.Context) error {
		if err := s.extends.pause(ctx, t.d); err != nil {
			return err
		}
		return t.d.Nak(ctx, delay)
	})
	if !ok {
		s.extends.resume(t.d)
	}
	return ok
}

// settleTimeout is how long one call of a Delivery or of Stop may take.
const settleTimeout = 10 * time.Second

// call calls a method of the delivery, also after the handlers' context has
// ended, and reports whether it succeeded.
func (s *session) call(ctx context.Context, t *task, f func(context.Context) error) bool {
	sctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTimeout)
	defer cancel()
	err := f(sctx)
	if err != nil {
		t.failed++
		t.gone = errors.Is(err, driver.ErrGone)
		s.c.observe(ctx, Event{Kind: EventSettleFailed, Message: t.m, Disposition: t.disp, Err: err})
	}
	return err == nil
}
