package consume

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/semel-go/semel/consume/driver"
)

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
	if s.nak(ctx, t, t.delay) != replyError {
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
	t.next, t.delay = nextHold, min(firstSettlePause<<min(t.failed, 10), longestSettlePause)
	if to := t.disp.Action; (to == driver.DeadLetter || to == driver.Quarantine) && !t.forwarded {
		headers := driver.Letter(t.m, t.disp, t.call.Operation)
		if answer := s.call(ctx, t, func(ctx context.Context) error { return t.d.Forward(ctx, to, headers) }); answer != replyOK {
			s.letterFailed(ctx, t, answer)
			return
		}
		t.forwarded, t.failed = true, 0
	}
	switch s.call(ctx, t, t.d.Ack) {
	case replyOK:
		t.next = nextDone
		s.c.observe(ctx, Event{Kind: EventSettled, Message: t.m, Disposition: t.disp})
	case replyGone:
		s.drop(ctx, t)
	case replyError:
		if t.failed >= maxSettlements {
			s.c.observe(ctx, Event{Kind: EventGivenUp, Message: t.m, Disposition: t.disp})
			s.giveBack(ctx, t)
		}
	}
}

// letterPause is how long the broker keeps a message whose letter it does not
// accept. Held here, such messages would fill InFlight and stop the consumer.
const letterPause = 5 * time.Minute

// letterFailed gives the message back after the last try. Its outcome is
// stored, and found again at the next delivery.
func (s *session) letterFailed(ctx context.Context, t *task, answer reply) {
	isLast := answer == replyError && t.failed >= maxSettlements && !s.info.HoldsOnly
	if isLast {
		answer = s.nak(ctx, t, letterPause) // Forward need not notice that the delivery is over
	}
	switch {
	case answer == replyGone:
		s.drop(ctx, t)
	case answer == replyOK:
		t.next = nextDone
		s.c.observe(ctx, Event{Kind: EventGivenUp, Message: t.m, Disposition: t.disp})
	}
}

// drop ends the work on a message that does not belong to this delivery any more.
func (s *session) drop(ctx context.Context, t *task) {
	t.next = nextDone
	s.c.observe(ctx, Event{Kind: EventGivenUp, Message: t.m, Disposition: t.disp, Err: driver.ErrGone})
}

// giveBack tells the broker that this consumer does nothing more with the
// message. If the broker misses it, it redelivers the message later.
func (s *session) giveBack(ctx context.Context, t *task) {
	t.next = nextDone
	if s.nak(ctx, t, 0) == replyOK {
		s.c.observe(ctx, Event{Kind: EventReturned, Message: t.m, Disposition: t.disp})
	}
}

// nak gives the message back. An Extend after that would keep it from other consumers, so
// that none runs or begins unless the Nak fails: then the message is still here.
func (s *session) nak(ctx context.Context, t *task, delay time.Duration) reply {
	answer := s.call(ctx, t, func(ctx context.Context) error {
		if err := s.extends.pause(ctx, t.d); err != nil {
			return err
		}
		return t.d.Nak(ctx, delay)
	})
	if answer != replyOK {
		s.extends.resume(t.d)
	}
	return answer
}

// settleTimeout is how long one call of a Delivery or of Stop may take.
const settleTimeout = 10 * time.Second

// reply is how a call of a method of a delivery has ended.
type reply uint8

const (
	replyOK reply = iota
	replyError
	replyGone // ErrGone
)

// call calls a method of the delivery, also after the handlers' context has ended.
func (s *session) call(ctx context.Context, t *task, f func(context.Context) error) reply {
	sctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTimeout)
	defer cancel()
	err := f(sctx)
	if err == nil {
		return replyOK
	}
	t.failed++
	s.c.observe(ctx, Event{Kind: EventSettleFailed, Message: t.m, Disposition: t.disp, Err: err})
	if errors.Is(err, driver.ErrGone) {
		return replyGone
	}
	return replyError
}
