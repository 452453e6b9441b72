package consume

import (
	"context"
	"errors"
	"math"
	"time"

	"github.com/semel-go/semel"
)

// Source is where messages come from: all that a broker's adapter implements,
// with Delivery. It carries out and decides nothing. Safe for concurrent use;
// Serve has one Next at a time.
type Source interface {
	// Info asks the broker for what Serve has to know at its start.
	Info(ctx context.Context) (Info, error)
	// Next returns up to limit messages, in the broker's order, as soon as
	// there is one; none and nil when it has waited for a while. It returns
	// when ctx ends; messages that it returns then are given back. ErrClosed:
	// there will be no more. Any other error is tried again after a pause.
	Next(ctx context.Context, limit int) ([]Delivery, error)
	// Stop ends taking, until the next Info: the broker sends nothing more to
	// this member, and what it has sent ahead of Next goes back to it.
	// Deliveries that Next has returned are still settled. Serve calls Stop
	// once, after its last Next has returned and before it gives back any
	// message, so that nothing that is given back is delivered here again.
	Stop(ctx context.Context) error
}

// Info is what Serve has to know of a source.
type Info struct {
	// Horizon is the greatest age at which the broker may still deliver a
	// message; Forever: without end; zero: not known.
	Horizon time.Duration
	// AckWait is how long a delivery may be in work before the broker gives it
	// to another, unless it is extended. Zero: there is no such limit.
	AckWait time.Duration
	// HoldsOnly: the broker cannot redeliver one message alone, so that a
	// retry waits here, whatever its delay. Kafka is so.
	HoldsOnly bool
}

// Forever is the Horizon of a broker that keeps messages without end.
const Forever = time.Duration(math.MaxInt64)

// ErrClosed is returned by Next of a source that has been closed.
var ErrClosed = errors.New("consume: the source is closed")

// ErrGone is what the methods of a Delivery return, wrapped or not, when the
// message is not this delivery's any more: it was delivered again, or its
// connection is over. Serve then says nothing more of it.
var ErrGone = errors.New("consume: the delivery is over")

// Delivery is one delivery of a message. Serve ends each with one successful
// Ack, or with Nak: at once for what it gives up. All but Message and Revoked
// may be called from any goroutine, Extend at the same time as another.
type Delivery interface {
	Message() *Message
	// Ack says that the message is done with. It returns nil only if the
	// broker knows, or will be told before anything else of this delivery is
	// believed. An error: it may come again, and is tried again meanwhile.
	Ack(ctx context.Context) error
	// Nak gives the message back: it comes again, here or elsewhere, after
	// about delay. If Info.HoldsOnly, it only says that nothing more will be
	// done here.
	Nak(ctx context.Context, delay time.Duration) error
	// Forward publishes a copy of the message with these headers to where
	// dead letters or parked messages go. It returns nil only when the broker
	// keeps it. It does not ack.
	Forward(ctx context.Context, to Destination, headers []semel.Header) error
	// Extend keeps the message from others for another AckWait.
	Extend(ctx context.Context) error
	// Revoked is closed when the broker takes the message away: its handler is
	// not started any more, and a running one may end. Nil: that never happens.
	Revoked() <-chan struct{}
}

// Destination is where Forward sends a copy.
type Destination uint8

// The destinations.
const (
	DeadLetters Destination = iota + 1
	Parked
)

// String is "dead letters" or "parked".
func (d Destination) String() string {
	switch d {
	case DeadLetters:
		return "dead letters"
	case Parked:
		return "parked"
	}
	return "invalid"
}
