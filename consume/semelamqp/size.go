package semelamqp

import (
	"errors"
	"fmt"
	"strings"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/semel-go/semel/consume/driver"
)

// checkNames refuses a header whose name AMQP cannot send, because the client would end the
// connection.
func checkNames(headers amqp.Table) error {
	for name := range headers {
		if len(name) > longestName {
			return fmt.Errorf("semelamqp: header %.40q…: its name has %d bytes, and AMQP takes %d; send the message with a shorter name", name, len(name), longestName)
		}
	}
	return nil
}

// fit makes a copy's headers fit into one frame, because the broker closes a
// connection that sends more. If they do not fit, it drops the error's text.
func fit(p *amqp.Publishing, frame int) error {
	const overhead = 64 // the frame, and the lengths of the properties
	limit := frame - overhead
	if err := checkNames(p.Headers); err != nil {
		return err
	}
	if frame <= 0 || size(p) <= limit {
		return nil
	}
	delete(p.Headers, driver.LetterError)
	if n := size(p); n > limit {
		return fmt.Errorf("semelamqp: a copy's headers have %d bytes, but a frame takes %d; raise frame_max, here and at the broker: %w", n, limit, errTooLarge)
	}
	return nil
}

var errTooLarge = errors.New("the message is too large")

// isTooLarge reports whether a message is too large, here or for the broker, which has no
// code for that, only a text: "PRECONDITION_FAILED - message size 134217729 is larger than
// configured max size 134217728".
func isTooLarge(err error) bool {
	e, ok := errors.AsType[*amqp.Error](err)
	return errors.Is(err, errTooLarge) || ok && e.Code == amqp.PreconditionFailed && strings.Contains(e.Reason, "message size")
}

// size is the size of the headers and properties, or a little more.
func size(p *amqp.Publishing) int {
	n := 0
	for _, s := range [...]string{p.ContentType, p.ContentEncoding, p.CorrelationId, p.ReplyTo, p.Expiration, p.MessageId, p.Type, p.UserId, p.AppId} {
		n += 1 + len(s)
	}
	return n + fieldSize(p.Headers)
}

// fieldSize is the size of a header's value.
func fieldSize(v any) int {
	const largestNumber = 9
	switch v := v.(type) {
	case string:
		return 5 + len(v)
	case []byte:
		return 5 + len(v)
	case []any:
		n := 5
		for _, e := range v {
			n += fieldSize(e)
		}
		return n
	case amqp.Table:
		n := 5
		for name, e := range v {
			n += 1 + len(name) + fieldSize(e)
		}
		return n
	}
	return largestNumber
}
