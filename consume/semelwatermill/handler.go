package semelwatermill

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/consume/driver"
	"github.com/semel-go/semel/store"
)

// Handler wraps a handler of a router, for AddHandler. run is a *semel.Guard or a store's
// Atomic, and call names the key of a message: see consume.Keyed. A nil o means the
// defaults of consume.Options. The error names everything that is wrong with the
// arguments. The handler is safe for concurrent use if h is.
func Handler(run semel.Runner, call consume.CallFunc, h message.HandlerFunc, o *consume.Options) (message.HandlerFunc, error) {
	var handle consume.Handler
	if h != nil {
		handle = func(ctx context.Context, _ *semel.Execution, _ *consume.Message) error {
			d := ctx.Value(deliveryKey{}).(*delivery) //nolint:forcetypeassert // of take
			msg := d.msg.Copy()
			msg.SetContext(ctx)
			var err error
			d.produced, err = h(msg)
			return err
		}
	}
	if run != nil {
		run = recorder{run}
	}
	c, err := consume.New(run, call, handle, o)
	if err != nil {
		return nil, fmt.Errorf("semelwatermill: %w", err)
	}
	observe := consume.LogEvents(nil)
	if o != nil && o.Observe != nil {
		observe = o.Observe
	}
	return func(msg *message.Message) ([]*message.Message, error) { return take(c, observe, msg) }, nil
}

// NoPublishHandler is Handler for AddConsumerHandler.
func NoPublishHandler(run semel.Runner, call consume.CallFunc, h message.NoPublishHandlerFunc, o *consume.Options) (message.NoPublishHandlerFunc, error) {
	var handle message.HandlerFunc
	if h != nil {
		handle = func(msg *message.Message) ([]*message.Message, error) { return nil, h(msg) }
	}
	once, err := Handler(run, call, handle, o)
	if err != nil {
		return nil, err
	}
	return func(msg *message.Message) error {
		_, err := once(msg)
		return err
	}, nil
}

// Error says why a message is not done. It unwraps to the error of the run.
type Error struct{ Disposition driver.Disposition }

// Error returns the action, the reason and the cause in one line.
func (e *Error) Error() string {
	return fmt.Sprintf("semelwatermill: %v (%s): %v", e.Disposition.Action, e.Disposition.Reason, e.Disposition.Err)
}

// Unwrap returns the error of the run.
func (e *Error) Unwrap() error { return e.Disposition.Err }

// ForPoisonQueue reports whether another delivery of the message cannot succeed: it has
// failed for good, has no key, or is in doubt and parked. It is the filter of
// middleware.PoisonQueueWithFilter.
func ForPoisonQueue(err error) bool {
	e, ok := errors.AsType[*Error](err)
	return ok && (e.Disposition.Action == driver.DeadLetter || e.Disposition.Action == driver.Quarantine)
}

// delivery is a message on its way through take.
type delivery struct {
	msg      *message.Message
	produced []*message.Message // of the handler; nil: it did not run
	kept     store.Outcome
}

type deliveryKey struct{}

// longestHold is the longest pause between two tries of a message on hold.
const longestHold = time.Second

// take tries a message until it is not on hold any more, or until its context ends.
func take(c *consume.Consumer, observe func(context.Context, consume.Event), msg *message.Message) ([]*message.Message, error) {
	d := &delivery{msg: msg}
	ctx := context.WithValue(msg.Context(), deliveryKey{}, d)
	m := messageOf(msg)
	pause, outage := time.Duration(0), false
	var turn driver.Turn // for which the message waits
	for {
		began := time.Now()
		disposition := handle(ctx, c, m, turn)
		observe(ctx, consume.Event{Kind: consume.EventDecided, Message: m, Disposition: disposition, Took: time.Since(began)})
		if unavailable := disposition.Reason == driver.ReasonUnavailable && ctx.Err() == nil; unavailable != outage {
			if outage = unavailable; outage {
				observe(ctx, consume.Event{Kind: consume.EventOutage, Message: m, Disposition: disposition, Err: disposition.Err})
			} else {
				observe(ctx, consume.Event{Kind: consume.EventResumed})
			}
		}
		switch disposition.Action {
		case driver.Ack:
			return d.messages(disposition)
		case driver.Hold:
			if disposition.Reason == driver.ReasonRejected {
				wait(ctx, longestHold) // the router does not stop, and the broker may deliver the message again at once
				return nil, &Error{disposition}
			}
		case driver.Retry, driver.DeadLetter, driver.Quarantine:
			return nil, &Error{disposition}
		}
		pause = min(max(2*pause, disposition.Delay), longestHold)
		turn = disposition.Turn()
		if turn != nil && !waitForTurn(ctx, turn) || turn == nil && !wait(ctx, pause) {
			if outage { // it ends for this message
				observe(ctx, consume.Event{Kind: consume.EventResumed})
			}
			return nil, &Error{disposition}
		}
	}
}

// handle tries a message, after turn if that is not nil.
func handle(ctx context.Context, c *consume.Consumer, m *consume.Message, turn driver.Turn) driver.Disposition {
	if turn != nil {
		ctx = driver.WithTurn(ctx, turn)
		defer turn.Leave()
	}
	return c.Handle(ctx, m)
}

// waitForTurn waits until the turn has come. If the context ends first, it gives the turn up and
// reports false.
func waitForTurn(ctx context.Context, turn driver.Turn) bool {
	select {
	case <-turn.Ready():
		return true
	case <-ctx.Done():
		turn.Leave()
		return false
	}
}

// wait waits for a while. It reports false if the context ended first.
func wait(ctx context.Context, pause time.Duration) bool {
	select {
	case <-time.After(pause):
		return true
	case <-ctx.Done():
		return false
	}
}

// messages returns the messages to publish after the run, or after the run that the
// message is a duplicate of.
func (d *delivery) messages(disposition driver.Disposition) ([]*message.Message, error) {
	switch disposition.Reason {
	case driver.ReasonDone, driver.ReasonDoneButNotStored:
		for _, m := range d.produced {
			m.SetContext(context.WithoutCancel(m.Context())) // the context of the run has ended
		}
		return d.produced, nil
	case driver.ReasonDuplicate:
	default: // a failure that consume.Options.AckFailures acks
		return nil, nil
	}
	produced, err := decode(d.kept)
	if err != nil {
		disposition.Action, disposition.Err = driver.Quarantine, err
		return nil, &Error{disposition}
	}
	return produced, nil
}
