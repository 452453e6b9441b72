package semelnats

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/consume/driver"
	"github.com/semel-go/semel/store"
)

// delivery is one delivery of a message.
type delivery struct {
	s   *Source
	m   jetstream.Msg
	own *consume.Message
}

// Message implements driver.Delivery.
func (d *delivery) Message() *consume.Message { return d.own }

// Revoked implements driver.Delivery: NATS takes no message away.
func (d *delivery) Revoked() <-chan struct{} { return nil }

// Ack implements driver.Delivery. The server accepts an ack after AckWait, of a
// message that another member has by then. That is safe, because the outcome is
// stored.
func (d *delivery) Ack(ctx context.Context) error {
	return repeatable(d.m.DoubleAck(ctx))
}

// Nak implements driver.Delivery. It returns after the server has the message back, so
// that the next pull, also one of another member on another server of the cluster, gets
// it before the messages after it. If the answer is lost, the message may come again at
// once or after its AckWait.
func (d *delivery) Nak(ctx context.Context, delay time.Duration) error {
	text := "-NAK"
	if delay > 0 {
		text = fmt.Sprintf(`-NAK {"delay": %d}`, delay.Nanoseconds())
	}
	return d.s.request(ctx, d.m.Reply(), text)
}

// Extend implements driver.Delivery.
func (d *delivery) Extend(context.Context) error { return repeatable(d.m.InProgress()) }

// Forward implements driver.Delivery. It returns nil after a stream has stored
// the copy.
func (d *delivery) Forward(ctx context.Context, to driver.Action, headers []store.Header) error {
	subject := d.s.opt.DeadLetters
	if to == driver.Quarantine {
		subject = d.s.opt.Quarantine
	}
	return d.s.copy(ctx, subject, headers, d.own.Body)
}

// copy publishes a letter, and returns nil after a stream has stored it that keeps it.
func (s *Source) copy(ctx context.Context, subject string, headers []store.Header, body []byte) error {
	if err := s.places.Check(ctx, subject, func(ctx context.Context) error {
		return checkPlaces(ctx, s.js, s.stream, s.durable, subject)
	}); err != nil {
		return fmt.Errorf("semelnats: copy of %d bytes to %q: %w", len(body), subject, err)
	}
	m := letter(subject, s.durable, headers, body)
	_, err := s.js.PublishMsg(ctx, m)
	if tooLarge(err) && m.Header.Get(driver.LetterError) != "" {
		m.Header.Del(driver.LetterError) // usually the longest header; only people read it
		_, err = s.js.PublishMsg(ctx, m)
	}
	if err != nil {
		return fmt.Errorf("semelnats: copy of %d bytes to %q: %w", len(m.Data), subject, err)
	}
	return nil
}

// headerExceedsMaximum is a code of the server for which the client has no
// name.
const headerExceedsMaximum = 10097

// tooLarge reports whether a message was refused for its size, by the client,
// by the limit of its stream, or by the server's limit on headers.
func tooLarge(err error) bool {
	if errors.Is(err, nats.ErrMaxPayload) {
		return true
	}
	e, ok := errors.AsType[*jetstream.APIError](err)
	return ok && (e.ErrorCode == jetstream.JSErrCodeStreamMessageExceedsMaximum || e.ErrorCode == headerExceedsMaximum)
}

// repeatable treats the error that a message was settled before as success.
func repeatable(err error) error {
	if errors.Is(err, jetstream.ErrMsgAlreadyAckd) {
		return nil
	}
	return err
}
