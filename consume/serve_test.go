package consume_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/consume/driver"
	"github.com/semel-go/semel/store/memstore"
)

func TestServe_Message_RunsAndIsAcked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSource(keyed("a"), keyed("b"), keyed("a"))
		r := serve(t, newConsumer(t, newGuard(t, nil, nil), done, consume.Options{}), s)
		synctest.Wait()
		if s.count("ack a") != 2 || s.count("ack b") != 1 {
			t.Errorf("told %v", s.heard())
		}
		if took := r.end(); r.err != nil || took != 0 {
			t.Errorf("Serve ended after %v with %v", took, r.err)
		}
	})
}

func TestServe_ConcurrencyAndInFlight_AreLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var running, most atomic.Int64
		h := func(context.Context, *semel.Execution, *consume.Message) error {
			most.Store(max(most.Load(), running.Add(1)))
			defer running.Add(-1)
			time.Sleep(time.Second)
			return nil
		}
		s := newSource()
		for i := range 100 {
			s.in <- keyed(fmt.Sprint(i))
		}
		r := serve(t, newConsumer(t, newGuard(t, nil, nil), h, consume.Options{Concurrency: 3, InFlight: 7}), s)
		synctest.Wait()
		if running.Load() != 3 || len(s.in) != 93 {
			t.Errorf("%d handlers run, %d messages are taken; want 3 and 7", running.Load(), 100-len(s.in))
		}
		if pass(time.Second); len(s.in) < 90 {
			t.Errorf("3 messages are done, and %d are taken; want at most 10", 100-len(s.in))
		}
		pass(40 * time.Second)
		if most.Load() != 3 || len(s.heard()) != 100 {
			t.Errorf("at most %d ran at once, want 3; %d messages were settled, want 100", most.Load(), len(s.heard()))
		}
		r.end()
	})
}

// oneByOne is a broker that has one message ready at a time.
type oneByOne struct{ *source }

func (o *oneByOne) Next(ctx context.Context, _ int) ([]driver.Delivery, error) {
	return o.source.Next(ctx, 1)
}

// As many messages wait for a worker as there are workers, though InFlight
// would allow more, because other members may be idle.
func TestServe_WorkersBusy_TakesNoMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &oneByOne{newSource()}
		for i := range 100 {
			s.in <- keyed(fmt.Sprint(i))
		}
		r := serve(t, newConsumer(t, newGuard(t, nil, nil), func(context.Context, *semel.Execution, *consume.Message) error {
			time.Sleep(time.Second)
			return nil
		}, consume.Options{Concurrency: 3, InFlight: 50}), s)
		if synctest.Wait(); len(s.in) != 94 {
			t.Errorf("%d messages are taken while 3 run, want 6", 100-len(s.in))
		}
		r.end()
	})
}

func TestServe_EqualOrderKeys_RunInTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSource(ordered("a", "o"), ordered("b", "o"), ordered("c", "p"), keyed("free"))
		tries := 0
		h := func(_ context.Context, _ *semel.Execution, m *consume.Message) error {
			if m.Key == "a" {
				if tries++; tries < 3 {
					return errPlain
				}
			}
			return nil
		}
		r := serve(t, newConsumer(t, newGuard(t, nil, nil), h, consume.Options{Backoff: func(int) time.Duration { return time.Minute }}), s)
		synctest.Wait()
		if got := slices.Sorted(slices.Values(s.heard())); !slices.Equal(got, []string{"ack c", "ack free"}) {
			t.Errorf("while a waits for its retry: %v", got)
		}
		pass(2 * time.Minute)
		if got := s.heard(); !slices.Equal(got[2:], []string{"ack a", "ack b"}) {
			t.Errorf("then: %v", got[2:])
		}
		r.end()
	})
}

// The broker has more room for messages that wait. A message that delays
// others, and one that is due soon, stays here.
func TestServe_Retry_GoesToTheBrokerUnlessOthersWait(t *testing.T) {
	for _, c := range []struct {
		name  string
		m     *consume.Message
		wait  time.Duration
		holds bool
		want  string
	}{
		{"free", keyed("k"), time.Minute, false, "nak k 1m0s"},
		{"ordered", ordered("k", "o"), time.Minute, false, ""},
		{"short", keyed("k"), time.Millisecond, false, ""},
		{"a log", keyed("k"), time.Minute, true, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSource(c.m)
				s.info.HoldsOnly = c.holds
				once := true
				h := func(context.Context, *semel.Execution, *consume.Message) error {
					if once {
						once = false
						return errPlain
					}
					return nil
				}
				r := serve(t, newConsumer(t, newGuard(t, nil, nil), h, consume.Options{Backoff: func(int) time.Duration { return c.wait }}), s)
				synctest.Wait()
				if got := strings.Join(s.heard(), ","); got != c.want {
					t.Errorf("told %q, want %q", got, c.want)
				}
				pass(c.wait)
				if got := s.count("ack k"); c.want == "" && got != 1 {
					t.Errorf("after the pause told %v", s.heard())
				}
				r.end()
			})
		})
	}
}

func TestServe_NakFails_HoldsTheMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSource(keyed("k"))
		s.nak = func() error { return errPlain }
		tries := 0
		h := func(context.Context, *semel.Execution, *consume.Message) error {
			if tries++; tries == 1 {
				return errPlain
			}
			return nil
		}
		r := serve(t, newConsumer(t, newGuard(t, nil, nil), h, consume.Options{Backoff: func(int) time.Duration { return time.Minute }}), s)
		pass(2 * time.Minute)
		if s.count("ack k") != 1 {
			t.Errorf("told %v", s.heard())
		}
		r.end()
	})
}

// Duplicates that are here together need not ask the store about each other.
func TestServe_Duplicate_WaitsForTheFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := &brittle{Store: memstore.New(nil)}
		s := newSource(keyed("k"), keyed("k"), keyed("k"))
		r := serve(t, newConsumer(t, newGuard(t, st, nil), func(context.Context, *semel.Execution, *consume.Message) error {
			time.Sleep(time.Second)
			return nil
		}, consume.Options{}), s)
		pass(time.Minute)
		if st.claimed() != 3 || s.count("ack k") != 3 {
			t.Errorf("the store was asked %d times, want 3; told %v", st.claimed(), s.heard())
		}
		r.end()
	})
}

// forgetful is a runner whose rollback forgets the attempts, as Atomic's does.
type forgetful struct{ t *testing.T }

func (f forgetful) Run(ctx context.Context, call semel.Call, fn semel.Handler) (semel.Result, error) {
	return newGuard(f.t, nil, nil).Run(ctx, call, fn)
}

func TestServe_RunnerForgetsAttempts_CountsThem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSource(ordered("k", "o"))
		ran := 0
		r := serve(t, newConsumer(t, forgetful{t}, func(context.Context, *semel.Execution, *consume.Message) error {
			ran++
			return errPlain
		}, consume.Options{MaxAttempts: 3}), s)
		pass(time.Hour)
		if ran != 3 || !slices.Equal(s.heard(), []string{"dead-letter k", "ack k"}) {
			t.Errorf("ran %d times, want 3; told %v", ran, s.heard())
		}
		r.end()
	})
}

func TestServe_NoEffect_CountsNoAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSource(ordered("k", "o"))
		ran := 0
		r := serve(t, newConsumer(t, newGuard(t, nil, nil), func(context.Context, *semel.Execution, *consume.Message) error {
			if ran++; ran < 20 {
				return semel.NoEffect(errPlain)
			}
			return nil
		}, consume.Options{MaxAttempts: 3}), s)
		pass(time.Hour)
		if ran != 20 || s.count("ack k") != 1 {
			t.Errorf("ran %d times, want 20; told %v", ran, s.heard())
		}
		r.end()
	})
}

func TestServe_MessagesInHand_AreExtended(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSource(ordered("a", "o"), ordered("b", "o"))
		s.info.AckWait = 30 * time.Second
		s.extend = func() error { return errPlain }
		var ev events
		r := serve(t, newConsumer(t, newGuard(t, nil, nil), func(_ context.Context, _ *semel.Execution, m *consume.Message) error {
			if m.Key == "a" {
				time.Sleep(65 * time.Second)
			}
			return nil
		}, consume.Options{Observe: ev.observe}), s)
		pass(time.Hour)
		s.mu.Lock()
		if s.extends != 12 || ev.count(consume.EventExtendFailed) != 12 {
			t.Errorf("extended %d times, want 6 for each of two; %d events", s.extends, ev.count(consume.EventExtendFailed))
		}
		s.mu.Unlock()
		r.end()
	})
}

// returning is a broker that delivers again what it is given back.
type returning struct{ *source }

type returned struct{ *delivery }

func (r *returning) Next(ctx context.Context, limit int) ([]driver.Delivery, error) {
	ds, err := r.source.Next(ctx, limit)
	for i, d := range ds {
		ds[i] = &returned{d.(*delivery)}
	}
	return ds, err
}

func (r *returned) Nak(_ context.Context, delay time.Duration) error {
	m := consume.Message{Body: r.m.Body, Headers: r.m.Headers, Deliveries: r.m.Deliveries + 1}
	time.AfterFunc(delay, func() { r.s.in <- &m })
	return nil
}

// With a key that is new for each delivery, each would be the first attempt.
func TestServe_UnprotectedMessageFails_DeadLetters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &returning{newSource(&consume.Message{Body: []byte("b")})}
		ran := 0
		c, err := consume.New(newGuard(t, nil, nil), consume.Keyed("test", consume.FromHeader(consume.KeyHeader), consume.Unprotected()),
			func(context.Context, *semel.Execution, *consume.Message) error {
				ran++
				return errPlain
			}, &consume.Options{MaxAttempts: 3})
		if err != nil {
			t.Fatal(err)
		}
		r := serve(t, c, s)
		pass(time.Hour)
		if ran != 3 || len(s.letters) != 1 {
			t.Errorf("ran %d times, want 3; %d dead letters, want 1", ran, len(s.letters))
		}
		r.end()
	})
}

func TestServe_HandlerCallsGoexit_Retries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSource(ordered("k", "o"))
		tries := 0
		r := serve(t, newConsumer(t, newGuard(t, nil, nil), func(context.Context, *semel.Execution, *consume.Message) error {
			if tries++; tries == 1 {
				goexit()
			}
			return nil
		}, consume.Options{}), s)
		pass(time.Minute)
		if tries != 2 || s.count("ack k") != 1 {
			t.Errorf("ran %d times, told %v", tries, s.heard())
		}
		r.end()
	})
}

func TestServe_RejectedMessage_Stops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, err := consume.New(newGuard(t, nil, nil), consume.Keyed("test", consume.FromHeader("k"), consume.Reject()), done, &consume.Options{Retention: time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		s := newSource(&consume.Message{})
		if err := c.Serve(t.Context(), s); !errors.Is(err, consume.ErrRejected) {
			t.Errorf("Serve: %v", err)
		}
		if got := s.heard(); !slices.Equal(got, []string{"nak  0s"}) {
			t.Errorf("told %v", got)
		}
	})
}

func TestServe_RetentionBelowHorizon_IsRefused(t *testing.T) {
	for horizon, starts := range map[time.Duration]bool{0: true, time.Hour: true, time.Hour + 1: false, driver.Forever: false} {
		s := newSource()
		s.info.Horizon = horizon
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		c := newConsumer(t, newGuard(t, nil, nil), done, consume.Options{Retention: time.Hour})
		if err := c.Serve(ctx, s); (err == nil) != starts {
			t.Errorf("horizon %v: %v", horizon, err)
		}
		c = newConsumer(t, newGuard(t, nil, nil), done, consume.Options{Retention: time.Hour, AllowShortRetention: true})
		if err := c.Serve(ctx, s); err != nil {
			t.Errorf("horizon %v, accepted: %v", horizon, err)
		}
	}
}

func TestServe_KeyEqualsAnOrderKey_DoesNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSource(ordered("a", "7"), keyed("7"))
		r := serve(t, newConsumer(t, newGuard(t, nil, nil), func(_ ctxt, _ *semel.Execution, m *consume.Message) error {
			if m.Key == "a" {
				time.Sleep(time.Hour)
			}
			return nil
		}, consume.Options{}), s)
		pass(time.Minute)
		if s.count("ack 7") != 1 {
			t.Errorf("the message with the key 7 waits for one with that order key: told %v", s.heard())
		}
		pass(time.Hour)
		r.end()
	})
}

func TestServe_EmptyLine_IsUsedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSource()
		r := serve(t, newConsumer(t, newGuard(t, nil, nil), done, consume.Options{}), s)
		for range 3 {
			s.in <- ordered("k", "o")
			s.in <- keyed("k")
			pass(time.Minute)
		}
		if s.count("ack k") != 6 {
			t.Errorf("told %v", s.heard())
		}
		r.end()
	})
}
