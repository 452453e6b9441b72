package consumetest

import (
	"context"
	"errors"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/consume/driver"
)

func eachRunsOnce(w *world) {
	ms := many(50)
	w.broker.Publish(w, ms[:25]...)
	w.start(setup{})
	w.broker.Publish(w, ms[25:]...)
	w.until("all messages run", func() bool { return w.total() >= len(ms) })
	w.settled()
	w.once(ms)
	w.copies(driver.DeadLetter, 0)
	w.copies(driver.Quarantine, 0)
}

// failing makes a handler that fails each key so often before it has its
// effect.
func (w *world) failing(n int64, fail func() error) consume.Handler {
	var left atomic.Int64
	left.Store(n)
	return func(_ context.Context, x *semel.Execution, m *consume.Message) error {
		if left.Add(-1) >= 0 {
			return fail()
		}
		w.effect(x, m)
		return nil
	}
}

var errHandler = errors.New("consumetest: the handler fails")

func plainError() error { return errHandler }

func failedComesAgain(w *world) {
	ms := []consume.Message{msg("ordered", "o"), msg("free", "")}
	w.broker.Publish(w, ms...)
	w.start(setup{handler: w.failing(6, plainError)})
	w.settled()
	w.once(ms)
	if n := w.saw(consume.EventDecided, driver.ReasonError); n != 6 {
		w.Errorf("%d tries failed, want 6", n)
	}
	w.copies(driver.DeadLetter, 0)
}

func panicIsAFailure(w *world) {
	w.broker.Publish(w, msg("k", ""))
	w.start(setup{handler: w.failing(2, func() error { panic("consumetest") })})
	w.settled()
	w.once([]consume.Message{msg("k", "")})
}

func duplicateInTheBatch(w *world) {
	ms := []consume.Message{msg("a", ""), msg("b", ""), msg("c", "lane"), msg("d", "lane")}
	w.broker.Publish(w, ms[0], ms[0], ms[1], ms[0], ms[2], ms[2], ms[3], ms[2])
	w.start(setup{})
	w.settled()
	w.once(ms)
	if n := w.saw(consume.EventDecided, driver.ReasonDuplicate); n < 4 {
		w.Errorf("%d duplicates were found, want 4", n)
	}
	w.copies(driver.DeadLetter, 0)
}

func duplicatesOnTwoConsumers(w *world) {
	ms := many(60)
	w.start(setup{})
	w.start(setup{})
	for i := range ms {
		w.broker.Publish(w, ms[i], ms[i])
	}
	w.until("all messages run", func() bool { return w.total() >= len(ms) })
	w.settled()
	w.once(ms)
	w.copies(driver.DeadLetter, 0)
}

// elsewhere runs a message's call in this process, until it is let go.
func (w *world) elsewhere(m consume.Message, lease time.Duration, end func() error) (letGo chan struct{}, fl *flakyStore) {
	begun, letGo, failed := make(chan struct{}), make(chan struct{}), make(chan struct{})
	fl = &flakyStore{Store: w.store}
	guard, err := semel.New(fl, &semel.Options{Lease: lease, Retention: consume.DefaultRetention, SettleTimeout: lease / 2})
	if err != nil {
		w.Fatal(err)
	}
	call, err := keyed(&m)
	if err != nil {
		w.Fatal(err)
	}
	m.Key = call.Key
	call.Wait = w.h.Patience // until whoever has it loses it
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = semel.Once(context.Background(), guard, call, func(_ context.Context, x *semel.Execution) error {
			close(begun)
			select {
			case <-letGo:
			case <-failed:
				return errHandler
			}
			if err := end(); err != nil {
				return err
			}
			w.effect(x, &m)
			return nil
		})
	}()
	w.Cleanup(func() {
		close(failed) // a check that has failed does not let go
		<-done
	})
	<-begun
	return letGo, fl
}

func inFlightElsewhere(w *world) {
	m := msg("k", "")
	letGo, _ := w.elsewhere(m, held, func() error { return nil })
	w.broker.Publish(w, m)
	w.start(setup{})
	w.until("looked at twice", func() bool { return w.saw(consume.EventDecided, driver.ReasonInProgress) >= 2 })
	if n := w.broker.Unsettled(w); n != 1 {
		w.Errorf("%d messages unsettled while the first call runs, want 1: it was acked or dropped", n)
	}
	close(letGo)
	w.settled()
	w.once([]consume.Message{m})
	w.copies(driver.DeadLetter, 0)
	w.copies(driver.Quarantine, 0)
}

func inFlightElsewhereDies(w *world) {
	w.start(setup{})
	var ms []consume.Message
	inProgress := func() bool { return w.saw(consume.EventDecided, driver.ReasonInProgress) >= 1 }
	for n := 0; n < 5 && !inProgress(); n++ { // a slow machine may let the lease lapse before the consumer looks
		m := msg("k"+strconv.Itoa(n), "")
		letGo, fl := w.elsewhere(m, short, plainError)
		w.broker.Publish(w, m)
		ms = append(ms, m)
		w.until("looked at, or run", func() bool { return inProgress() || w.total() > n })
		fl.down.Store(true) // the run elsewhere renews its lease until here
		close(letGo)
		w.settled()
		w.once(ms)
	}
	if !inProgress() {
		w.Errorf("five times the lease of the other run had lapsed before the consumer looked")
	}
}
