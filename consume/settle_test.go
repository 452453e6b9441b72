package consume_test

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/consume/driver"
)

func TestSettle_AckFails_RepeatsAndGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, fail := range []int64{3, 1000} {
			var ran, acks atomic.Int64
			s := newSource(ordered("k", "o"), ordered("next", "o"))
			s.ack = func() error {
				if acks.Add(1) <= fail {
					return errPlain
				}
				return nil
			}
			var ev events
			r := serve(t, newConsumer(t, newGuard(t, nil, nil), func(context.Context, *semel.Execution, *consume.Message) error {
				ran.Add(1)
				return nil
			}, consume.Options{Observe: ev.observe}), s)
			pass(time.Hour)
			if ran.Load() != 2 {
				t.Errorf("%d failing acks: ran %d times, want 2", fail, ran.Load())
			}
			if fail == 3 && (s.count("ack k") != 1 || ev.count(consume.EventSettleFailed) != 3) {
				t.Errorf("%d failing acks: told %v", fail, s.heard())
			}
			if fail == 1000 && (s.count("nak k 0s") != 1 || s.count("nak next 0s") != 1 || ev.count(consume.EventGivenUp) != 2 || acks.Load() != 20) {
				t.Errorf("%d failing acks: told %v after %d acks", fail, s.heard(), acks.Load())
			}
			r.end()
		}
	})
}

// The outcome of a message is stored before its ack, so that the next message
// of its order key need not wait for the ack.
func TestSettle_AckFails_NextOfTheKeyStarts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSource(ordered("a", "o"), ordered("b", "o"))
		first := true
		s.ack = func() error {
			if first {
				first = false
				return errPlain
			}
			return nil
		}
		r := serve(t, newConsumer(t, newGuard(t, nil, nil), done, consume.Options{}), s)
		synctest.Wait()
		if got := s.heard(); !slices.Equal(got, []string{"ack b"}) {
			t.Errorf("while the ack of a fails: %v", got)
		}
		pass(time.Minute)
		if got := s.heard(); !slices.Equal(got, []string{"ack b", "ack a"}) {
			t.Errorf("then: %v", got)
		}
		r.end()
	})
}

func TestSettle_DeliveryGone_IsDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gone := func() error { return fmt.Errorf("x: %w", driver.ErrGone) }
		for name, h := range map[string]consume.Handler{
			"ack": done, "nak": fails,
			"forward": func(context.Context, *semel.Execution, *consume.Message) error { return semel.Final(errPlain) },
		} {
			s := newSource(keyed("k"))
			s.ack, s.nak, s.forward = gone, gone, gone
			var ev events
			r := serve(t, newConsumer(t, newGuard(t, nil, nil), h, consume.Options{Observe: ev.observe, Backoff: func(int) time.Duration { return time.Minute }}), s)
			pass(time.Hour)
			if n := ev.count(consume.EventSettleFailed); n != 1 || len(s.heard()) != 0 {
				t.Errorf("%s: %d words with the broker failed, want 1; told %v", name, n, s.heard())
			}
			if r.end(); r.err != nil || ev.count(consume.EventReturned) != 0 {
				t.Errorf("%s: Serve ended with %v, and %d messages were returned", name, r.err, ev.count(consume.EventReturned))
			}
		}
	})
}

func TestSettle_CopyFails_RepeatsThenAcksOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSource(keyed("k"))
		s.info.HoldsOnly = true // it cannot be given back for a while
		var tries atomic.Int64
		s.forward = func() error {
			if tries.Add(1) < 40 {
				return errPlain
			}
			return nil
		}
		r := serve(t, newConsumer(t, newGuard(t, nil, nil), final, consume.Options{}), s)
		pass(time.Minute)
		if len(s.heard()) != 0 || tries.Load() > 30 {
			t.Errorf("with no dead letters to be had, told %v after %d tries", s.heard(), tries.Load())
		}
		pass(time.Hour)
		if got := s.heard(); !slices.Equal(got, []string{"dead-letter k", "ack k"}) {
			t.Errorf("told %v", got)
		}
		r.end()
	})
}

func final(context.Context, *semel.Execution, *consume.Message) error { return semel.Final(errPlain) }

// As many letters that cannot be sent as messages are taken would stop it all.
func TestSettle_LettersFail_OtherMessagesGoOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSource(keyed("a"), keyed("b"), keyed("c"))
		s.forward = func() error { return errPlain }
		h := func(ctx context.Context, x *semel.Execution, m *consume.Message) error {
			if m.Key == "c" {
				return nil
			}
			return final(ctx, x, m)
		}
		r := serve(t, newConsumer(t, newGuard(t, nil, nil), h, consume.Options{Concurrency: 2, InFlight: 2}), s)
		pass(10 * time.Second)
		if got := s.heard(); !slices.Equal(got, []string{"ack c"}) {
			t.Errorf("told %v before the letters were tried for a while", got)
		}
		pass(time.Minute)
		if got := slices.Sorted(slices.Values(s.heard())); !slices.Equal(got, []string{"ack c", "nak a 5m0s", "nak b 5m0s"}) {
			t.Errorf("told %v", got)
		}
		r.end()
	})
}

func TestSettle_AckOfALetterFails_DoesNotRepeatTheCopy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSource(keyed("k"))
		acks := 0
		s.ack = func() error {
			if acks++; acks < 4 {
				return errPlain
			}
			return nil
		}
		r := serve(t, newConsumer(t, newGuard(t, nil, nil), func(context.Context, *semel.Execution, *consume.Message) error {
			return semel.Final(errPlain)
		}, consume.Options{}), s)
		pass(time.Minute)
		if got := s.heard(); !slices.Equal(got, []string{"dead-letter k", "ack k"}) {
			t.Errorf("told %v", got)
		}
		r.end()
	})
}

// Forward need not know that a delivery is over. Where only Nak says so, the
// message would be kept here for as long as letters are refused.
func TestSettle_LetterFailsAndDeliveryIsGone_IsDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSource(keyed("a"), keyed("b"))
		s.forward = func() error { return errPlain }
		s.nak = func() error { return fmt.Errorf("x: %w", driver.ErrGone) }
		h := func(ctx context.Context, x *semel.Execution, m *consume.Message) error {
			if m.Key == "b" {
				return nil
			}
			return final(ctx, x, m)
		}
		r := serve(t, newConsumer(t, newGuard(t, nil, nil), h, consume.Options{Concurrency: 1, InFlight: 1}), s)
		pass(24 * time.Hour)
		if s.count("ack b") != 1 {
			t.Errorf("told %v", s.heard())
		}
		r.end()
	})
}

// A broker that was away for a while has not refused the ack so often.
func TestSettle_NakFails_LeavesAllTriesOfTheAck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSource(keyed("k"))
		s.nak = func() error { return errPlain }
		acks := 0
		s.ack = func() error {
			if acks++; acks < 4 {
				return errPlain
			}
			return nil
		}
		tries := 0
		h := func(context.Context, *semel.Execution, *consume.Message) error {
			if tries++; tries < 20 {
				return errPlain
			}
			return nil
		}
		var ev events
		r := serve(t, newConsumer(t, newGuard(t, nil, nil), h, consume.Options{MaxAttempts: -1, Observe: ev.observe, Backoff: func(int) time.Duration { return time.Minute }}), s)
		pass(time.Hour)
		if s.count("ack k") != 1 || ev.count(consume.EventGivenUp) > 0 {
			t.Errorf("after %d acks told %v, and %d were given up", acks, s.heard(), ev.count(consume.EventGivenUp))
		}
		r.end()
	})
}

// The two are counted for themselves.
func TestSettle_LetterNeededTries_LeavesAllTriesOfTheAck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSource(keyed("k"))
		fail := func(n int) func() error {
			return func() error {
				if n--; n >= 0 {
					return errPlain
				}
				return nil
			}
		}
		s.forward, s.ack = fail(9), fail(9)
		var ev events
		r := serve(t, newConsumer(t, newGuard(t, nil, nil), final, consume.Options{Observe: ev.observe}), s)
		pass(time.Hour)
		if got := s.heard(); !slices.Equal(got, []string{"dead-letter k", "ack k"}) || ev.count(consume.EventGivenUp) != 0 {
			t.Errorf("told %v, and %d were given up", got, ev.count(consume.EventGivenUp))
		}
		r.end()
	})
}

// It would be with the broker until another consumer gets the message.
func TestSettle_WorkersBusy_AcksAllTheSame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSource(keyed("a"), keyed("busy"))
		first := true
		s.ack = func() error {
			if first {
				first = false
				return errPlain
			}
			return nil
		}
		r := serve(t, newConsumer(t, newGuard(t, nil, nil), func(_ ctxt, _ *semel.Execution, m *consume.Message) error {
			if m.Key == "busy" {
				time.Sleep(time.Hour)
			}
			return nil
		}, consume.Options{Concurrency: 1}), s)
		pass(time.Minute)
		if s.count("ack a") != 1 {
			t.Errorf("told %v", s.heard())
		}
		pass(time.Hour)
		r.end()
	})
}

func TestSettle_BrokerDoesNotAnswer_TimesOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &muteSource{source: newSource(keyed("k"))}
		r := serve(t, newConsumer(t, newGuard(t, nil, nil), done, consume.Options{}), s)
		pass(time.Minute)
		if s.count("ack k") != 1 {
			t.Errorf("told %v", s.heard())
		}
		r.end()
	})
}

// muteSource does not answer the first ack.
type muteSource struct {
	*source
	asked atomic.Bool
}

type muteDelivery struct {
	*delivery
	m *muteSource
}

func (m *muteSource) Next(ctx context.Context, limit int) ([]driver.Delivery, error) {
	ds, err := m.source.Next(ctx, limit)
	for i, d := range ds {
		ds[i] = &muteDelivery{d.(*delivery), m}
	}
	return ds, err
}

func (d *muteDelivery) Ack(ctx context.Context) error {
	if d.m.asked.CompareAndSwap(false, true) {
		<-ctx.Done()
	}
	return d.delivery.Ack(ctx)
}
