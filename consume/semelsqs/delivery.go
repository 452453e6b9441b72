package semelsqs

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"
	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/consume/driver"
	"github.com/semel-go/semel/store"
)

// delivery is one delivery of a message.
type delivery struct {
	s      *Source
	raw    types.Message
	own    *consume.Message
	limit  time.Time // until when SQS can hide it
	change *entry    // the last change of its visibility; nil: there was none
}

// limitMargin is how much earlier than the limit of SQS a visibility time-out ends, so that a
// request that waits, or is slow, is not refused.
const limitMargin = 30 * time.Second

// delivery is the delivery of a message that was received at a time, or later.
func (s *Source) delivery(m types.Message, received time.Time) *delivery {
	d := &delivery{s: s, raw: m, own: Decode(s.name, &m), limit: received.Add(maxVisibility - limitMargin)}
	d.own.Invalid = unreadable(&m)
	switch {
	case s.opt.OrderKey != nil:
		d.own.OrderKey = s.opt.OrderKey(d.own)
	case s.isFIFO():
		d.own.OrderKey = d.group()
	}
	return d
}

func (d *delivery) group() string {
	return d.raw.Attributes[string(types.MessageSystemAttributeNameMessageGroupId)]
}

// Message implements driver.Delivery.
func (d *delivery) Message() *consume.Message { return d.own }

// Revoked implements driver.Delivery: SQS takes no message away.
func (d *delivery) Revoked() <-chan struct{} { return nil }

// Ack implements driver.Delivery.
func (d *delivery) Ack(ctx context.Context) error {
	return d.s.deletes.start(aws.ToString(d.raw.ReceiptHandle), 0).wait(ctx)
}

// Nak implements driver.Delivery. SQS cannot hide a message for longer than 12 hours after
// its receive, so that a longer delay ends then.
func (d *delivery) Nak(ctx context.Context, delay time.Duration) error {
	return d.setVisibility(ctx, min(delay, time.Until(d.limit)))
}

// Extend implements driver.Delivery.
func (d *delivery) Extend(ctx context.Context) error {
	left := time.Until(d.limit)
	if left <= 0 {
		return fmt.Errorf("semelsqs: message %s: was received 12 hours ago, which is as long as SQS hides a message; it will be received again while it is here", d.own.Origin.ID)
	}
	return d.setVisibility(ctx, min(d.s.visibility(), left))
}

// setVisibility changes the visibility, in whole seconds, rounded up. It waits for the answer
// to an earlier change whose caller has not waited, because SQS could take the two in the other
// order.
func (d *delivery) setVisibility(ctx context.Context, after time.Duration) error {
	if d.change != nil {
		select {
		case <-d.change.done:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	seconds := int32((max(0, after) + time.Second - 1) / time.Second)
	d.change = d.s.changes.start(aws.ToString(d.raw.ReceiptHandle), seconds)
	return d.change.wait(ctx)
}

// Forward implements driver.Delivery. It returns nil after the queue has the copy.
func (d *delivery) Forward(ctx context.Context, to driver.Action, headers []store.Header) error {
	name := d.s.opt.DeadLetters
	if to == driver.Quarantine {
		name = d.s.opt.Quarantine
	}
	err := d.s.copy(ctx, d, name, headers)
	if isTooLarge(err) {
		headers = slices.DeleteFunc(slices.Clone(headers), func(h store.Header) bool { return h.Name == driver.LetterError })
		err = d.s.copy(ctx, d, name, headers)
	}
	if isTooLarge(err) {
		err = fmt.Errorf("the copy is larger than the queue's MaximumMessageSize; raise it (SQS takes up to 1048576 bytes), or delete the message by hand: %w", err)
	}
	if err != nil {
		return fmt.Errorf("semelsqs: copy of message %s, %d bytes, to queue %q: %w", d.own.Origin.ID, len(d.own.Body), name, err)
	}
	return nil
}

// copy sends a letter. A FIFO queue drops a letter that is sent again within five
// minutes, because its deduplication ID is the letter's ID.
func (s *Source) copy(ctx context.Context, d *delivery, queue string, headers []store.Header) error {
	url, err := s.url(ctx, queue)
	if err != nil {
		return err
	}
	in := &sqs.SendMessageInput{QueueUrl: &url}
	text, attributes := Encode(letterHeaders(headers), d.own.Body)
	in.MessageBody, in.MessageAttributes = &text, attributes
	if isFIFOName(queue) {
		group, id := d.group(), ""
		if group == "" {
			group = "semel"
		}
		for _, h := range headers {
			if h.Name == driver.LetterID {
				id = h.Value
			}
		}
		in.MessageGroupId, in.MessageDeduplicationId = &group, &id
	}
	_, err = s.client.SendMessage(ctx, in)
	return err
}

// isTooLarge reports whether SQS refused a message for its size. It has no code for
// that, only a text: "One or more parameters are invalid. Reason: Message must be
// shorter than 262144 bytes."
func isTooLarge(err error) bool {
	e, ok := errors.AsType[smithy.APIError](err)
	return ok && (e.ErrorCode() == "MessageTooLong" || strings.Contains(e.ErrorMessage(), "must be shorter than"))
}

// deleteBatch deletes the messages of entries.
func (s *Source) deleteBatch(ctx context.Context, es []*entry) {
	in := &sqs.DeleteMessageBatchInput{QueueUrl: s.queueURL()}
	for i, e := range es {
		in.Entries = append(in.Entries, types.DeleteMessageBatchRequestEntry{Id: aws.String(strconv.Itoa(i)), ReceiptHandle: &e.handle})
	}
	out, err := s.client.DeleteMessageBatch(ctx, in)
	if err != nil {
		failAll(es, err)
		return
	}
	answered := make([]string, 0, len(es))
	for _, r := range out.Successful {
		answered = append(answered, aws.ToString(r.Id))
	}
	fail(es, answered, out.Failed)
}

// changeBatch changes the visibility of the messages of entries.
func (s *Source) changeBatch(ctx context.Context, es []*entry) {
	in := &sqs.ChangeMessageVisibilityBatchInput{QueueUrl: s.queueURL()}
	for i, e := range es {
		in.Entries = append(in.Entries, types.ChangeMessageVisibilityBatchRequestEntry{
			Id: aws.String(strconv.Itoa(i)), ReceiptHandle: &e.handle, VisibilityTimeout: e.seconds,
		})
	}
	out, err := s.client.ChangeMessageVisibilityBatch(ctx, in)
	if err != nil {
		failAll(es, err)
		return
	}
	answered := make([]string, 0, len(es))
	for _, r := range out.Successful {
		answered = append(answered, aws.ToString(r.Id))
	}
	fail(es, answered, out.Failed)
}

func failAll(es []*entry, err error) {
	for _, e := range es {
		e.err = fmt.Errorf("semelsqs: %w", err)
	}
}

// errNoAnswer is the error of an entry that a batch's answer leaves out.
var errNoAnswer = errors.New("semelsqs: the answer to a batch leaves the message out")

// fail sets the errors of the entries of a batch that did not succeed.
func fail(es []*entry, answered []string, failed []types.BatchResultErrorEntry) {
	for i, e := range es {
		id := strconv.Itoa(i)
		if slices.Contains(answered, id) {
			continue
		}
		e.err = errNoAnswer
		for _, f := range failed {
			if aws.ToString(f.Id) == id {
				e.err = entryError(f)
			}
		}
	}
}

// entryError is ErrGone if the receipt handle is not valid any more.
func entryError(f types.BatchResultErrorEntry) error {
	code, text := aws.ToString(f.Code), aws.ToString(f.Message)
	err := fmt.Errorf("semelsqs: %s: %s", code, text)
	if strings.Contains(text, "VisibilityTimeout") { // it is about the time-out, and not about the message
		return err
	}
	switch code {
	case "ReceiptHandleIsInvalid", "InvalidParameterValue", "InvalidReceiptHandle", "MessageNotInflight", "AWS.SimpleQueueService.MessageNotInflight":
		return fmt.Errorf("%w: %w", driver.ErrGone, err)
	}
	return err
}
