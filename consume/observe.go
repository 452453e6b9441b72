package consume

import (
	"context"
	"fmt"
	"time"

	"github.com/semel-go/semel/consume/driver"
)

// Event reports something that happened to a message or to a Serve loop.
type Event struct {
	Kind Kind
	// Message is the message that the event is about. In EventOutage, the store did not
	// answer for it. It is nil in EventResumed and EventReceiveFailed. Do not change it.
	Message *Message
	// Disposition is the decision after the last try of the message; zero if there is
	// none. Its Err is the error of the run.
	Disposition driver.Disposition
	// Took is the duration of the try, in EventDecided.
	Took time.Duration
	// Err is the broker's error, in EventSettleFailed, EventExtendFailed and
	// EventReceiveFailed; the store's error in EventOutage; driver.ErrGone in
	// EventGivenUp if the broker has taken the message away. Otherwise it is nil.
	Err error
}

// Kind is the kind of an Event.
type Kind uint8

// The kinds.
const (
	EventDecided       Kind = iota + 1 // a message was tried; see Disposition
	EventSettled                       // the broker has accepted the ack; a retry has no such event
	EventSettleFailed                  // an ack, a nak or the publication of a copy failed; see Err
	EventGivenUp                       // the ack or the copy is not tried again; the message may be redelivered
	EventReturned                      // the message was given back: it was revoked, its ack failed, or Serve ends
	EventExtendFailed                  // the broker may redeliver the message while it is here
	EventOutage                        // the store does not answer; no message is taken until it does
	EventResumed                       // the store answers again
	EventReceiveFailed                 // the source failed to give messages (it is asked again after a pause) or to stop; see Err
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
