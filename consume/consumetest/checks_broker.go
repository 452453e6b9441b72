package consumetest

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/consume/driver"
	"github.com/semel-go/semel/store"
)

func ackFails(w *world) {
	ms := many(3)
	w.broker.Publish(w, ms...)
	w.start(setup{faults: faults{beforeAck: times(6)}})
	w.settled()
	w.once(ms)
}

func ackLost(w *world) {
	ms := many(3)
	w.broker.Publish(w, ms...)
	p := w.start(setup{faults: faults{afterAck: times(6)}})
	w.settled()
	p.shutdown()
	w.settled()
	w.once(ms)
}

func nakFails(w *world) {
	ms := many(3)
	w.broker.Publish(w, ms...)
	w.start(setup{
		handler: w.failing(3, plainError), options: consume.Options{Backoff: goesBack}, faults: faults{beforeNak: times(2)},
	})
	w.settled()
	w.once(ms)
}

// alwaysFinal is a handler of poison that says so.
func alwaysFinal(context.Context, *semel.Execution, *consume.Message) error {
	return &semel.Failure{Code: "declined", Message: "the card was\ndeclined"}
}

func copyFails(w *world) {
	m := msg("k", "")
	w.broker.Publish(w, m)
	held := make(chan struct{})
	fails := times(4)
	n := 0 // one message, one worker at a time
	w.start(setup{handler: alwaysFinal, faults: faults{beforeForward: func(m *consume.Message) error {
		if n++; n == 3 {
			if w.broker.Unsettled(w) != 1 {
				w.Error("the message was acked before its copy was sent")
			}
			close(held)
		}
		return fails(m)
	}}})
	w.wait("the copy refused", held)
	w.settled()
	w.copies(driver.DeadLetter, 1)
}

func poison(w *world) {
	const most = 3
	runs := make(chan struct{}, 100)
	w.broker.Publish(w, msg("bad", "o"), msg("next", "o"), msg("free", ""))
	w.start(setup{options: consume.Options{MaxAttempts: most}, handler: func(ctx context.Context, x *semel.Execution, m *consume.Message) error {
		if m.Key == "bad" {
			runs <- struct{}{}
			return errHandler
		}
		return w.plain(ctx, x, m)
	}})
	w.settled()
	if len(runs) != most {
		w.Errorf("the handler ran %d times, want %d", len(runs), most)
	}
	c := w.copies(driver.DeadLetter, 1)[0]
	if r, _ := c.Header(driver.LetterReason); r != string(driver.ReasonExhausted) {
		w.Errorf("dead-lettered for %q, want %q", r, driver.ReasonExhausted)
	}
	if e, _ := c.Header(driver.LetterError); !strings.Contains(e, errHandler.Error()) {
		w.Errorf("the dead letter's error is %q, and does not have the handler's", e)
	}
	w.once([]consume.Message{msg("next", ""), msg("free", "")})
}

func failureIsADeadLetter(w *world) {
	m := msg("k", "")
	w.broker.Publish(w, m, m) // the duplicate gets the kept failure
	w.start(setup{handler: alwaysFinal})
	w.settled()
	for _, c := range w.broker.Copies(w, driver.DeadLetter) {
		if code, _ := c.Header(driver.LetterCode); code != "declined" || string(c.Body) != string(m.Body) {
			w.Errorf("the dead letter has the code %q and the body %q", code, c.Body)
		}
	}
	if len(w.broker.Copies(w, driver.DeadLetter)) == 0 {
		w.Error("there is no dead letter")
	}
}

func mismatch(w *world) {
	a, b := msg("k", ""), msg("k", "")
	b.Body = []byte("another")
	w.start(setup{})
	w.broker.Publish(w, a)
	w.settled()
	w.broker.Publish(w, b)
	w.settled()
	w.once([]consume.Message{a})
	c := w.copies(driver.DeadLetter, 1)[0]
	if r, _ := c.Header(driver.LetterReason); r != string(driver.ReasonMismatch) || string(c.Body) != "another" {
		w.Errorf("dead-lettered %q for %q, want the other body for %q", c.Body, r, driver.ReasonMismatch)
	}
}

func unknown(w *world) {
	w.broker.Publish(w, msg("k", "o"), msg("next", "o"))
	w.start(setup{policy: semel.Park, handler: func(ctx context.Context, x *semel.Execution, m *consume.Message) error {
		if m.Key == "k" {
			return errHandler
		}
		return w.plain(ctx, x, m)
	}})
	w.settled()
	if got := reasons(w.copies(driver.Quarantine, 1)); got[0] != string(driver.ReasonUnknown) {
		w.Errorf("quarantined for %q, want %q", got[0], driver.ReasonUnknown)
	}
	w.once([]consume.Message{msg("next", "")})
	w.copies(driver.DeadLetter, 0)
}

func noKey(w *world) {
	w.broker.Publish(w, consume.Message{Body: []byte("no key")}, consume.Message{
		Body: []byte("an empty key"), Headers: []store.Header{{Name: consume.KeyHeader, Value: ""}},
	}, msg("next", ""))
	w.start(setup{})
	w.settled()
	got := reasons(w.copies(driver.DeadLetter, 2))
	if want := []string{string(driver.ReasonNoKey), string(driver.ReasonNoKey)}; !slices.Equal(got, want) {
		w.Errorf("dead-lettered for %q, want %q", got, want)
	}
	w.once([]consume.Message{msg("next", "")})
}

func rejected(w *world) {
	w.broker.Publish(w, consume.Message{Body: []byte("no key")})
	p := w.start(setup{call: consume.Keyed(group, consume.FromHeader(consume.KeyHeader), consume.Reject())})
	w.wait("Serve returned", p.ended)
	if !errors.Is(p.err, consume.ErrRejected) {
		w.Errorf("Serve returned %v, want ErrRejected", p.err)
	}
	if n := w.broker.Unsettled(w); n != 1 {
		w.Errorf("%d messages unsettled, want 1: the rejected one must stay", n)
	}
	w.copies(driver.DeadLetter, 0)
}

func late(w *world) {
	w.broker.Publish(w, msg("k", ""))
	<-time.After(1300 * time.Millisecond) // the broker's clock, which no test can set
	w.start(setup{options: consume.Options{Retention: time.Second}})
	w.settled()
	if got := reasons(w.copies(driver.Quarantine, 1)); got[0] != string(driver.ReasonLate) {
		w.Errorf("quarantined for %q, want %q", got[0], driver.ReasonLate)
	}
	if w.total() != 0 {
		w.Error("it was run")
	}
}

func letterContents(w *world) {
	m := msg("k", "order-7")
	m.Headers = append(m.Headers, store.Header{Name: "trace", Value: "t1"}, store.Header{Name: driver.LetterReason, Value: "of an earlier journey"})
	w.broker.Publish(w, m)
	w.start(setup{handler: func(ctx context.Context, x *semel.Execution, m *consume.Message) error {
		w.begun(m)
		return alwaysFinal(ctx, x, m)
	}})
	w.settled()
	c := w.copies(driver.DeadLetter, 1)[0]
	w.mu.Lock()
	from := w.origins["k"]
	w.mu.Unlock()
	if from.Topic == "" {
		w.Error("the delivered message does not say its topic")
	}
	for name, want := range map[string]string{
		consume.KeyHeader: "k", "trace": "t1",
		driver.LetterReason: string(driver.ReasonFailed), driver.LetterCode: "declined", driver.LetterError: "the card was declined",
		driver.LetterAttempts: "1", driver.LetterGroup: group, driver.LetterKey: "k",
		driver.LetterTopic: from.Topic, driver.LetterOriginID: from.ID,
	} {
		if got, _ := c.Header(name); got != want {
			w.Errorf("header %s is %q, want %q", name, got, want)
		}
	}
	for _, name := range []string{driver.LetterID, driver.LetterPartition, driver.LetterOffset} {
		if got, ok := c.Header(name); !ok || got == "" {
			w.Errorf("there is no header %s", name)
		}
	}
	if string(c.Body) != string(m.Body) {
		w.Errorf("the body is %q, want %q", c.Body, m.Body)
	}
}

func largeMessage(w *world) {
	m := msg("k", "größe/√ 7")
	m.Body = []byte(strings.Repeat("0123456789abcdef", 50_000)) // 800 kB: brokers take 1 MB by default
	m.Headers = append(m.Headers, store.Header{Name: "x-empty", Value: ""}, store.Header{Name: "x-long", Value: strings.Repeat("v", 4000)})
	empty := msg("empty", "")
	empty.Body = nil
	w.broker.Publish(w, m, empty)
	type seen struct {
		order, long string
		size        int
	}
	got := make(chan seen, 10)
	w.start(setup{handler: func(ctx context.Context, x *semel.Execution, m *consume.Message) error {
		long, _ := m.Header("x-long")
		got <- seen{m.OrderKey, long, len(m.Body)}
		return w.plain(ctx, x, m)
	}})
	w.settled()
	w.once([]consume.Message{m, empty})
	for range 2 {
		if s := <-got; s.size > 0 && (s.order != m.OrderKey || len(s.long) != 4000 || s.size != len(m.Body)) {
			w.Errorf("it came with the order key %q, a header of %d bytes and a body of %d", s.order, len(s.long), s.size)
		}
	}
}
