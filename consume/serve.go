package consume

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/semel-go/semel/consume/driver"
)

// Serve takes messages from a source and handles them until ctx ends: up to
// Options.Concurrency at once, those with equal order keys one after the other.
// While the store is down, Serve takes no message, and from time to time tries one
// that it has.
//
// When ctx ends, Serve stops the source, gives the messages that no handler has begun,
// and the messages that wait for a retry, back to the broker, waits for the running
// handlers (see Options.Drain), and returns nil.
//
// Serve returns an error if it could not start, if the source was closed, if a
// message was rejected (ErrRejected), or if a handler or the broker has not answered 25 s
// after the end of the handlers' contexts. It waits once as long for a Next that has not
// returned: a source may end its poll first.
func (c *Consumer) Serve(ctx context.Context, src driver.Source) error {
	info, err := src.Info(ctx)
	if err != nil && ctx.Err() != nil {
		return nil // the caller ended it during the start
	}
	if err != nil {
		return fmt.Errorf("consume: the source: %w", err)
	}
	if !c.opt.AllowShortRetention && info.Horizon > c.opt.Retention {
		return fmt.Errorf("consume: Retention: is %v, but the broker keeps messages for %s, so that a message may be redelivered after its outcome was "+
			"deleted; keep outcomes longer, or set AllowShortRetention to move such messages to the quarantine", c.opt.Retention, horizon(info.Horizon))
	}
	s := &session{
		c: c, src: src, info: info,
		fetched: make(chan fetch), stopped: make(chan error), idle: make(chan *task), results: make(chan *task), settling: make(chan *task), woken: make(chan *task),
		answers: make(chan struct{}), stop: make(chan struct{}), gone: make(chan struct{}),
		lines: map[string][]*task{}, extends: extender{held: map[driver.Delivery]*extension{}},
	}
	defer close(s.gone)
	return s.loop(ctx)
}

func horizon(d time.Duration) string {
	if d == driver.Forever {
		return "ever"
	}
	return d.String()
}

// session is one Serve. Its fields belong to the goroutine of the loop, except
// the channels and the fields that never change.
type session struct {
	c    *Consumer
	src  driver.Source
	info driver.Info

	fetched  chan fetch
	stopped  chan error    // from the source's Stop
	idle     chan *task    // to a worker that is free
	results  chan *task    // from workers
	settling chan *task    // from workers whose first settlement takes long
	woken    chan *task    // from the goroutines that held a message
	answers  chan struct{} // from probes whose handlers have started
	stop     chan struct{} // closed when draining begins
	gone     chan struct{} // closed when Serve returns

	ready      []*task            // to be started, in order
	lines      map[string][]*task // by line; the first message is ready, running or held, and the others wait for it
	running    int                // handlers, which Concurrency limits
	taken      int                // deliveries that are not settled
	waiting    waitingMessages    // of those that wait for something else than a free handler
	extends    extender
	fetching   bool
	fetchPause pause // after a failed fetch
	outage     outage
	suspects   suspects
	served     atomic.Int64 // when the store last answered a message, in ns since 1970
	draining   bool
	stopping   bool // the source's Stop was called
	returning  bool // it has returned: messages may be given back
	// revocable: the broker may take messages away, waiting ones included.
	revocable bool
	looked    time.Time // when Serve last looked for revoked messages in the lines
	endFetch  context.CancelFunc
	err       error
}

// pause is a time in which something is not tried again.
type pause struct {
	step  int
	timer <-chan time.Time
}

// begin starts the pause: twice as long each time, from first to last.
func (p *pause) begin(first, last time.Duration) {
	p.timer = time.After(min(first<<min(p.step, 20), last))
	p.step++
}

// revokedPoll is how often Serve checks whether the broker has taken away a
// message that waits for a worker, for the store or for an earlier message.
const revokedPoll = 100 * time.Millisecond

// settleGrace is how long handlers and settlements may take after their context
// has ended: a letter and its ack, each up to its time-out.
const settleGrace = 2*settleTimeout + 5*time.Second

// errDraining is the cause of the handlers' cancellation after Options.Drain.
var errDraining = errors.New("consume: the time for draining is over")

func (s *session) loop(ctx context.Context) error {
	hctx, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cancel(context.Canceled)
	var helpers sync.WaitGroup
	defer helpers.Wait()
	// The extensions go on after the handlers' context has ended, because a
	// handler that still runs must keep its message.
	ectx, endExtends := context.WithCancel(context.WithoutCancel(ctx))
	defer endExtends()
	helpers.Go(func() { s.extend(ectx) })

	fctx, endFetch := context.WithCancel(ctx)
	defer endFetch()
	s.endFetch = endFetch

	stop := ctx.Done()
	var deadline <-chan time.Time
	late := false // Next has got a second settleGrace
	for {
		s.startReady(fctx, hctx)
		if s.returning && s.taken == 0 {
			return s.err
		}
		if s.draining && deadline == nil {
			deadline = time.After(s.c.opt.Drain)
		}
		var look <-chan time.Time
		if s.revocable && len(s.ready)+len(s.outage.stalled)+s.waiting.messages > 0 {
			look = time.After(revokedPoll)
		}
		select {
		case <-look:
		case <-stop:
			stop = nil
			s.drain(nil)
		case f := <-s.fetched:
			s.take(fctx, f)
		case err := <-s.stopped:
			s.returning = true
			if err != nil {
				s.c.observe(ctx, Event{Kind: EventReceiveFailed, Err: err})
			}
		case t := <-s.results:
			s.freePlace(t)
			s.ended(ctx, t)
		case t := <-s.settling:
			s.freePlace(t)
			s.waiting.add(t)
		case t := <-s.woken:
			s.wake(t)
		case <-s.answers:
			s.resume(ctx)
		case <-s.fetchPause.timer:
			s.fetchPause.timer = nil
		case <-s.outage.pause.timer:
			s.outage.pause.timer = nil
			s.probe()
		case <-deadline:
			switch {
			case hctx.Err() == nil:
				cancel(errDraining)
			case s.fetching && !late: // Next need not end with its context
				late = true
			default:
				return s.notEnded()
			}
			deadline = time.After(settleGrace)
		}
	}
}

// notEnded is the error of a Serve that does not wait any longer. The turns of the messages
// that were not given back are left.
func (s *session) notEnded() error {
	cause := "their handlers ignore their context"
	switch {
	case s.running > 0:
	case s.fetching:
		cause = "Next of the source has not returned"
	default:
		cause = "the broker does not answer, and redelivers them"
	}
	for _, t := range s.ready {
		t.leaveTurn()
	}
	return fmt.Errorf("consume: %d messages did not end %v or more after Drain, %v, was over; %s", s.taken, settleGrace, s.c.opt.Drain, cause)
}

// drain begins the end of Serve, which will return err.
func (s *session) drain(err error) {
	if s.draining {
		return
	}
	s.draining, s.err = true, err
	s.ready = append(s.ready, s.outage.stalled...)
	s.outage = outage{}
	close(s.stop)
	s.wakeSuspects()
	s.endFetch()
}
