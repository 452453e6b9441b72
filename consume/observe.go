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
	// Disposition is the decision about the message.
	Disposition driver.Disposition
	// Took is the duration of the try, in EventDecided.
	Took time.Duration
	// Err is the broker's error, in events that report one.
	Err error
}

// Kind is the kind of an Event.
type Kind uint8

// The kinds.
const (
	EventDecided       Kind = iota + 1 // a message was tried; see Disposition
	EventSettled                       // the broker knows what was decided
	EventSettleFailed                  // an ack, a nak or a copy failed; it is tried again
	EventGivenUp                       // the last try of an ack or a copy failed; the message may be redelivered
	EventReturned                      // the message was given back: it was revoked, or Serve ends
	EventExtendFailed                  // the broker may redeliver the message while its handler runs
	EventOutage                        // the store is down; no message is taken until it answers
	EventResumed                       // the store answers again
	EventReceiveFailed                 // Next or Stop of the source failed; see Err
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
