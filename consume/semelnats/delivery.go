package semelnats

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/consume/driver"
)

// delivery is one delivery of a message.
type delivery struct {
	s      *Source
	m      jetstream.Msg
	own    *consume.Message
	copied atomic.Pointer[string] // why; nil: it was not
}

// Message implements driver.Delivery.
func (d *delivery) Message() *consume.Message { return d.own }

// Revoked implements driver.Delivery: NATS takes nothing away.
func (d *delivery) Revoked() <-chan struct{} { return nil }

// Ack implements driver.Delivery. The server accepts an ack that comes after
// AckWait, of a message that another member has by then: that does no harm,
// for the outcome is stored.
func (d *delivery) Ack(ctx context.Context) error {
	if why := d.copied.Load(); why != nil && d.s.opt.Terminate {
		return once(d.m.TermWithReason(*why))
	}
	return once(d.m.DoubleAck(ctx))
}

// Nak implements driver.Delivery. It is not answered: if it is lost, the
// message comes again when its AckWait is over.
func (d *delivery) Nak(_ context.Context, delay time.Duration) error {
	if delay <= 0 {
		return d.m.Nak()
	}
	return d.m.NakWithDelay(delay)
}

// Extend implements driver.Delivery.
func (d *delivery) Extend(context.Context) error { return once(d.m.InProgress()) }

// Forward implements driver.Delivery. It returns nil when a stream has the
// copy.
func (d *delivery) Forward(ctx context.Context, to driver.Action, headers []semel.Header) error {
	subject := d.s.opt.DeadLetters
	if to == driver.Quarantine {
		subject = d.s.opt.Quarantine
	}
	if err := d.s.copy(ctx, subject, headers, d.own.Body); err != nil {
		return err
	}
	why := ""
	for _, h := range headers {
		if h.Name == driver.LetterReason {
			why = h.Value
		}
	}
	d.copied.Store(&why)
	return nil
}

// copy publishes a letter, and returns nil when a stream has it.
func (s *Source) copy(ctx context.Context, subject string, headers []semel.Header, body []byte) error {
	m := letter(subject, s.durable, headers, body)
	_, err := s.js.PublishMsg(ctx, m)
	if tooLarge(err) && m.Header.Get(driver.LetterError) != "" {
		m.Header.Del(driver.LetterError) // the longest, and for people only
		_, err = s.js.PublishMsg(ctx, m)
	}
	if err != nil {
		return fmt.Errorf("semelnats: copy of %d bytes to %q: %w", len(m.Data), subject, err)
	}
	return nil
}

// headerExceedsMaximum is the server's code, which the client has no name for.
const headerExceedsMaximum = 10097

// tooLarge reports whether a message is refused for its size: by the client, by
// the limit of its stream, or by that of all streams on headers.
func tooLarge(err error) bool {
	if errors.Is(err, nats.ErrMaxPayload) {
		return true
	}
	e, ok := errors.AsType[*jetstream.APIError](err)
	return ok && (e.ErrorCode == jetstream.JSErrCodeStreamMessageExceedsMaximum || e.ErrorCode == headerExceedsMaximum)
}

// once takes it for success that the server was told before.
func once(err error) error {
	if errors.Is(err, jetstream.ErrMsgAlreadyAckd) {
		return nil
	}
	return err
}
