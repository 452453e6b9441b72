package consume_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/consume/driver"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/memstore"
)

// turnstile is a Guard that takes no message whose key begins with busy before its turn.
type turnstile struct {
	*semel.Guard
	ready chan struct{} // of all turns

	mu    sync.Mutex
	tries int // of these messages
	left  int // turns that were given up
}

func newTurnstile(g *semel.Guard) *turnstile {
	return &turnstile{Guard: g, ready: make(chan struct{})}
}

func (t *turnstile) Unwrap() semel.Runner { return t.Guard }

func (t *turnstile) Run(ctx context.Context, call semel.Call, fn semel.Handler) (semel.Result, error) {
	if strings.HasPrefix(call.Key, "busy") {
		t.mu.Lock()
		t.tries++
		t.mu.Unlock()
		if driver.TurnOf(ctx) == nil {
			return semel.Result{}, &semel.Error{Reason: semel.ErrInProgress, Operation: call.Operation, Cause: &turn{of: t}}
		}
	}
	return t.Guard.Run(ctx, call, fn)
}

// counted are the numbers of tries and of turns that were given up.
func (t *turnstile) counted() (tries, left int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.tries, t.left
}

type turn struct {
	of   *turnstile
	once sync.Once
}

func (*turn) Error() string            { return "its tenant is busy" }
func (t *turn) Ready() <-chan struct{} { return t.of.ready }
func (t *turn) Leave() {
	t.once.Do(func() {
		t.of.mu.Lock()
		defer t.of.mu.Unlock()
		t.of.left++
	})
}

// Messages that wait for their turn take no place of others, are not asked again and again,
// and use up no attempt and no delivery.
func TestServe_TurnsHaveNotCome_OtherMessagesRun(t *testing.T) {
	const busy, others = 100, 50
	synctest.Test(t, func(t *testing.T) {
		s, st := newSource(), memstore.New(nil)
		for i := range busy {
			m := keyed(fmt.Sprint("busy", i))
			m.Deliveries = 9
			s.in <- m
		}
		for i := range others {
			s.in <- keyed(fmt.Sprint("k", i))
		}
		run := newTurnstile(newGuard(t, st, nil))
		r := serve(t, newConsumer(t, run, succeeds, consume.Options{Concurrency: 2, InFlight: 4, Waiting: 2 * busy, MaxAttempts: 1, MaxDeliveries: 2}), s)
		pass(time.Hour)
		if n := len(s.heard()); n != others || s.count("ack k49") != 1 {
			t.Errorf("%d of %d other messages are acked", n, others)
		}
		if tries, left := run.counted(); tries != busy || left != 0 {
			t.Errorf("%d messages that wait were tried %d times; %d turns were given up", busy, tries, left)
		}
		close(run.ready)
		pass(time.Second)
		if tries, left := run.counted(); tries != 2*busy || left != busy || len(s.heard()) != busy+others || s.count("ack busy99") != 1 {
			t.Errorf("after their turn: %d tries, %d turns given up, the broker was told %d things", tries, left, len(s.heard()))
		}
		r.end()
	})
}

// A broker that limits deliveries counts each one. Messages that wait for their turn count as
// messages that are here, so that a stop gives back no more than the handlers could have begun.
func TestServe_BrokerLimitsDeliveries_TurnsTakeHandlers(t *testing.T) {
	const busy, handlers = 50, 4
	synctest.Test(t, func(t *testing.T) {
		s := newSource()
		s.info.DeliveryLimit = 3
		for i := range busy {
			s.in <- keyed(fmt.Sprint("busy", i))
		}
		run := newTurnstile(newGuard(t, nil, nil))
		c := newConsumer(t, run, succeeds, consume.Options{Concurrency: handlers})
		r := serve(t, c, s)
		pass(time.Minute)
		r.end()
		if taken, heard := busy-len(s.in), s.heard(); taken != handlers || len(heard) != handlers {
			t.Errorf("%d messages taken for %d handlers; the stop told %q", taken, handlers, heard)
		}

		r = serve(t, c, s)
		pass(time.Minute)
		close(run.ready)
		pass(time.Minute)
		if n := s.count("ack busy49"); len(s.in) > 0 || n != 1 {
			t.Errorf("after the turns %d messages are in the queue; the last one is acked %d times", len(s.in), n)
		}
		r.end()
	})
}

func succeeds(context.Context, *semel.Execution, *consume.Message) error { return nil }

// A message whose turn has not come keeps the messages of its order key behind it.
func TestServe_TurnHasNotCome_OrderStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSource(ordered("busy1", "lane"), ordered("k2", "lane"), ordered("k3", "other"))
		run := newTurnstile(newGuard(t, nil, nil))
		r := serve(t, newConsumer(t, run, succeeds, consume.Options{}), s)
		pass(time.Minute)
		if got := s.heard(); fmt.Sprint(got) != "[ack k3]" {
			t.Errorf("before the turn: %q", got)
		}
		close(run.ready)
		pass(time.Second)
		if got := s.heard(); fmt.Sprint(got) != "[ack k3 ack busy1 ack k2]" {
			t.Errorf("after the turn: %q", got)
		}
		r.end()
	})
}

// At the end of Serve, a message that waits goes back to the broker, and its turn to others.
// So does a message that the broker has taken away.
func TestServe_EndBeforeTurn_IsGivenBackAndTurnLeft(t *testing.T) {
	for name, end := range map[string]func(s *source, r *serving){
		"end":     func(*source, *serving) {},
		"revoked": func(s *source, _ *serving) { close(s.revoked); pass(time.Second) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSource(keyed("busy1"), keyed("busy2"))
				run := newTurnstile(newGuard(t, nil, nil))
				r := serve(t, newConsumer(t, run, fails, consume.Options{}), s)
				pass(time.Second)
				end(s, r)
				if took := r.end(); took > time.Second {
					t.Errorf("the end took %v", took)
				}
				if tries, left := run.counted(); tries != 2 || left != 2 {
					t.Errorf("%d tries, %d turns given up", tries, left)
				}
				if n := s.count("nak busy1 0s") + s.count("nak busy2 0s"); n != 2 {
					t.Errorf("the broker was told %q", s.heard())
				}
			})
		})
	}
}

// A handler that leaves by Goexit has used its turn: the pause counts, and then the message
// waits for a turn of its own.
func TestServe_GoexitInTurn_IsRetriedAfterPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSource(keyed("busy1"))
		run := newTurnstile(newGuard(t, nil, nil))
		close(run.ready)
		var ran atomic.Int64
		r := serve(t, newConsumer(t, run, func(context.Context, *semel.Execution, *consume.Message) error {
			if ran.Add(1) == 1 {
				goexit()
			}
			return nil
		}, consume.Options{Backoff: func(int) time.Duration { return time.Hour }}), s)
		pass(time.Hour - time.Second)
		if tries, left := run.counted(); ran.Load() != 1 || tries != 2 || left != 1 {
			t.Errorf("before the end of the pause: %d runs, %d tries, %d turns given up", ran.Load(), tries, left)
		}
		pass(time.Minute)
		if tries, left := run.counted(); ran.Load() != 2 || tries != 4 || left != 2 || s.count("ack busy1") != 1 {
			t.Errorf("after the pause: %d runs, %d tries, %d turns given up, the broker was told %q", ran.Load(), tries, left, s.heard())
		}
		r.end()
	})
}

// A Serve that does not wait for the broker any longer leaves the turns of its messages, so
// that others of the runner get them.
func TestServe_SourceDoesNotEnd_TurnsAreLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &endless{newSource(keyed("busy1")), make(chan struct{})}
		run := newTurnstile(newGuard(t, nil, nil))
		r := serve(t, newConsumer(t, run, succeeds, consume.Options{}), s)
		pass(time.Second)
		r.end()
		if _, left := run.counted(); r.err == nil || left != 1 {
			t.Errorf("Serve has returned %v; %d turns are given up, want 1", r.err, left)
		}
		close(s.free)
	})
}

// endless is a source whose Next ignores its context once the messages are taken.
type endless struct {
	*source
	free chan struct{}
}

func (s *endless) Next(ctx context.Context, limit int) ([]driver.Delivery, error) {
	if len(s.in) == 0 {
		<-s.free
	}
	return s.source.Next(ctx, limit)
}

// A message that waits for its turn did not reach the store, so it does not show that the
// store answers again.
func TestOutage_TurnHasNotCome_IsNoAnswerOfTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := &brittle{Store: store.Store(memstore.New(nil)), down: true}
		s := newSource(keyed("k1"), keyed("busy1"), keyed("busy2"))
		var seen events
		run := newTurnstile(newGuard(t, st, nil))
		r := serve(t, newConsumer(t, run, succeeds, consume.Options{Concurrency: 1, Observe: seen.observe}), s)
		pass(time.Minute)
		if n := seen.count(consume.EventResumed); n > 0 || seen.count(consume.EventOutage) != 1 {
			t.Errorf("while the store is down it has resumed %d times", n)
		}
		st.set(false)
		close(run.ready)
		pass(time.Minute)
		if n := len(s.heard()); n != 3 || seen.count(consume.EventResumed) != 1 {
			t.Errorf("after the outage: %q", s.heard())
		}
		r.end()
		pass(time.Hour) // the undo of the claims ends
	})
}
