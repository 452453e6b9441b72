package driver

import (
	"context"
	"errors"
	"math"
	"time"

	"github.com/semel-go/semel/store"
)

// Source is the adapter of a broker: it takes messages, as deliveries, and
// leaves all decisions to the consumer. Its methods are safe for concurrent
// use; Serve calls Info first, then Next, one call at a time, and Stop last.
type Source interface {
	// Info asks the broker for the limits that Serve must respect.
	Info(ctx context.Context) (Info, error)
	// Next returns up to limit messages, in the broker's order, as soon as
	// there is one. It returns nothing, and no error, if none came for a while. It may
	// return messages and an error, if a part of its work failed: Serve reports the error.
	// When ctx ends it returns soon; Serve gives back the messages that it
	// returns then. ErrClosed: no message will come any more. After any other
	// error without messages Serve pauses and calls Next again.
	Next(ctx context.Context, limit int) ([]Delivery, error)
	// Stop ends taking, until the next Info: the broker sends nothing more to
	// this member, and the messages that Next has not returned go back to it.
	// Deliveries that Next has returned are still settled. Serve calls Stop
	// once, after its last Next has returned and before it gives back any
	// message, so that nothing that is given back is delivered here again.
	Stop(ctx context.Context) error
}

// Info is what Serve must know of a source.
type Info struct {
	// Horizon is the greatest age at which the broker may still deliver a
	// message; Forever if there is no limit, zero if it is unknown.
	Horizon time.Duration
	// AckWait is how long a delivery may stay unsettled before the broker gives
	// it to another consumer, unless it is extended; zero if there is no limit.
	AckWait time.Duration
	// HoldsOnly: the broker cannot redeliver one message alone, so that the
	// consumer holds a message until its retry. Kafka is such a broker.
	HoldsOnly bool
	// DeliveryLimit is how often the broker itself delivers a message before it
	// drops it or moves it to its own dead letters; zero: no limit. Serve then
	// takes no more messages than it has free handlers, because each delivery
	// counts, also of a message that only waited. A message that waits for its Turn takes one
	// of these places. Messages that wait for another of their order key take none, so a
	// source with a limit refuses an order key. Nor do those whose key runs elsewhere or whose
	// part of the store is away, so that they do not keep the others back.
	DeliveryLimit int
}

// Forever is the Horizon of a broker that keeps messages without limit.
const Forever = time.Duration(math.MaxInt64)

// ErrClosed is the error of Next after the source was closed.
var ErrClosed = errors.New("consume: the source is closed")

// ErrGone is the error of a Delivery, wrapped or not, whose message does not
// belong to it any more: the broker has delivered the message again, or the
// connection is lost. Serve then calls no other method of the delivery.
var ErrGone = errors.New("consume: the delivery is over")

// Delivery is one delivery of a message. Serve settles each by one successful
// Ack or by Nak. Any goroutine may call Ack, Nak, Forward and Extend, one at a
// time, except that Extend may be called beside Ack and Forward. No Extend is called
// beside a Nak, or after one that has succeeded.
type Delivery interface {
	Message() *Message
	// Ack says that the message is done. It returns nil only if the broker
	// knows, or will learn it before anything else about this delivery counts.
	// After an error Serve tries again, and the message may be redelivered.
	Ack(ctx context.Context) error
	// Nak gives the message back: the broker delivers it again, here or
	// elsewhere, after about delay. If Info.HoldsOnly, Nak only says that this
	// delivery is over.
	Nak(ctx context.Context, delay time.Duration) error
	// Forward publishes a copy of the message with these headers, to the dead
	// letters (DeadLetter) or to the quarantine (Quarantine). It returns nil
	// only after the broker has stored the copy. It does not ack the message.
	Forward(ctx context.Context, to Action, headers []store.Header) error
	// Extend keeps the message from other consumers for another AckWait.
	Extend(ctx context.Context) error
	// Revoked is closed when the broker takes the message away: Serve then
	// starts no handler for it, and lets a running one end. Nil: that never
	// happens.
	Revoked() <-chan struct{}
}

// Waiter is an optional interface of a Delivery. Waits(true) says that the message waits
// for an earlier message, for a pause, for its Turn (not if there is a DeliveryLimit) or for
// the broker's answer to a settlement, and not for a free handler; Waits(false) says that this
// wait has ended. Waits may be called while a method of the Delivery runs, and with false after
// its Ack or Nak.
type Waiter interface {
	Waits(waits bool)
}
