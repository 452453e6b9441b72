package consume

import (
	"context"
	"fmt"
	"time"

	"github.com/semel-go/semel/consume/driver"
)

// Event is something that happened to a message or to a Serve loop.
type Event struct {
	Kind Kind
	// Message is nil for events of the loop. Read only.
	Message *Message
	// Disposition is what was decided of the message.
	Disposition driver.Disposition
	// Took is how long the try took, for EventDecided.
	Took time.Duration
	// Err is the broker's error, for the events that tell of one.
	Err error
}

// Kind is what kind of an Event.
type Kind uint8

// The kinds.
const (
	EventDecided       Kind = iota + 1 // a message was tried: see Disposition
	EventSettled                       // the broker knows: the message is off our hands
	EventSettleFailed                  // the broker did not take an ack, a nak or a dead letter; it is tried again
	EventGivenUp                       // the ack, or the letter, was tried often enough: the message may come again
	EventReturned                      // the message was given back unfinished: revoked, or shutting down
	EventExtendFailed                  // the broker may deliver the message again while it is in work
	EventOutage                        // the store is down: no message is taken until it answers
	EventResumed                       // the store answers again
	EventReceiveFailed                 // the broker is down, or refuses: see Err
)

var kindNames = [...]string{
	EventDecided: "decided", EventSettled: "settled", EventSettleFailed: "settle failed", EventGivenUp: "given up", EventReturned: "returned",
	EventExtendFailed: "extend failed", EventOutage: "outage", EventResumed: "resumed", EventReceiveFailed: "receive failed",
}

// String is the kind in words.
func (k Kind) String() string {
	if k < EventDecided || int(k) >= len(kindNames) {
		return fmt.Sprintf("Kind(%d)", uint8(k))
	}
	return kindNames[k]
}

func (c *Consumer) observe(ctx context.Context, e Event) {
	if c.opt.Observe != nil {
		c.opt.Observe(ctx, e)
	}
}
