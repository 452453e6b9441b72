package semelnats

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/consume/driver"
)

// maxDeliveries is the prefix of the advisories about messages that the server
// will not deliver again.
const maxDeliveries = "$JS.EVENT.ADVISORY.CONSUMER.MAX_DELIVERIES."

// WatchMaxDeliver copies messages to the dead letters that the server does not
// deliver any more, because their deliveries have reached the consumer's
// MaxDeliver. Run it beside Serve on each member; the members share the work.
// When ctx ends, it copies for up to 10 s the messages whose advisories have
// arrived, and its error names the messages that it could not copy.
//
// The server sends each advisory once and keeps none. An advisory that no
// member receives is lost, though the message stays in its stream. That is why
// New refuses a MaxDeliver unless Options.MaxDeliver is set.
func (s *Source) WatchMaxDeliver(ctx context.Context) error {
	sub, err := s.js.Conn().QueueSubscribeSync(maxDeliveries+s.stream+"."+s.durable, "semel-"+s.durable)
	if err != nil {
		return fmt.Errorf("semelnats: advisories: %w", err)
	}
	defer func() { _ = sub.Unsubscribe() }() // it ends with the connection in any case
	waiting, err := s.watch(ctx, sub)
	return errors.Join(err, s.finish(ctx, sub, waiting))
}

// watch copies until ctx ends, and returns the advisories whose copies failed.
func (s *Source) watch(ctx context.Context, sub *nats.Subscription) (waiting []advisory, _ error) {
	var again time.Time // the time of the next try
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
			return waiting, nil //nolint:nilerr // the caller ended it
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

// finishTimeout is how long the last copies may take.
const finishTimeout = 10 * time.Second

// finish copies the rest, and the messages whose advisories have arrived,
// because no other member receives them.
func (s *Source) finish(ctx context.Context, sub *nats.Subscription, waiting []advisory) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), finishTimeout)
	defer cancel()
	_ = sub.Drain() // on a closed connection there is nothing to drain
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
	return errors.Join(append(errs, fmt.Errorf("semelnats: %d messages of stream %q were not copied to the dead letters, and the server will not deliver them again; copy them by hand: %v", len(seqs), s.stream, seqs))...)
}

// retry returns the advisories whose copies failed again.
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

// read decodes an advisory.
func read(m *nats.Msg) (a advisory, _ error) {
	if err := json.Unmarshal(m.Data, &a); err != nil || a.Seq == 0 {
		return a, fmt.Errorf("semelnats: advisory %.200q: has no sequence number: %w", m.Data, err)
	}
	return a, nil
}

// rescueAgain is the pause between two tries of a copy.
const rescueAgain = time.Second

// advisory is the server's notice about a message at its limit.
type advisory struct {
	Seq        uint64 `json:"stream_seq"`
	Deliveries int    `json:"deliveries"`
}

func (s *Source) rescue(ctx context.Context, a *advisory) error {
	raw, err := s.stored(ctx, a.Seq)
	switch {
	case errors.Is(err, nats.ErrMsgNotFound):
		return nil // the stream has deleted it
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
	return s.copy(ctx, s.opt.DeadLetters, driver.Letter(m, d, s.durable), raw.Data)
}

// stored reads a message of the stream. With AllowDirect, jetstream.Stream.GetMsg reads the
// message's own headers as the server's answer: a message without a body and with the header
// Status: 404 would count as deleted. This request is never direct.
func (s *Source) stored(ctx context.Context, seq uint64) (*nats.RawStreamMsg, error) {
	var prefix []nats.JSOpt
	switch o := s.js.Options(); {
	case o.Domain != "":
		prefix = append(prefix, nats.Domain(o.Domain))
	case o.APIPrefix != "":
		prefix = append(prefix, nats.APIPrefix(o.APIPrefix))
	}
	js, err := s.js.Conn().JetStream(prefix...)
	if err != nil {
		return nil, err
	}
	return js.GetMsg(s.stream, seq, nats.Context(ctx))
}
