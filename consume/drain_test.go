package consume_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/consume/driver"
)

type ctxt = context.Context

func TestServe_ContextEnds_WaitsForHandlersAndGivesBackTheRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSource(ordered("running", "o"), ordered("behind", "o"), ordered("waits", "p"), ordered("behind it", "p"), keyed("far"))
		h := func(_ ctxt, _ *semel.Execution, m *consume.Message) error {
			switch m.Key {
			case "running":
				time.Sleep(10 * time.Second)
			case "waits":
				return errPlain
			case "far":
				time.Sleep(2 * time.Second)
			}
			return nil
		}
		var ev events
		r := serve(t, newConsumer(t, newGuard(t, nil, nil), h, consume.Options{Backoff: func(int) time.Duration { return time.Hour }, Observe: ev.observe}), s)
		pass(time.Second)
		if took := r.end(); took != 9*time.Second || r.err != nil {
			t.Errorf("Serve ended after %v with %v", took, r.err)
		}
		want := []string{"nak waits 0s", "nak behind it 0s", "ack far", "ack running", "nak behind 0s"}
		if got := s.heard(); !slices.Equal(got, want) {
			t.Errorf("told %v, want %v", got, want)
		}
		if ev.count(consume.EventReturned) != 3 || ev.count(consume.EventReceiveFailed) != 0 {
			t.Errorf("%d messages returned, want 3; the broker failed %d times", ev.count(consume.EventReturned), ev.count(consume.EventReceiveFailed))
		}
	})
}

// stopping is a source that notes its last Next and its Stop among what it is told.
type stopping struct {
	*source
	stop func(ctx context.Context) error
}

func (s *stopping) Next(ctx context.Context, limit int) ([]driver.Delivery, error) {
	ds, err := s.source.Next(ctx, limit)
	if ctx.Err() != nil {
		time.Sleep(time.Second) // the broker's answer is on its way
		_ = s.say(context.WithoutCancel(ctx), nil, "last next")
	}
	return ds, err
}

func (s *stopping) Stop(ctx context.Context) error {
	_ = s.say(ctx, nil, "stop")
	return s.stop(ctx)
}

func TestServe_ContextEnds_StopsTheSourceBeforeItGivesBack(t *testing.T) {
	for name, c := range map[string]struct {
		stop   func(ctx context.Context) error
		took   time.Duration
		failed int
	}{
		"stop answers": {func(context.Context) error { return nil }, time.Second, 0},
		"stop fails":   {func(context.Context) error { return errPlain }, time.Second, 1},
		"stop hangs":   {func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }, 11 * time.Second, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &stopping{newSource(ordered("a", "o"), ordered("b", "o"), ordered("c", "o")), c.stop}
				var ev events
				r := serve(t, newConsumer(t, newGuard(t, nil, nil), func(ctxt, *semel.Execution, *consume.Message) error { return errPlain },
					consume.Options{Backoff: func(int) time.Duration { return time.Hour }, Observe: ev.observe}), s)
				pass(time.Second)
				if took := r.end(); took != c.took || r.err != nil {
					t.Errorf("Serve ended after %v with %v, want %v", took, r.err, c.took)
				}
				want := []string{"last next", "stop", "nak a 0s", "nak b 0s", "nak c 0s"}
				if got := s.heard(); !slices.Equal(got, want) {
					t.Errorf("the source was told %v, want %v", got, want)
				}
				if n := ev.count(consume.EventReceiveFailed); n != c.failed {
					t.Errorf("%d failures of the source were reported, want %d", n, c.failed)
				}
			})
		})
	}
}

func TestServe_DrainIsOver_CancelsHandlers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSource(keyed("k"), keyed("other")) // whose end does not give k more time
		var cause error
		r := serve(t, newConsumer(t, newGuard(t, nil, nil), func(ctx ctxt, _ *semel.Execution, m *consume.Message) error {
			if m.Key == "other" {
				time.Sleep(4 * time.Second)
				return nil
			}
			<-ctx.Done()
			cause = context.Cause(ctx)
			return ctx.Err()
		}, consume.Options{Drain: 5 * time.Second}), s)
		pass(time.Second)
		if took := r.end(); took != 5*time.Second || r.err != nil {
			t.Errorf("Serve ended after %v with %v", took, r.err)
		}
		if cause == nil || !strings.Contains(cause.Error(), "draining") {
			t.Errorf("the handler's context ended for %v", cause)
		}
		if got := s.heard(); len(got) != 2 || !strings.HasPrefix(got[1], "nak k ") {
			t.Errorf("told %v", got)
		}
	})
}

func TestServe_HandlerIgnoresItsContext_Returns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSource(keyed("k"))
		free := make(chan struct{})
		r := serve(t, newConsumer(t, newGuard(t, nil, nil), func(ctxt, *semel.Execution, *consume.Message) error {
			<-free
			return nil
		}, consume.Options{Drain: time.Second}), s)
		pass(time.Second)
		if took := r.end(); took > time.Minute || took < 20*time.Second || r.err == nil || !strings.Contains(r.err.Error(), "1 messages did not end") {
			t.Errorf("Serve ended after %v with %v", took, r.err)
		}
		close(free) // the goroutine must end now, or the bubble does not
	})
}

// A handler that is still ending, when the time for draining is over, has its
// message kept from others as before.
func TestServe_HandlerEndsAfterDrain_ExtendsItsMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSource(keyed("k"))
		s.info.AckWait = 3 * time.Second
		r := serve(t, newConsumer(t, newGuard(t, nil, nil), func(ctx context.Context, _ *semel.Execution, _ *consume.Message) error {
			<-ctx.Done()
			time.Sleep(9500 * time.Millisecond) // it puts things in order
			return nil
		}, consume.Options{Drain: 5 * time.Second}), s)
		pass(time.Second)
		if took := r.end(); took != 14500*time.Millisecond || r.err != nil {
			t.Errorf("Serve ended after %v with %v", took, r.err)
		}
		if s.extends != 15 {
			t.Errorf("extended %d times in 15.5 s, want once each second", s.extends)
		}
	})
}

// At the end Serve tries the ack of a message that has run once more, and only
// once.
func TestServe_ContextEnds_TriesAFailedAckOnceMore(t *testing.T) {
	for name, c := range map[string]struct {
		works int // which ack is the first to work
		want  string
	}{"heard": {3, "ack k"}, "not heard": {1000, "nak k 0s"}} {
		synctest.Test(t, func(t *testing.T) {
			s := newSource(keyed("k"))
			acks := 0
			s.ack = func() error {
				if acks++; acks < c.works {
					return errPlain
				}
				return nil
			}
			r := serve(t, newConsumer(t, newGuard(t, nil, nil), done, consume.Options{}), s)
			pass(21 * time.Millisecond) // after the second
			if took := r.end(); took != 0 || acks != 3 {
				t.Errorf("%s: it ended after %v and %d acks, want 3", name, took, acks)
			}
			if got := s.heard(); !slices.Equal(got, []string{c.want}) {
				t.Errorf("%s: told %v", name, got)
			}
		})
	}
}

// A Next that returns messages although its context has ended: they are given
// back, and not lost.
func TestServe_MessageArrivesAfterTheEnd_GivesItBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSource()
		s.next = func() error {
			time.Sleep(5 * time.Second)
			s.in <- keyed("late")
			return nil
		}
		r := serve(t, newConsumer(t, newGuard(t, nil, nil), done, consume.Options{}), s)
		pass(time.Second)
		r.end()
		if got := append(s.heard(), "stayed"); got[0] != "nak late 0s" && !(got[0] == "stayed" && len(s.in) == 1) {
			t.Errorf("told %v, %d in the source", got, len(s.in))
		}
	})
}

func TestServe_SourceIsClosed_Returns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSource(keyed("k"))
		n := 0
		s.next = func() error {
			if n++; n > 1 {
				return fmt.Errorf("x: %w", driver.ErrClosed)
			}
			return nil
		}
		c := newConsumer(t, newGuard(t, nil, nil), func(ctxt, *semel.Execution, *consume.Message) error {
			time.Sleep(time.Second)
			return nil
		}, consume.Options{})
		if err := c.Serve(t.Context(), s); !errors.Is(err, driver.ErrClosed) || s.count("ack k") != 1 {
			t.Errorf("Serve: %v, told %v", err, s.heard())
		}
	})
}

func TestServe_Revoked_IsNotStarted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSource(ordered("running", "o"), ordered("behind", "o"), ordered("waits", "p"))
		h := func(_ ctxt, _ *semel.Execution, m *consume.Message) error {
			if m.Key == "waits" {
				return errPlain
			}
			time.Sleep(10 * time.Second)
			return nil
		}
		r := serve(t, newConsumer(t, newGuard(t, nil, nil), h, consume.Options{Backoff: func(int) time.Duration { return time.Hour }}), s)
		pass(time.Second)
		close(s.revoked)
		synctest.Wait()
		if got := s.heard(); !slices.Equal(got, []string{"nak waits 0s"}) {
			t.Errorf("at once told %v", got)
		}
		pass(10 * time.Second)
		if got := s.heard()[1:]; !slices.Equal(got, []string{"nak behind 0s", "ack running"}) {
			t.Errorf("then told %v", got)
		}
		r.end()
	})
}

// A source that returns at once with nothing must not turn into a busy loop.
func TestServe_SourceReturnsNothing_DoesNotSpin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &empty{}
		r := serve(t, newConsumer(t, newGuard(t, nil, nil), done, consume.Options{}), s)
		pass(time.Second)
		r.end()
		if s.nexts > 250 {
			t.Errorf("asked %d times in a second", s.nexts)
		}
	})
}

type empty struct {
	source
	nexts int
}

func (e *empty) Next(context.Context, int) ([]driver.Delivery, error) {
	e.nexts++
	return nil, nil
}

// slow is a source whose broker does not answer at the start.
type slow struct{ *source }

func (slow) Info(ctx context.Context) (driver.Info, error) {
	<-ctx.Done()
	return driver.Info{}, errors.New("i/o timeout")
}

func TestServe_ContextEndsDuringTheStart_ReturnsNil(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := serve(t, newConsumer(t, newGuard(t, nil, nil), done, consume.Options{}), slow{newSource(keyed("a"))})
		synctest.Wait()
		if took := r.end(); r.err != nil || took != 0 {
			t.Errorf("Serve ended after %v with %v", took, r.err)
		}
	})
}

// It would take no more messages, and never end.
func TestServe_CallFuncCallsGoexit_GoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, err := consume.New(newGuard(t, nil, nil), func(m *consume.Message) (semel.Call, error) {
			if string(m.Body) == "bad" {
				goexit()
			}
			return byHeader(m)
		}, done, nil)
		if err != nil {
			t.Fatal(err)
		}
		s := newSource(keyed("a"), &consume.Message{Body: []byte("bad")}, keyed("b"))
		r := serve(t, c, s)
		pass(time.Hour)
		if s.count("ack a") != 1 || s.count("ack b") != 1 || s.count("dead-letter ") != 1 {
			t.Errorf("told %v", s.heard())
		}
		if took := r.end(); took != 0 || r.err != nil {
			t.Errorf("Serve ended after %v with %v", took, r.err)
		}
	})
}

func TestServe_SourceIsClosedDuringShutdown_ReturnsNil(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSource()
		s.next = func() error {
			time.Sleep(2 * time.Second)
			return driver.ErrClosed
		}
		r := serve(t, newConsumer(t, newGuard(t, nil, nil), done, consume.Options{}), s)
		pass(time.Second)
		if r.end(); r.err != nil {
			t.Errorf("Serve: %v", r.err)
		}
	})
}
