package consume_test

import (
	"context"
	"fmt"
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

// A probe that needs no store must not be the last.
func TestOutage_ProbeIsRefused_ProbesWithTheNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := &brittle{Store: memstore.New(nil), down: true}
		s := newSource(keyed("a"), &consume.Message{}, keyed("b"))
		r := serve(t, newConsumer(t, newGuard(t, st, nil), done, consume.Options{Concurrency: 1}), s)
		pass(time.Minute)
		st.set(false)
		pass(24 * time.Hour)
		if s.count("ack a") != 1 || s.count("ack b") != 1 {
			t.Errorf("a day after the store came back: told %v", s.heard())
		}
		r.end()
		pass(time.Minute)
	})
}

// A rebalance in an outage takes away what would have asked.
func TestOutage_AllMessagesRevoked_Ends(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := &brittle{Store: memstore.New(nil), down: true}
		s := newSource(keyed("a"))
		s.info.HoldsOnly = true
		var ev events
		r := serve(t, newConsumer(t, newGuard(t, st, nil), done, consume.Options{Observe: ev.observe}), s)
		pass(30 * time.Second)
		close(s.revoked)
		pass(50 * time.Millisecond)
		pass(time.Minute)
		s.revoked = make(chan struct{})
		st.set(false)
		s.in <- keyed("b")
		pass(24 * time.Hour)
		if s.count("ack b") != 1 {
			t.Errorf("a day after the store came back: told %v", s.heard())
		}
		if began, ended := ev.count(consume.EventOutage), ev.count(consume.EventResumed); began != 1 || ended != 1 {
			t.Errorf("%d outages began, and %d ended; want one", began, ended)
		}
		r.end()
		pass(time.Minute)
	})
}

// Nobody waits for a worker that is busy to give back what was not begun.
func TestServe_RevokedWhileWorkersAreBusy_IsGivenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSource(keyed("a"), keyed("b"))
		r := serve(t, newConsumer(t, newGuard(t, nil, nil), func(context.Context, *semel.Execution, *consume.Message) error {
			time.Sleep(10 * time.Minute)
			return nil
		}, consume.Options{Concurrency: 1}), s)
		pass(time.Second)
		close(s.revoked)
		pass(time.Minute)
		if s.count("nak b 0s") != 1 {
			t.Errorf("a minute after revoke b was not begun, and is still held: %v", s.heard())
		}
		pass(time.Hour)
		r.end()
		pass(time.Minute)
	})
}

type noCommit struct{ semel.Runner }

func (n noCommit) Run(ctx context.Context, call semel.Call, fn semel.Handler) (semel.Result, error) {
	if call.Key != "poison" {
		return n.Runner.Run(ctx, call, fn)
	}
	g, _ := semel.New(memstore.New(nil), nil)
	_, _ = g.Run(ctx, call, fn)
	return semel.Result{}, &semel.Error{Reason: semel.ErrUnavailable, Cause: fmt.Errorf("commit: deferred foreign key")}
}

// A run that ended unavailable may be its own fault: it must not hold up the others.
func TestOutage_CommitFails_IsAFailedAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &polled{newSource(keyed("poison"))}
		var ran atomic.Int64
		r := serve(t, newConsumer(t, noCommit{newGuard(t, nil, nil)}, func(context.Context, *semel.Execution, *consume.Message) error {
			ran.Add(1)
			return nil
		}, consume.Options{}), s)
		pass(time.Hour)
		s.in <- keyed("next")
		pass(24 * time.Hour)
		if s.count("ack next") != 1 {
			t.Errorf("the poison ran %d times; next was never taken: told %v", ran.Load(), s.heard())
		}
		r.end()
		pass(time.Minute)
	})
}

type corrupt struct{ store.Store }

func (c corrupt) Claim(ctx context.Context, p store.Proposal) (store.Found, error) {
	f, err := c.Store.Claim(ctx, p)
	if err == nil && f.Record.State == store.Failed {
		f.Record.Outcome.Codec = "?"
	}
	return f, err
}

// It would be tried for ever.
func TestHandle_StoredFailureIsCorrupt_Quarantines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSource(ordered("k", "o"), ordered("k", "o"))
		var ev events
		r := serve(t, newConsumer(t, newGuard(t, corrupt{memstore.New(nil)}, nil), func(context.Context, *semel.Execution, *consume.Message) error {
			return semel.Final(errPlain)
		}, consume.Options{Observe: ev.observe}), s)
		pass(time.Hour)
		if s.count("quarantine k") != 1 {
			t.Error("not quarantined")
		}
		r.end()
		pass(time.Minute)
	})
}

// A stream that drops duplicates would drop the second group's.
func TestLetter_TwoGroups_HaveTwoIDs(t *testing.T) {
	for name, source := range map[string]consume.KeySource{
		"no key": consume.FromHeader("k"), "a source that panics": func(*consume.Message) (string, error) { panic("oh") },
	} {
		ids := map[string]bool{}
		for _, group := range []string{"billing", "shipping"} {
			synctest.Test(t, func(t *testing.T) {
				c, err := consume.New(newGuard(t, nil, nil), consume.Keyed(group, source), done, nil)
				if err != nil {
					t.Fatal(err)
				}
				s := newSource(&consume.Message{Origin: consume.Origin{Topic: "orders", ID: "ORDERS/1"}})
				r := serve(t, c, s)
				synctest.Wait()
				id, _ := s.letters[0].Header(driver.LetterID)
				if g, _ := s.letters[0].Header(driver.LetterGroup); g != group {
					t.Errorf("%s: the letter is of group %q, want %q", name, g, group)
				}
				ids[id] = true
				r.end()
				pass(time.Minute)
			})
		}
		if len(ids) != 2 {
			t.Errorf("%s: two groups' letters have one id: %v", name, ids)
		}
	}
}

// A message older than the runner's Retention would run again.
func TestNew_RetentionAboveTheRunners_IsRefused(t *testing.T) {
	g, _ := semel.New(memstore.New(nil), nil) // 24 h
	if _, err := consume.New(g, byHeader, done, &consume.Options{Retention: 7 * 24 * time.Hour}); err == nil {
		t.Errorf("New takes a Retention of 7 days over a Guard that keeps outcomes for %v", g.Retention())
	}
}

// An ack says nothing of the store.
func TestOutage_OnlyAStoresAnswerEndsIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := &brittle{Store: memstore.New(nil)}
		s := newSource(keyed("acked"))
		s.ack = func() error { return errPlain }
		s.forward = s.ack
		var ev events
		r := serve(t, newConsumer(t, newGuard(t, st, nil), func(_ context.Context, _ *semel.Execution, m *consume.Message) error {
			if m.Key == "acked" {
				return semel.Final(errPlain)
			}
			return nil
		}, consume.Options{Observe: ev.observe}), s)
		pass(time.Second)
		st.set(true)
		for i := range 50 {
			s.in <- keyed(fmt.Sprint(i))
		}
		pass(10 * time.Minute)
		if n := ev.count(consume.EventResumed); n > 0 {
			t.Errorf("the store is down all the time, and %d times Serve resumed; %d claims in 10 min", n, st.claimed())
		}
		r.end()
		pass(time.Minute)
	})
}

// Extensions go together.
func TestServe_ExtendHangs_OthersAreExtended(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &hangSource{source: newSource()}
		for i := range 8 {
			s.in <- keyed(fmt.Sprint(i))
		}
		s.info.AckWait = 30 * time.Second
		r := serve(t, newConsumer(t, newGuard(t, nil, nil), func(context.Context, *semel.Execution, *consume.Message) error {
			time.Sleep(3 * time.Minute)
			return nil
		}, consume.Options{}), s)
		pass(3*time.Minute - time.Second)
		s.mu.Lock()
		if s.worst > 30*time.Second {
			t.Errorf("with 3 of 8 hanging, one of the others was not extended for %v", s.worst)
		}
		s.mu.Unlock()
		pass(time.Hour)
		r.end()
		pass(time.Minute)
	})
}

type hangSource struct {
	*source
	last  map[string]time.Time
	worst time.Duration
}

type hangDelivery struct {
	*delivery
	h *hangSource
}

func (h *hangSource) Next(ctx context.Context, limit int) ([]driver.Delivery, error) {
	ds, err := h.source.Next(ctx, limit)
	for i, d := range ds {
		ds[i] = &hangDelivery{d.(*delivery), h}
	}
	return ds, err
}

func (d *hangDelivery) Extend(ctx context.Context) error {
	if d.m.Key < "3" {
		<-ctx.Done()
		return ctx.Err()
	}
	d.h.mu.Lock()
	defer d.h.mu.Unlock()
	if d.h.last == nil {
		d.h.last = map[string]time.Time{}
	}
	if at, ok := d.h.last[d.m.Key]; ok {
		d.h.worst = max(d.h.worst, time.Since(at))
	}
	d.h.last[d.m.Key] = time.Now()
	return nil
}

// polled waits for a second for a message, as NATS and Kafka do.
type polled struct{ *source }

func (p *polled) Next(ctx context.Context, limit int) ([]driver.Delivery, error) {
	c, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	ds, err := p.source.Next(c, limit)
	if c.Err() != nil && ctx.Err() == nil {
		return nil, nil
	}
	return ds, err
}

// Where the runner forgets attempts, they are counted here, also of one that
// leaves by Goexit.
func TestHandle_Goexit_CountsAnAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSource(ordered("k", "o"))
		var ran atomic.Int64
		r := serve(t, newConsumer(t, forgetful{t}, func(context.Context, *semel.Execution, *consume.Message) error {
			ran.Add(1)
			goexit()
			return nil
		}, consume.Options{MaxAttempts: 3}), s)
		pass(time.Hour)
		if n, _ := s.letters[0].Header(driver.LetterAttempts); ran.Load() != 3 || n != "3" {
			t.Errorf("ran %d times, and the letter says %s", ran.Load(), n)
		}
		r.end()
	})
}

// So do those that could not commit.
func TestHandle_CommitFails_CountsAnAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSource(ordered("poison", "o"))
		var ran atomic.Int64
		r := serve(t, newConsumer(t, noCommit{newGuard(t, nil, nil)}, func(context.Context, *semel.Execution, *consume.Message) error {
			ran.Add(1)
			return nil
		}, consume.Options{MaxAttempts: 3}), s)
		pass(time.Hour)
		if ran.Load() != 3 {
			t.Errorf("ran %d times, want 3", ran.Load())
		}
		r.end()
		pass(time.Minute)
	})
}
