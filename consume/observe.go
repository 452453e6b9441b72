package consume

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/semel-go/semel/consume/driver"
	"github.com/semel-go/semel/internal/callback"
)

// Event reports something that happened to a message or to a Serve loop.
type Event struct {
	Kind Kind
	// Message is the message that the event is about. In EventOutage, the store did not
	// answer for it. It is nil in EventResumed and EventReceiveFailed. Do not change it.
	Message *Message
	// Disposition is the decision after the last try of the message. Its Err is the
	// error of the Runner. The Disposition is zero in EventResumed, EventReceiveFailed
	// and EventExtendFailed, and if the message was not tried.
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
	EventExtendFailed                  // the broker did not prolong the delivery, and may redeliver the message while it is here
	EventOutage                        // the store does not answer; no message is taken until it does
	EventResumed                       // the store answers again
	EventReceiveFailed                 // the source failed to give messages, and is asked again after a pause; or it failed to stop; see Err
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
	callback.Report(ctx, "consume: Observe", func() { c.opt.Observe(ctx, e) })
}

// level says how important an event is for an operator.
func (e *Event) level() slog.Level {
	switch e.Kind {
	case EventDecided:
		if a := e.Disposition.Action; a == driver.DeadLetter || a == driver.Quarantine || e.Disposition.Reason == driver.ReasonRejected {
			return slog.LevelWarn
		}
	case EventExtendFailed, EventGivenUp, EventOutage, EventReceiveFailed:
		return slog.LevelWarn
	case EventResumed:
		return slog.LevelInfo
	case EventSettled, EventSettleFailed, EventReturned:
	}
	return slog.LevelDebug
}

// LogEvents makes an Options.Observe that logs each event. It logs as warnings: messages
// for the dead letters or the quarantine, a message that stops the Consumer, and the kinds
// EventExtendFailed, EventGivenUp, EventOutage and EventReceiveFailed. It logs EventResumed as information,
// and all other events for debugging. A line names the message by its topic, the broker's
// ID and, like the lines of semel.LogEvents, the operation, the tenant and the first 8
// digits of the key's hash (see Message.Record). If l is nil, LogEvents uses slog.Default().
func LogEvents(l *slog.Logger) func(context.Context, Event) {
	return func(ctx context.Context, e Event) {
		log, level := l, e.level()
		if log == nil {
			log = slog.Default()
		}
		if !log.Enabled(ctx, level) {
			return
		}
		var attrs []slog.Attr
		if m := e.Message; m != nil {
			attrs = append(attrs, slog.String("topic", m.Origin.Topic))
			if m.Origin.ID != "" {
				attrs = append(attrs, slog.String("id", m.Origin.ID))
			}
			if k := m.Record; k.Value != "" {
				attrs = append(attrs, slog.String("operation", k.Operation), slog.String("tenant", k.Tenant), slog.String("key", k.Short()))
			}
		}
		if d := &e.Disposition; d.Reason != "" {
			attrs = append(attrs, slog.String("action", d.Action.String()), slog.String("reason", string(d.Reason)), slog.Int("attempt", d.Attempt))
		}
		if err := cmp.Or(e.Err, e.Disposition.Err); err != nil {
			attrs = append(attrs, slog.Any("error", err))
		}
		log.LogAttrs(ctx, level, "semel: message "+e.Kind.String(), attrs...)
	}
}
