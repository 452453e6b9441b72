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
	"github.com/semel-go/semel/consume/driver"
)

// maxDeliveries begins the subject of the advisories of messages that the
// server will not deliver again.
const maxDeliveries = "$JS.EVENT.ADVISORY.CONSUMER.MAX_DELIVERIES."

// WatchMaxDeliver copies each message that the server stops to deliver, since
// its deliveries have reached the consumer's MaxDeliver, to the dead letters,
// until ctx ends. Run it beside Serve on each member: they share the work.
// When ctx ends it copies what it was told of until then, for 10 s at most, and
// returns an error that names what it could not copy.
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
	waiting, err := s.watch(ctx, sub)
	return errors.Join(err, s.finish(ctx, sub, waiting))
}

// watch copies until ctx ends, and returns what could not be copied yet.
func (s *Source) watch(ctx context.Context, sub *nats.Subscription) (waiting []advisory, _ error) {
	var again time.Time // when it is tried again
	for {
		m, err := next(ctx, sub, again)
		switch {
		case err == nil:
			a, err := read(m)
			if err != nil {
				return waiting, err
			}
			if s.rescue(ctx, &a) == nil {
				continue
			}
			if waiting = append(waiting, a); again.IsZero() {
				again = time.Now().Add(rescueAgain)
			}
		case ctx.Err() != nil:
			return waiting, nil //nolint:nilerr // an end that was asked for
		case errors.Is(err, context.DeadlineExceeded):
			waiting = s.retry(ctx, waiting)
			if again = (time.Time{}); len(waiting) > 0 {
				again = time.Now().Add(rescueAgain)
			}
		default:
			return waiting, fmt.Errorf("semelnats: advisories: %w", err)
		}
	}
}

// finishTimeout is how long the copies may take that are left at the end.
const finishTimeout = 10 * time.Second

// finish copies what is left, and what the server has sent by now, for it tells
// that to nobody else.
func (s *Source) finish(ctx context.Context, sub *nats.Subscription, waiting []advisory) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), finishTimeout)
	defer cancel()
	_ = sub.Drain() // if the connection is closed, there is nothing more to read
	var errs []error
	for {
		m, err := next(ctx, sub, time.Time{})
		if err != nil {
			break
		}
		if a, err := read(m); err != nil {
			errs = append(errs, err)
		} else {
			waiting = append(waiting, a)
		}
	}
	if waiting = s.retry(ctx, waiting); len(waiting) == 0 {
		return errors.Join(errs...)
	}
	seqs := make([]uint64, len(waiting))
	for i, a := range waiting {
		seqs[i] = a.Seq
	}
	return errors.Join(append(errs, fmt.Errorf("semelnats: %d messages of stream %q were not copied, and will not be delivered again: %v", len(seqs), s.stream, seqs))...)
}

// retry returns what still could not be copied.
func (s *Source) retry(ctx context.Context, waiting []advisory) []advisory {
	return slices.DeleteFunc(waiting, func(a advisory) bool { return s.rescue(ctx, &a) == nil })
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

// read is what an advisory says.
func read(m *nats.Msg) (a advisory, _ error) {
	if err := json.Unmarshal(m.Data, &a); err != nil || a.Seq == 0 {
		return a, fmt.Errorf("semelnats: advisory %.200q: has no sequence number: %w", m.Data, err)
	}
	return a, nil
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
	d := driver.Disposition{
		Action: driver.DeadLetter, Reason: driver.ReasonDeliveries,
		Err: fmt.Errorf("delivered %d times, which is the consumer's MaxDeliver", a.Deliveries),
	}
	return s.copy(ctx, s.opt.DeadLetters, driver.Letter(m, d, semel.Operation(s.durable)), raw.Data)
}
