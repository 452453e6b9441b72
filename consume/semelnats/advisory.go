package semelnats

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consume"
)

// maxDeliveries begins the subject of the advisories of messages that the
// server will not deliver again.
const maxDeliveries = "$JS.EVENT.ADVISORY.CONSUMER.MAX_DELIVERIES."

// WatchMaxDeliver copies each message that the server stops to deliver, since
// its deliveries have reached the consumer's MaxDeliver, to the dead letters,
// until ctx ends. Run it beside Serve on each member: they share the work.
//
// The server says so once, and keeps no advisory: what it says while nobody
// listens is lost, though the message stays in its stream. That is why New
// refuses a MaxDeliver unless Options.MaxDeliver is set.
func (s *Source) WatchMaxDeliver(ctx context.Context) error {
	sub, err := s.js.Conn().QueueSubscribeSync(maxDeliveries+s.stream+"."+s.durable, "semel-"+s.durable)
	if err != nil {
		return fmt.Errorf("semelnats: advisories: %w", err)
	}
	defer func() { _ = sub.Unsubscribe() }() // it ends with the connection in any case
	var waiting []advisory                   // what could not be copied yet
	var again time.Time                      // when it is tried again
	for {
		m, err := next(ctx, sub, again)
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, context.DeadlineExceeded):
			waiting = slices.DeleteFunc(waiting, func(a advisory) bool { return s.rescue(ctx, &a) == nil })
			if again = (time.Time{}); len(waiting) > 0 {
				again = time.Now().Add(rescueAgain)
			}
			continue
		case err != nil:
			return fmt.Errorf("semelnats: advisories: %w", err)
		}
		var a advisory
		if err := json.Unmarshal(m.Data, &a); err != nil || a.Seq == 0 {
			return fmt.Errorf("semelnats: advisory %.200q: has no sequence number: %w", m.Data, err)
		}
		if s.rescue(ctx, &a) != nil {
			if waiting = append(waiting, a); again.IsZero() {
				again = time.Now().Add(rescueAgain)
			}
		}
	}
}

// next waits for an advisory, until a time if that is not zero.
func next(ctx context.Context, sub *nats.Subscription, until time.Time) (*nats.Msg, error) {
	if !until.IsZero() {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, until)
		defer cancel()
	}
	return sub.NextMsgWithContext(ctx)
}

// rescueAgain is the pause before copies are tried again.
const rescueAgain = time.Second

// advisory is what the server says.
type advisory struct {
	Seq        uint64 `json:"stream_seq"`
	Deliveries int    `json:"deliveries"`
}

func (s *Source) rescue(ctx context.Context, a *advisory) error {
	stream, err := s.js.Stream(ctx, s.stream)
	if err != nil {
		return err
	}
	raw, err := stream.GetMsg(ctx, a.Seq)
	switch {
	case errors.Is(err, jetstream.ErrMsgNotFound):
		return nil // the stream has dropped it since
	case err != nil:
		return err
	}
	m := &consume.Message{
		Origin:  consume.Origin{Topic: raw.Subject, Offset: int64(raw.Sequence), ID: messageID(s.stream, raw.Sequence, raw.Time)},
		Headers: headers(raw.Header), Body: raw.Data, Published: raw.Time, Deliveries: a.Deliveries,
	}
	d := consume.Disposition{
		Action: consume.DeadLetter, Reason: consume.ReasonDeliveries,
		Err: fmt.Errorf("delivered %d times, which is the consumer's MaxDeliver", a.Deliveries),
	}
	return s.copy(ctx, s.opt.DeadLetters, consume.Letter(m, d, semel.Operation(s.durable)), raw.Data)
}
