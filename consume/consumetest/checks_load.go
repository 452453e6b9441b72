package consumetest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/consume/driver"
)

func storeDownAtStart(w *world) {
	ms := many(30)
	w.broker.Publish(w, ms...)
	p := w.start(setup{storeDown: true})
	w.until("the outage seen", func() bool { return w.saw(consume.EventOutage, "") > 0 })
	if n := w.broker.Unsettled(w); n != len(ms) || w.total() != 0 {
		w.Errorf("with the store down %d of %d messages are unsettled, and %d ran", n, len(ms), w.total())
	}
	p.store.down.Store(false)
	w.settled()
	w.once(ms)
	w.copies(driver.DeadLetter, 0)
	w.copies(driver.Quarantine, 0)
}

func storeGoesDown(w *world) {
	ms := many(60)
	p := w.start(setup{})
	w.broker.Publish(w, ms[:20]...)
	w.until("the first messages run", func() bool { return w.total() >= 10 })
	for _, next := range [][]consume.Message{ms[20:40], ms[40:]} {
		before := w.saw(consume.EventOutage, "")
		p.store.down.Store(true)
		w.broker.Publish(w, next...)
		w.until("the outage seen", func() bool { return w.saw(consume.EventOutage, "") > before })
		p.store.down.Store(false)
		w.until("its end seen", func() bool { return w.saw(consume.EventResumed, "") > before })
		// A failure that is reported only now begins another outage, which
		// must be over: the next would go on from it, and not be seen.
		w.settled()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := range ms {
		if key, _ := ms[i].Header(consume.KeyHeader); w.runs[key] == 0 {
			w.Errorf("message %s was lost", key)
		}
	}
}

// A message that waits for a slow one is extended, too.
func waitingIsKept(w *world) {
	ms := []consume.Message{msg("first", "o"), msg("second", "o")}
	release := make(chan struct{})
	var first atomic.Bool
	w.start(setup{handler: func(ctx context.Context, x *semel.Execution, m *consume.Message) error {
		if m.Key == "first" {
			first.Store(true)
			<-release
		}
		return w.plain(ctx, x, m)
	}})
	w.broker.Publish(w, ms...)
	w.until("the first begun", first.Load)
	<-time.After(lease)
	close(release)
	w.settled()
	w.once(ms)
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.h.Unordered && !slices.Equal(w.order["o"], []string{"first", "second"}) {
		w.Errorf("they ran in the order %v", w.order["o"])
	}
}

func shutdown(w *world) {
	ms := many(200)
	for i := range ms {
		if i%2 == 0 {
			ms[i].OrderKey = fmt.Sprint("lane", i%7)
		}
	}
	w.broker.Publish(w, ms...)
	busy := func(ctx context.Context, x *semel.Execution, m *consume.Message) error {
		<-time.After(time.Duration(rand.N(4)) * time.Millisecond)
		return w.plain(ctx, x, m)
	}
	a := w.start(setup{handler: busy})
	b := w.start(setup{handler: busy})
	w.until("some messages run", func() bool { return w.total() >= 20 })
	a.shutdown()
	b.shutdown()
	before := w.total()
	w.start(setup{handler: busy})
	w.settled()
	w.once(ms)
	if before == len(ms) {
		w.Log("all messages had run before the shutdown: it was not under load")
	}
}

// Messages that wait for a retry, or in line, are given back before Drain is over.
func shutdownGivesBack(w *world) {
	ms := []consume.Message{msg("a", "o"), msg("b", "o"), msg("c", "p")}
	w.broker.Publish(w, ms...)
	long := consume.Options{Backoff: func(int) time.Duration { return time.Hour }}
	p := w.start(setup{handler: w.failing(1000, plainError), options: long})
	w.until("failed", func() bool { return w.saw(consume.EventDecided, driver.ReasonError) >= 2 })
	p.shutdown()
	if n := w.broker.Unsettled(w); n != len(ms) {
		w.Errorf("%d messages unsettled after the shutdown, want %d", n, len(ms))
	}
	w.start(setup{})
	w.settled()
	w.once(ms)
}

const (
	orderKeys = 8
	perKey    = 25
)

// inOrder is messages of several order keys, mixed.
func inOrder() (ms []consume.Message) {
	for i := range perKey {
		for l := range orderKeys {
			ms = append(ms, msg(fmt.Sprintf("l%d-%03d", l, i), fmt.Sprint("lane", l)))
		}
	}
	return ms
}

func (w *world) inOrder() {
	w.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	for l := range orderKeys {
		got := w.order[fmt.Sprint("lane", l)]
		if len(got) != perKey || !slices.IsSorted(got) {
			w.Errorf("lane %d ran %d messages of %d, in the order %v", l, len(got), perKey, got)
			return
		}
	}
}

func orderPerKey(w *world) {
	ms := inOrder()
	w.broker.Publish(w, ms...)
	var running, most atomic.Int64
	w.start(setup{handler: func(ctx context.Context, x *semel.Execution, m *consume.Message) error {
		now := running.Add(1)
		defer running.Add(-1)
		for old := most.Load(); now > old && !most.CompareAndSwap(old, now); old = most.Load() {
		}
		<-time.After(time.Duration(rand.N(3)) * time.Millisecond)
		return w.plain(ctx, x, m)
	}})
	w.settled()
	w.once(ms)
	w.inOrder()
	if most.Load() < 2 {
		w.Error("never two handlers ran at once")
	}
}

func orderOverRetries(w *world) {
	ms := inOrder()
	w.broker.Publish(w, ms...)
	w.start(setup{options: consume.Options{MaxAttempts: -1}, handler: func(ctx context.Context, x *semel.Execution, m *consume.Message) error {
		if rand.N(4) == 0 {
			return errHandler
		}
		return w.plain(ctx, x, m)
	}})
	w.settled()
	w.once(ms)
	w.inOrder()
}

// orderOverAStop stops a consumer while messages of one order key wait behind
// one that has failed. The next consumer runs them in their order.
func orderOverAStop(w *world) {
	const rounds, inRound = 5, 5
	long := consume.Options{MaxAttempts: -1, Backoff: func(int) time.Duration { return time.Hour }}
	for round := range rounds {
		key := fmt.Sprint("round", round)
		var ms []consume.Message
		for i := range inRound {
			ms = append(ms, msg(fmt.Sprintf("%s-%d", key, i), key))
		}
		w.broker.Publish(w, ms...)
		failed := w.saw(consume.EventDecided, driver.ReasonError)
		p := w.start(setup{handler: w.failing(1000, plainError), options: long})
		w.until("the head fails", func() bool { return w.saw(consume.EventDecided, driver.ReasonError) > failed })
		p.shutdown()
		next := w.start(setup{options: long})
		w.settled()
		next.shutdown()
		w.once(ms)
		w.mu.Lock()
		order := w.order[key]
		w.mu.Unlock()
		if !slices.IsSorted(order) {
			w.Errorf("after the stop the messages of one order key ran in the order %v", order)
		}
	}
}

// nothingLost kills consumers, and loses what they say, until all messages are
// acked. A third of the messages is published more than once.
func nothingLost(w *world) {
	ms := many(150)
	for i := range ms {
		if i%3 == 0 {
			ms[i].OrderKey = fmt.Sprint("lane", i%5)
		}
	}
	flaky := func(*consume.Message) error {
		if rand.N(10) == 0 {
			return errFault
		}
		return nil
	}
	s := setup{
		lease: lease / 2, options: consume.Options{MaxAttempts: -1, Drain: time.Nanosecond, InFlight: 16, Concurrency: 8},
		faults: faults{beforeAck: flaky, afterAck: flaky, beforeNak: flaky, beforeForward: flaky},
		handler: func(ctx context.Context, x *semel.Execution, m *consume.Message) error {
			if rand.N(20) == 0 {
				return errHandler
			}
			<-time.After(time.Duration(rand.N(8)) * time.Millisecond)
			w.effect(x, m)
			if rand.N(40) == 0 {
				return errHandler
			}
			return nil
		},
	}
	a, b := w.start(s), w.start(s)
	for i := range ms {
		w.broker.Publish(w, ms[i])
		if i%3 == 0 {
			w.broker.Publish(w, ms[rand.N(i+1)])
		}
		if i%30 == 29 {
			was := w.total()
			w.until("some progress", func() bool { return w.total() > was || w.broker.Unsettled(w) == 0 })
			a.kill()
			a, b = b, w.start(s)
		}
	}
	w.settled()
	w.mu.Lock()
	defer w.mu.Unlock()
	lost := 0
	for i := range ms {
		if key, _ := ms[i].Header(consume.KeyHeader); w.runs[key] == 0 {
			lost++
		}
	}
	runs := 0
	for _, n := range w.runs {
		runs += n
	}
	if lost > 0 || len(w.effects) != len(ms) {
		w.Errorf("of %d messages, %d were lost and %d took effect", len(ms), lost, len(w.effects))
	}
	w.Logf("%d messages, %d effects, %d runs, 5 kills", len(ms), len(w.effects), runs)
}
