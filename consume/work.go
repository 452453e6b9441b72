package consume

import (
	"context"
	"time"

	"github.com/semel-go/semel/consume/driver"
)

// work is the state of a task in a session. It belongs to the task's worker
// while one runs, otherwise to the loop.
type work struct {
	d       driver.Delivery
	line    string
	probe   bool        // started although the store is down
	waits   bool        // it is counted in session.waiting
	alone   bool        // the store did not answer for its key, and answered for others
	slot    bool        // it has a place among the suspects that run
	running bool        // it has one of the places of Concurrency
	turn    driver.Turn // for which it waits, or has waited before the try that runs; nil: none

	step      step
	disp      driver.Disposition
	forwarded bool // the broker has stored the copy
	failed    int  // failed settlements since the last try

	next          next
	delay         time.Duration // of nextHold
	storeAnswered bool          // during a probe

	onStart func() // called when the handler of a probe starts; nil: the task is no probe
}

// step is the next worker's task.
type step uint8

const (
	stepRun        step = iota
	stepSettle          // carry out disp
	stepLastSettle      // the same, before the message is given back
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

// leaveTurn gives up the turn for which the message has waited.
func (t *task) leaveTurn() {
	if t.turn != nil {
		t.turn.Leave()
		t.turn = nil
	}
}

// isDecided reports whether the handler has run, and the broker must learn what follows.
func (t *task) isDecided() bool { return t.step == stepSettle || t.step == stepLastSettle }

// prepareReturn gives the message back, after a last try to settle it if its
// handler has run. If it has waited for its turn, the turn goes to another message.
func (t *task) prepareReturn() {
	if t.step == stepSettle {
		t.step = stepLastSettle
		return
	}
	t.step = stepReturn
	t.leaveTurn()
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
	case stepSettle, stepLastSettle:
		s.settle(ctx, t)
	case stepReturn:
		s.giveBack(ctx, t)
	}
}

// tryInTurn tries a message, and gives up the turn for which it has waited, also if the
// handler leaves by runtime.Goexit.
func (s *session) tryInTurn(ctx context.Context, t *task) driver.Disposition {
	if t.turn != nil {
		defer t.leaveTurn()
		ctx = driver.WithTurn(ctx, t.turn)
	}
	return s.c.try(ctx, t)
}

func (s *session) try(ctx context.Context, t *task) {
	began := time.Now()
	t.disp = driver.Disposition{Action: driver.Retry, Reason: driver.ReasonError, Delay: s.c.opt.Backoff(1), Err: errGoexit}
	t.next, t.delay, t.failed = nextHold, t.disp.Delay, 0
	t.onStart = nil
	if t.probe {
		t.onStart = func() { s.started(t) }
	}
	t.disp = s.tryInTurn(ctx, t)
	s.c.observe(ctx, Event{Kind: EventDecided, Message: t.m, Disposition: t.disp, Took: time.Since(began)})
	if t.turn = t.disp.Turn(); t.turn != nil { // the store was not asked
		return
	}
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
		t.step = stepSettle
		s.firstSettlement(ctx, t, s.settle)
	}
}
