package consume_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
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

func TestOutage_StoreDown_TakesNoMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := &brittle{Store: memstore.New(nil), down: true}
		s := newSource(keyed("a"), ordered("b", "o"), ordered("c", "o"))
		var ev events
		r := serve(t, newConsumer(t, newGuard(t, st, nil), done, consume.Options{Observe: ev.observe}), s)
		pass(time.Second)
		for i := range 50 {
			s.in <- keyed(fmt.Sprint(i))
		}
		pass(10 * time.Minute)
		// One Next may have been under way when the outage began.
		if s.nexts.Load() > 2 {
			t.Errorf("Next was called %d times", s.nexts.Load())
		}
		if n := st.claimed(); n > 2000 { // the Guard repeats each claim some times, and gives it up in the background
			t.Errorf("the store was asked %d times in ten minutes", n)
		}
		if ev.count(consume.EventOutage) != 1 || len(s.heard()) != 0 {
			t.Errorf("%d outages, told %v", ev.count(consume.EventOutage), s.heard())
		}
		st.set(false)
		pass(11 * time.Second)
		if ev.count(consume.EventResumed) != 1 || len(s.heard()) != 53 {
			t.Errorf("%d times resumed, %d messages settled, want 53", ev.count(consume.EventResumed), len(s.heard()))
		}
		r.end()
		if r.err != nil {
			t.Error(r.err)
		}
	})
}

func TestOutage_ContextEnds_ServeReturns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := &brittle{Store: memstore.New(nil), down: true}
		s := newSource(keyed("a"), ordered("b", "o"), ordered("c", "o"))
		r := serve(t, newConsumer(t, newGuard(t, st, nil), done, consume.Options{}), s)
		pass(time.Minute)
		if took := r.end(); took > 2*time.Second || r.err != nil {
			t.Errorf("it ended after %v with %v", took, r.err)
		}
		for _, k := range []string{"a", "b", "c"} {
			if s.count("nak "+k+" 0s") != 1 {
				t.Errorf("message %s was not given back once: %v", k, s.heard())
			}
		}
		pass(time.Minute) // the Guard gives up the claims of which it does not know
	})
}

func TestOutage_BeginsDuringShutdown_ServeReturns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := &brittle{Store: memstore.New(nil), down: true, slow: time.Second}
		s := newSource()
		for i := range 16 {
			s.in <- keyed(fmt.Sprint(i))
		}
		var ev events
		r := serve(t, newConsumer(t, newGuard(t, st, nil), done, consume.Options{Observe: ev.observe}), s)
		pass(time.Millisecond) // it asks the store
		if took := r.end(); took > 10*time.Second || r.err != nil || len(s.heard()) != 16 || s.count("nak 7 0s") != 1 {
			t.Errorf("it ended after %v with %v, told %v", took, r.err, s.heard())
		}
		if ev.count(consume.EventOutage) != 0 {
			t.Error("it told of an outage that it did not wait for")
		}
		pass(time.Minute) // the Guard gives up the claim
	})
}

// A key that is in flight elsewhere is looked at again and again, and not so
// often that it is felt.
func TestHold_KeyInProgressElsewhere_WaitsLongerEachTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := &brittle{Store: memstore.New(nil)}
		m := keyed("k")
		call, err := byHeader(m)
		if err != nil {
			t.Fatal(err)
		}
		elsewhere, letGo := newGuard(t, st, nil), make(chan struct{})
		go func() {
			_, _ = elsewhere.Run(t.Context(), call, func(ctxt, *semel.Execution) (store.Outcome, error) {
				<-letGo
				return store.Outcome{}, nil
			})
		}()
		synctest.Wait()
		s := newSource(m)
		r := serve(t, newConsumer(t, newGuard(t, st, nil), done, consume.Options{}), s)
		pass(10 * time.Minute)
		if n := st.claimed(); n < 300 || n > 700 || len(s.heard()) > 0 {
			t.Errorf("looked %d times in ten minutes, told %v", n, s.heard())
		}
		close(letGo)
		pass(2 * time.Second)
		if s.count("ack k") != 1 {
			t.Errorf("told %v", s.heard())
		}
		r.end()
	})
}

func TestServe_BrokerDown_PausesBetweenFetches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSource()
		var down atomic.Bool
		down.Store(true)
		s.next = func() error {
			if down.Load() {
				return errPlain
			}
			return nil
		}
		var ev events
		r := serve(t, newConsumer(t, newGuard(t, nil, nil), done, consume.Options{Observe: ev.observe}), s)
		pass(10 * time.Minute)
		if n := int(s.nexts.Load()); n > 80 || ev.count(consume.EventReceiveFailed) != n {
			t.Errorf("asked %d times in ten minutes, with %d events", n, ev.count(consume.EventReceiveFailed))
		}
		down.Store(false)
		s.in <- keyed("k")
		pass(11 * time.Second)
		if s.count("ack k") != 1 {
			t.Errorf("told %v", s.heard())
		}
		r.end()
	})
}

// Some messages are judged without the store.
func TestOutage_ProbeSkipsTheStore_GoesOn(t *testing.T) {
	late := keyed("late")
	late.Published = time.Date(1999, 1, 1, 0, 0, 0, 0, time.UTC) // the clock of a bubble begins in 2000
	for name, m := range map[string]*consume.Message{
		"no key": {}, "an invalid key": keyed(strings.Repeat("x", 300)), "a late message": late,
	} {
		synctest.Test(t, func(t *testing.T) {
			st := &brittle{Store: memstore.New(nil), down: true}
			s := newSource(keyed("a"), m)
			var ev events
			r := serve(t, newConsumer(t, newGuard(t, st, nil), done, consume.Options{Concurrency: 1, MaxDeliveries: 3, Observe: ev.observe}), s)
			pass(time.Minute)
			if ev.count(consume.EventOutage) != 1 || ev.count(consume.EventResumed) != 0 || len(s.heard()) != 2 {
				t.Errorf("%s: %d outages, %d times resumed, told %v", name, ev.count(consume.EventOutage), ev.count(consume.EventResumed), s.heard())
			}
			r.end()
			pass(time.Minute)
		})
	}
}

// It was answered before, and not now.
func TestOutage_ProbeOfAnEarlierOutage_DoesNotEndIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := &brittle{Store: memstore.New(nil), down: true}
		s := newSource(keyed("slow"))
		var ev events
		r := serve(t, newConsumer(t, newGuard(t, st, nil), func(_ ctxt, _ *semel.Execution, m *consume.Message) error {
			if m.Key == "slow" {
				time.Sleep(time.Hour)
			}
			return nil
		}, consume.Options{Observe: ev.observe}), s)
		pass(time.Minute)
		st.set(false)
		pass(time.Minute)
		st.set(true)
		s.in <- keyed("down")
		pass(2 * time.Hour)
		if s.count("ack slow") != 1 || ev.count(consume.EventOutage) != 2 || ev.count(consume.EventResumed) != 1 {
			t.Errorf("in the second outage told %v: %d outages, %d times resumed", s.heard(), ev.count(consume.EventOutage), ev.count(consume.EventResumed))
		}
		r.end()
		pass(time.Minute)
	})
}

// Not only when the next probe is due. One of them may be the probe just then.
func TestOutage_Revoked_IsGivenBackSoon(t *testing.T) {
	for i := range 8 {
		synctest.Test(t, func(t *testing.T) {
			st := &brittle{Store: memstore.New(nil), down: true}
			s := newSource(keyed("a"), keyed("b"), keyed("c"))
			r := serve(t, newConsumer(t, newGuard(t, st, nil), done, consume.Options{}), s)
			pass(10*time.Minute + time.Duration(i)*time.Second)
			close(s.revoked)
			pass(300 * time.Millisecond)
			if n := len(s.heard()); n < 2 {
				t.Errorf("told %v", s.heard())
			}
			r.end()
			pass(time.Minute)
		})
	}
}

func TestServe_BrokerAnswersAgain_ResetsThePause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSource()
		var fails atomic.Int64
		fails.Store(20)
		s.next = func() error {
			if fails.Add(-1) >= 0 {
				return errPlain
			}
			return nil
		}
		r := serve(t, newConsumer(t, newGuard(t, nil, nil), done, consume.Options{}), s)
		pass(10 * time.Minute)
		fails.Store(1)
		s.in <- keyed("a")
		s.in <- keyed("b")
		pass(time.Second)
		s.in <- keyed("c")
		pass(time.Second)
		if len(s.heard()) != 3 {
			t.Errorf("told %v", s.heard())
		}
		r.end()
	})
}

// A message that failed before the outage, and is revoked when it should be the
// probe, does not end the outage.
func TestOutage_ProbeIsRevoked_GoesOn(t *testing.T) {
	for at := 1600 * time.Millisecond; at < 1900*time.Millisecond; at += 5 * time.Millisecond {
		synctest.Test(t, func(t *testing.T) {
			st := &brittle{Store: memstore.New(nil)}
			s := newSource(ordered("failed", "o"))
			var ev events
			r := serve(t, newConsumer(t, newGuard(t, st, nil), fails, consume.Options{Observe: ev.observe, Backoff: func(int) time.Duration { return time.Second }}), s)
			pass(time.Millisecond)
			st.set(true)
			s.in <- keyed("down")
			for ev.count(consume.EventOutage) == 0 {
				pass(10 * time.Millisecond)
			}
			pass(at)
			close(s.revoked)
			pass(time.Second)
			if ev.count(consume.EventResumed) != 0 {
				t.Errorf("the store is down, and what was revoked after %v ended the outage", at)
			}
			r.end()
			pass(time.Minute)
		})
	}
}

// The store answers when it lets a handler begin: the others need not wait
// for its end.
func TestOutage_HandlerOfAProbeStarts_Ends(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := &brittle{Store: memstore.New(nil), down: true}
		s := newSource(keyed("slow"), keyed("a"), keyed("b"))
		r := serve(t, newConsumer(t, newGuard(t, st, nil), func(_ ctxt, _ *semel.Execution, m *consume.Message) error {
			if m.Key == "slow" {
				time.Sleep(time.Hour)
			}
			return nil
		}, consume.Options{}), s)
		pass(time.Minute)
		st.set(false)
		pass(time.Minute)
		if s.count("ack a")+s.count("ack b") != 2 {
			t.Errorf("a minute after the store came back: told %v", s.heard())
		}
		pass(time.Hour)
		r.end()
		pass(time.Minute)
	})
}

func TestOutage_Next_IsProbedAsSoonAsTheFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := &brittle{Store: memstore.New(nil), down: true}
		s := newSource(keyed("a"))
		var ev events
		r := serve(t, newConsumer(t, newGuard(t, st, nil), done, consume.Options{Observe: ev.observe}), s)
		pass(10 * time.Minute)
		st.set(false)
		pass(time.Minute)
		st.set(true)
		s.in <- keyed("b")
		for ev.count(consume.EventOutage) < 2 {
			pass(10 * time.Millisecond)
		}
		st.set(false)
		pass(time.Second)
		if s.count("ack b") != 1 {
			t.Errorf("a second after a short outage: told %v", s.heard())
		}
		r.end()
	})
}

// script is an Atomic whose transactions end as it says: by nil, by a store
// that is lost while they commit, or by one that is away before they begin.
type script struct{ steps []string }

func (s *script) Run(ctx context.Context, c semel.Call, fn semel.Handler) (res semel.Result, err error) {
	step := "away"
	if len(s.steps) > 0 {
		step, s.steps = s.steps[0], s.steps[1:]
	}
	lost := &semel.Error{Reason: semel.ErrUnavailable, Operation: c.Operation, Cause: errors.New("connection refused")}
	if step == "away" {
		return res, lost
	}
	if step == "part" {
		lost.Cause = store.WithExtent(lost.Cause, store.ExtentPart)
	}
	g, err := semel.New(memstore.New(nil), nil) // whose attempt is the first each time: a rollback forgets
	if err != nil {
		return res, err
	}
	res, err = g.Run(ctx, c, fn)
	if (step == "lost" || step == "part") && err == nil {
		return semel.Result{}, lost
	}
	return res, err
}

// An outage that begins while a message's transaction commits is no attempt of
// the message; but one that makes the store go away each time has an end.
func TestOutage_CutsOffTries_CountsNoAttempt(t *testing.T) {
	const failed, down, out, ok = driver.ReasonError, driver.ReasonUnavailable, driver.ReasonExhausted, driver.ReasonDone
	for name, c := range map[string]struct {
		steps []string
		most  int
		want  []driver.Reason
	}{
		"the store goes away":     {[]string{"lost", "away", "away", ""}, 1, []driver.Reason{failed, down, down, ok}},
		"twice":                   {[]string{"lost", "away", "lost", "away", ""}, 1, []driver.Reason{failed, down, failed, down, ok}},
		"it answers at once":      {[]string{"lost", ""}, 1, []driver.Reason{failed, out}},
		"in between it was there": {[]string{"lost", "lost", "away", ""}, 2, []driver.Reason{failed, failed, down, ok}},
		"a part of the store is away": {
			append(slices.Repeat([]string{"part"}, 20), ""), 1, append(slices.Repeat([]driver.Reason{down}, 20), ok),
		},
		"it is the message's doing": {
			slices.Repeat([]string{"lost", "away"}, 20), 1,
			[]driver.Reason{failed, down, failed, down, failed, down, failed, down, out},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var mu sync.Mutex
				var seen []driver.Reason
				s := newSource(keyed("k"))
				s.info.HoldsOnly = true // so that the attempts of all tries are counted here
				r := serve(t, newConsumer(t, &script{steps: c.steps}, done, consume.Options{MaxAttempts: c.most, Observe: func(_ context.Context, e consume.Event) {
					if e.Kind == consume.EventDecided {
						mu.Lock()
						defer mu.Unlock()
						seen = append(seen, e.Disposition.Reason)
					}
				}}), s)
				pass(10 * time.Minute)
				r.end()
				mu.Lock()
				defer mu.Unlock()
				if len(seen) > len(c.want) {
					seen = seen[:len(c.want)]
				}
				if !slices.Equal(seen, c.want) {
					t.Errorf("it was %v, want %v", seen, c.want)
				}
			})
		})
	}
}
