package consumetest

import (
	"context"
	"errors"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/consume/driver"
)

// A handler runs longer than the lease and the broker's wait for an ack: both
// are extended, and a second consumer does not get the message. A machine may
// stall for so long that it does all the same, but not each time.
func slowHandler(w *world) {
	ms := many(3)
	release := map[string]chan struct{}{}
	for i := range ms {
		key, _ := ms[i].Header(consume.KeyHeader)
		release[key] = make(chan struct{})
	}
	slow := func(ctx context.Context, x *semel.Execution, m *consume.Message) error {
		select {
		case <-release[m.Key]:
		case <-ctx.Done():
			return ctx.Err()
		}
		return w.plain(ctx, x, m)
	}
	w.start(setup{handler: slow, lease: lease / 2})
	w.start(setup{handler: slow, lease: lease / 2})
	again := 0
	for _, m := range ms {
		before := w.repeated()
		w.broker.Publish(w, m)
		<-time.After(lease)
		key, _ := m.Header(consume.KeyHeader)
		close(release[key])
		w.settled()
		w.once([]consume.Message{m})
		if w.repeated() == before {
			return
		}
		again++
	}
	w.Errorf("%d times out of %d the message was delivered again while its handler ran", again, again)
}

// repeated counts the tries of messages that were in work, or done.
func (w *world) repeated() int {
	return w.saw(consume.EventDecided, driver.ReasonInProgress) + w.saw(consume.EventDecided, driver.ReasonDuplicate)
}

// leaseLost: a process that cannot renew its lease has its handler cancelled.
// Another takes over and has the effect. The result of the first handler does
// not count, and does not ack its message.
func leaseLost(w *world) {
	m := msg("k", "")
	lost, release := make(chan error, 1), make(chan struct{})
	p := w.start(setup{lease: short, handler: func(ctx context.Context, _ *semel.Execution, _ *consume.Message) error {
		<-ctx.Done()
		select {
		case lost <- context.Cause(ctx):
		default:
			w.Error("the handler ran again, though another had the effect")
		}
		<-release
		return nil // as if all were well
	}})
	p.store.stale.Store(true)
	w.broker.Publish(w, m)
	select {
	case err := <-lost:
		if !errors.Is(err, semel.ErrLeaseLost) {
			w.Errorf("the handler's context ended for %v, want ErrLeaseLost", err)
		}
	case <-time.After(w.h.Patience):
		w.Fatal("the handler was not cancelled when its lease was lost")
	}
	letGo, _ := w.elsewhere(m, held, func() error { return nil })
	close(letGo)
	w.until("the effect elsewhere", func() bool { return w.ran("k") == 1 })
	close(release)
	w.settled()
	w.once([]consume.Message{m})
	if w.saw(consume.EventDecided, driver.ReasonLeaseLost) == 0 {
		w.Error("the first run was not told that it lost its lease")
	}
}

// lateAck: a consumer whose extensions fail runs on, and the broker delivers
// its message to another, which finds the key in progress. Then the first
// consumer acks. Whether the broker accepts that ack or not, there is one
// effect, and no message is left.
func lateAck(w *world) {
	m := msg("k", "")
	release := make(chan struct{})
	slow := func(ctx context.Context, x *semel.Execution, m *consume.Message) error {
		<-release
		return w.plain(ctx, x, m)
	}
	deaf := faults{beforeExtend: func(*consume.Message) error { return errFault }}
	w.start(setup{handler: slow, faults: deaf})
	w.start(setup{handler: slow, faults: deaf})
	w.broker.Publish(w, m)
	<-time.After(lease)
	close(release)
	w.settled()
	w.once([]consume.Message{m})
	w.copies(driver.DeadLetter, 0)
	w.copies(driver.Quarantine, 0)
}
