package outbox

import (
	"context"
	"fmt"
	"log/slog"
	"time"
)

// Event is something that happened to a message or to a publisher.
type Event struct {
	Kind Kind
	// Entry is the message; nil for an event of the publisher. Read only.
	Entry *Entry
	// Lane is the lane of the event, or -1.
	Lane int
	// Took is the time from the message's commit, or rather Written, to its end, in
	// EventSent, by the clocks of the database and of this process.
	Took time.Duration
	// Delay is how long the order key waits, in EventFailed.
	Delay time.Duration
	// Err is the error of the sink or of the store.
	Err error
}

// Kind is the kind of an Event.
type Kind uint8

// The kinds.
const (
	EventSent        Kind = iota + 1 // the destination has the message
	EventFailed                      // the sink did not send the message; its order key waits
	EventQuarantined                 // the message is in the quarantine; its order key stops
	EventClaimed                     // the publisher has got a lane
	EventLost                        // the publisher has lost a lane: its lease was over
	EventReleased                    // the publisher has given a lane back
	EventStoreFailed                 // the store did not answer; the publisher tries again
)

var kindNames = [...]string{
	EventSent: "sent", EventFailed: "failed", EventQuarantined: "quarantined", EventClaimed: "lane claimed", EventLost: "lane lost",
	EventReleased: "lane released", EventStoreFailed: "store failed",
}

// String is the kind in words.
func (k Kind) String() string {
	if k < EventSent || int(k) >= len(kindNames) {
		return fmt.Sprintf("Kind(%d)", uint8(k))
	}
	return kindNames[k]
}

func (k Kind) level() slog.Level {
	switch k {
	case EventFailed, EventQuarantined, EventLost, EventStoreFailed:
		return slog.LevelWarn
	case EventSent:
		return slog.LevelDebug
	}
	return slog.LevelInfo
}

// LogEvents makes an Options.Observe that logs each event: failures as warnings, lanes
// as information, sent messages for debugging. It logs no order key and no body. Nil:
// slog.Default().
func LogEvents(l *slog.Logger) func(context.Context, Event) {
	if l == nil {
		l = slog.Default()
	}
	return func(ctx context.Context, e Event) {
		level := e.Kind.level()
		if !l.Enabled(ctx, level) {
			return
		}
		var attrs []slog.Attr
		if e.Lane >= 0 {
			attrs = append(attrs, slog.Int("lane", e.Lane))
		}
		if m := e.Entry; m != nil {
			attrs = append(attrs, slog.Int64("position", m.Position), slog.String("topic", m.Topic), slog.Int("attempts", m.Attempts))
		}
		if e.Took > 0 {
			attrs = append(attrs, slog.Duration("took", e.Took))
		}
		if e.Delay > 0 {
			attrs = append(attrs, slog.Duration("delay", e.Delay))
		}
		if e.Err != nil {
			attrs = append(attrs, slog.Any("error", e.Err))
		}
		l.LogAttrs(ctx, level, "semel outbox: "+e.Kind.String(), attrs...)
	}
}
