package consumetest

import (
	"context"
	"sync"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/consume/driver"
)

// goesBack is a backoff that is left to the broker.
func goesBack(int) time.Duration { return 150 * time.Millisecond }

func failedGoesBack(w *world) {
	ms := []consume.Message{msg("k", "")}
	w.broker.Publish(w, ms...)
	w.start(setup{handler: w.failing(2, plainError), options: consume.Options{Backoff: goesBack}})
	w.settled()
	w.once(ms)
}

// short is the lease of a process that the test kills.
const short = lease / 4

// crashing is a handler that does not return before its process is dead.
func (w *world) crashing(effect bool) (h consume.Handler, begun chan struct{}, dead func()) {
	begun, over := make(chan struct{}), make(chan struct{})
	first := sync.OnceFunc(func() { close(begun) })
	dead = sync.OnceFunc(func() { close(over) })
	w.Cleanup(dead)
	return func(_ context.Context, x *semel.Execution, m *consume.Message) error {
		if effect {
			w.effect(x, m)
		}
		first()
		<-over
		return errHandler
	}, begun, dead
}

// crash runs a message on a process that dies in its handler.
func (w *world) crash(effect bool, s setup) {
	h, begun, dead := w.crashing(effect)
	s.handler, s.lease, s.options.Drain = h, short, time.Nanosecond
	p := w.start(s)
	w.wait("the handler begun", begun)
	p.kill()
	dead()
}

func (w *world) wait(what string, c <-chan struct{}) {
	w.Helper()
	select {
	case <-c:
	case <-time.After(w.h.Patience):
		w.Fatalf("after %v: not %s", w.h.Patience, what)
	}
}

func crashBeforeTheEffect(w *world) {
	m := msg("k", "")
	w.broker.Publish(w, m)
	w.crash(false, setup{})
	w.start(setup{})
	w.settled()
	w.once([]consume.Message{m})
}

// Under Retry the handler runs again, with the key that the first run passed
// on: a downstream that compares it sees one effect.
func crashAfterTheEffect(w *world) {
	m := msg("k", "")
	w.broker.Publish(w, m)
	w.crash(true, setup{})
	w.start(setup{})
	w.settled()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.runs["k"] != 2 || len(w.effects) != 1 {
		w.Errorf("%d runs with %d derived keys, want 2 with one", w.runs["k"], len(w.effects))
	}
}

func crashAfterTheEffectParked(w *world) {
	m := msg("k", "")
	w.broker.Publish(w, m)
	w.crash(true, setup{policy: semel.Park})
	w.start(setup{policy: semel.Park})
	w.settled()
	w.once([]consume.Message{m})
	if got := reasons(w.copies(driver.Quarantine, 1)); got[0] != string(driver.ReasonUnknown) {
		w.Errorf("quarantined for %q, want %q", got[0], driver.ReasonUnknown)
	}
}

// The messages after one that still runs are done and acked. That must not
// say of the one that it is done.
func crashWithLaterDone(w *world) {
	ms := many(30)
	w.broker.Publish(w, ms...)
	stuck := make(chan struct{})
	w.Cleanup(sync.OnceFunc(func() { close(stuck) }))
	p := w.start(setup{lease: short, options: consume.Options{Drain: time.Nanosecond}, handler: func(ctx context.Context, x *semel.Execution, m *consume.Message) error {
		if m.Key == "m0000" {
			select {
			case <-stuck:
			case <-ctx.Done():
			}
			return errHandler
		}
		return w.plain(ctx, x, m)
	}})
	w.until("the others acked", func() bool { return w.saw(consume.EventSettled, "") >= len(ms)-1 })
	p.kill()
	w.start(setup{})
	w.settled()
	w.once(ms)
}

func crashBeforeTheAck(w *world) {
	m := msg("k", "")
	reached := make(chan struct{})
	tell := sync.OnceFunc(func() { close(reached) })
	p := w.start(setup{faults: faults{beforeAck: func(*consume.Message) error {
		tell()
		return errFault
	}}})
	w.broker.Publish(w, m)
	w.wait("at the ack", reached)
	p.kill()
	w.start(setup{})
	w.settled()
	w.once([]consume.Message{m})
	if w.saw(consume.EventDecided, driver.ReasonDuplicate) == 0 {
		w.Error("the message did not come again as a duplicate")
	}
}

func crashBetweenCopyAndAck(w *world) {
	m := msg("k", "")
	reached := make(chan struct{})
	tell := sync.OnceFunc(func() { close(reached) })
	bad := func(context.Context, *semel.Execution, *consume.Message) error { return semel.Final(errHandler) }
	p := w.start(setup{handler: bad, faults: faults{beforeAck: func(*consume.Message) error {
		tell()
		return errFault
	}}})
	w.broker.Publish(w, m)
	w.wait("at the ack", reached)
	p.kill()
	w.start(setup{handler: bad})
	w.settled()
	ids := map[string]bool{}
	for _, c := range w.broker.Copies(w, driver.DeadLetter) {
		id, _ := c.Header(driver.LetterID)
		ids[id] = true
	}
	if len(ids) != 1 || ids[""] {
		w.Errorf("the dead letters have the ids %v, want one", ids)
	}
}

func poisonKills(w *world) {
	w.broker.Publish(w, msg("k", "o"))
	const most = 2
	opt := consume.Options{MaxAttempts: most}
	for range most {
		w.crash(false, setup{options: opt})
	}
	// Not before: while the broker waits for the dead to ack the poison, the
	// next to die would be given this one, and the poison had an attempt left.
	w.broker.Publish(w, msg("next", "o"))
	w.start(setup{options: opt})
	w.settled()
	if got := reasons(w.copies(driver.DeadLetter, 1)); got[0] != string(driver.ReasonExhausted) {
		w.Errorf("dead-lettered for %q, want %q", got[0], driver.ReasonExhausted)
	}
	if w.ran("k") != 0 || w.ran("next") != 1 {
		w.Errorf("the poison ran to its end %d times and the next %d times, want 0 and 1", w.ran("k"), w.ran("next"))
	}
}
