package consumetest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/consume/driver"
)

// storm is a world in which all fails at once that other checks have fail one by
// one: each message must have its end all the same.
type storm struct {
	*world
	mu     sync.Mutex
	rand   *rand.Rand
	failed map[string]int // how often a key's handler has failed
}

// fates are what becomes of the handlers of every twentieth message. The rest are
// good, or fail once in a while.
var fates = []string{"final", "hopeless", "panics", "no effect", "a call of its own fails", "slow", "fails late", "good"}

func fateOf(i int) string {
	if i%20 < len(fates) {
		return fates[i%20]
	}
	return "good"
}

func dead(fate string) bool { return fate == "final" || fate == "hopeless" }

// oneIn is true once in n times.
func (s *storm) oneIn(n int) bool { return s.upTo(n) == 0 }

func (s *storm) upTo(n int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.rand.IntN(n)
}

// handler has its effect, sooner or later.
func (s *storm) handler(fates map[string]string) consume.Handler {
	return func(ctx context.Context, x *semel.Execution, m *consume.Message) error {
		s.mu.Lock()
		s.failed[m.Key]++
		again := s.failed[m.Key] <= 2
		s.mu.Unlock()
		fate := fates[m.Key]
		switch {
		case fate == "final":
			return semel.Final(errHandler)
		case fate == "hopeless":
			return errHandler
		case fate == "panics" && again:
			panic(errHandler)
		case fate == "no effect" && again:
			return semel.NoEffect(errHandler)
		case fate == "a call of its own fails" && again:
			return &semel.Error{Reason: semel.ErrUnavailable, Operation: "another", Cause: errHandler}
		case fate == "slow" && again: // longer than a broker waits, and than a lease that is not renewed
			select {
			case <-time.After(2 * time.Second):
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		<-time.After(time.Duration(s.upTo(5)) * time.Millisecond)
		s.effect(x, m)
		if fate == "fails late" && again {
			return errHandler
		}
		return nil
	}
}

// inAStorm has consumers go through several faults at once: calls to the broker
// fail, or their answers are lost; the store goes down and comes back, or
// renews no leases; consumers are killed and stopped; others run the same keys.
func inAStorm(w *world) {
	s := &storm{world: w, rand: rand.New(rand.NewPCG(rand.Uint64(), 1)), failed: map[string]int{}}
	ms, of := many(160), map[string]string{}
	for i := range ms {
		key, _ := ms[i].Header(consume.KeyHeader)
		if of[key] = fateOf(i); i%3 == 0 {
			ms[i].OrderKey = fmt.Sprint("lane", i%5)
		}
	}
	flaky := func(*consume.Message) error {
		if s.oneIn(10) {
			return errFault
		}
		return nil
	}
	o := setup{
		lease: lease / 2, handler: s.handler(of),
		options: consume.Options{MaxAttempts: 40, Drain: 50 * time.Millisecond, InFlight: 32, Concurrency: 8},
		faults:  faults{beforeAck: flaky, afterAck: flaky, beforeNak: flaky, beforeForward: flaky, beforeExtend: flaky},
	}
	live := []*process{w.start(o), w.start(o)}
	var calm sync.WaitGroup
	for i := range ms {
		w.broker.Publish(w, ms[i])
		if i%3 == 0 {
			w.broker.Publish(w, ms[s.upTo(i+1)])
		}
		if i%8 != 7 {
			continue
		}
		<-time.After(time.Duration(s.upTo(40)) * time.Millisecond)
		switch p := live[s.upTo(len(live))]; s.upTo(5) {
		case 0:
			live = slices.DeleteFunc(live, func(l *process) bool { return l == p })
			live = append(live, w.start(o))
			p.kill()
		case 1:
			live = slices.DeleteFunc(live, func(l *process) bool { return l == p })
			live = append(live, w.start(o))
			calm.Go(p.shutdown)
		case 2:
			p.store.down.Store(true)
			calm.Go(func() {
				<-time.After(200 * time.Millisecond)
				p.store.down.Store(false)
			})
		case 3:
			p.store.stale.Store(true)
			calm.Go(func() {
				<-time.After(2 * lease)
				p.store.stale.Store(false)
			})
		case 4:
			m, d := ms[s.upTo(i+1)], time.Duration(s.upTo(300))*time.Millisecond
			calm.Go(func() { w.borrow(m, d) })
		}
	}
	calm.Wait()
	w.settled()
	s.judge(ms, of)
}

// borrow runs a message's call for a while, as another process would, and at last
// does nothing.
func (w *world) borrow(m consume.Message, d time.Duration) {
	g, err := semel.New(w.store, &semel.Options{Lease: lease, Retention: consume.DefaultRetention})
	if err != nil {
		w.Error(err)
		return
	}
	call, err := keyed(&m)
	if err != nil {
		w.Error(err)
		return
	}
	_ = semel.Once(context.Background(), g, call, func(context.Context, *semel.Execution) error {
		<-time.After(d)
		return semel.NoEffect(errHandler)
	})
}

// judge wants an effect of each good message, and a letter of each dead one.
func (s *storm) judge(ms []consume.Message, of map[string]string) {
	letters := map[string]string{}
	for _, m := range s.broker.Copies(s, driver.DeadLetter) {
		key, _ := m.Header(consume.KeyHeader)
		letters[key], _ = m.Header(driver.LetterReason)
	}
	if n := len(s.broker.Copies(s, driver.Quarantine)); n > 0 {
		s.Errorf("%d messages are in the quarantine", n)
	}
	s.world.mu.Lock()
	defer s.world.mu.Unlock()
	var wrong []error
	for i := range ms {
		key, _ := ms[i].Header(consume.KeyHeader)
		switch why, is := letters[key]; {
		case dead(of[key]) && (!is || s.runs[key] > 0):
			wrong = append(wrong, fmt.Errorf("%s (%s) has %d effects, and a letter: %v", key, of[key], s.runs[key], is))
		case !dead(of[key]) && (is || s.runs[key] == 0):
			wrong = append(wrong, fmt.Errorf("%s (%s) has %d effects, and a letter: %v %s", key, of[key], s.runs[key], is, why))
		}
	}
	if len(wrong) > 0 {
		s.Errorf("of %d messages %d have not the end that they should have: %v", len(ms), len(wrong), errors.Join(wrong[:min(len(wrong), 10)]...))
	}
	if good := len(s.effects); good != len(s.runs) {
		s.Errorf("%d messages had %d effects: a downstream that compares keys would see doubles", len(s.runs), good)
	}
}
