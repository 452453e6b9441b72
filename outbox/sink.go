package outbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/semel-go/semel/internal/callback"
	"github.com/semel-go/semel/internal/handlererr"
)

// Sink sends messages to a destination. It is safe for concurrent use.
type Sink interface {
	// Publish sends messages, and calls answer once for each of them, with its index, as
	// soon as its end is known: nil if the destination keeps the message, Poison(err) if
	// it never will, and any other error if it may later, such as RetryAfter(err, pause).
	// It returns after the last answer. Answer may be called from several goroutines, and may wait a moment.
	//
	// The messages of one Order are in their order, and other calls have none of it at
	// the same time. If a message is not sent, Publish must not send a later one of its
	// Order. Before it sends a message, it looks at ctx.Err, which is not nil after the
	// lease has ended, or after a lane of the messages was given to another publisher.
	// EachInTurn does all that for a sink that sends one message at a time. If Publish
	// panics, the messages without an answer have failed.
	Publish(ctx context.Context, messages []Message, answer func(i int, err error))
}

// poison is an error of a message that the destination will never accept.
type poison struct{ error }

func (p poison) Unwrap() error { return p.error }

// Poison marks an error of a sink: the destination will not accept this message, however
// often it is sent. The message goes to the quarantine.
func Poison(err error) error {
	if err == nil {
		return nil
	}
	return poison{handlererr.Readable(err)}
}

// IsPoison reports whether an error is marked by Poison.
func IsPoison(err error) bool {
	_, ok := errors.AsType[poison](err)
	return ok
}

// retryLater is an error of a message that the destination wants no earlier than after a time.
type retryLater struct {
	error
	after time.Duration
}

func (r retryLater) Unwrap() error { return r.error }

// RetryAfter marks an error of a sink: the destination has asked for a pause of this
// message, such as with the header Retry-After of HTTP. The order key waits as long, but no
// longer than LongestDelay, and at least Options.Backoff.
func RetryAfter(err error, pause time.Duration) error {
	if err == nil || pause <= 0 {
		return err
	}
	return retryLater{handlererr.Readable(err), pause}
}

// delayOf is the delay after a failed attempt whose backoff is given.
func delayOf(err error, backoff time.Duration) time.Duration {
	r, _ := errors.AsType[retryLater](err)
	return max(backoff, min(r.after, LongestDelay))
}

// errBehind is the answer for a message whose earlier one was not sent.
var errBehind = errors.New("outbox: an earlier message of the order key was not sent")

// Limits limits EachInTurn. Zero fields limit nothing.
type Limits struct {
	// Parallel is how many messages are sent at once.
	Parallel int
	// Time is how long send may take for one message. A message that is not answered in time
	// has failed, and may arrive all the same.
	Time time.Duration
	// Hint is the next step. The error of such a message has it.
	Hint string
}

// EachInTurn is Publish for a sink that sends one message at a time: it calls send for
// many messages at once, but never for two of one order key, and stops a key after its
// first error. If send does something else before it sends the message, it asks ctx.Err
// again, because a lease can end without Done. If send panics, the message has failed.
func EachInTurn(ctx context.Context, messages []Message, l Limits, answer func(i int, err error), send func(ctx context.Context, m *Message) error) {
	answer = recovering(ctx, answer)
	keys := map[int64][]int{}
	var order []int64
	for i := range messages {
		key := messages[i].Order()
		if keys[key] == nil {
			order = append(order, key)
		}
		keys[key] = append(keys[key], i)
	}
	queue := make(chan []int, len(order)) // holds all, so that a worker that ends early blocks nobody
	for _, key := range order {
		queue <- keys[key]
	}
	close(queue)
	var workers sync.WaitGroup
	parallel := len(order)
	if l.Parallel > 0 {
		parallel = min(parallel, l.Parallel)
	}
	for range parallel {
		workers.Go(func() {
			for indexes := range queue {
				inTurn(ctx, messages, indexes, answer, func(ctx context.Context, m *Message) error {
					return l.Within(ctx, func(ctx context.Context) error { return send(ctx, m) })
				})
			}
		})
	}
	workers.Wait()
}

// recovering is answer, which may be a function of another sink, without its panics.
func recovering(ctx context.Context, answer func(i int, err error)) func(i int, err error) {
	return func(i int, err error) {
		callback.Report(ctx, "outbox: the answer function of a sink", func() { answer(i, err) })
	}
}

// sinkName names a sink that has panicked.
const sinkName = "outbox: the sink"

// inTurn sends the messages of one order key.
func inTurn(ctx context.Context, messages []Message, indexes []int, answer func(i int, err error), send func(ctx context.Context, m *Message) error) {
	var failed error
	for _, i := range indexes {
		switch {
		case failed != nil:
		case ctx.Err() != nil:
			failed = ctx.Err()
		default:
			if failed = callback.Do(ctx, sinkName, func() error { return send(ctx, &messages[i]) }); failed != nil {
				answer(i, failed)
				failed = errBehind
				continue
			}
		}
		answer(i, failed)
	}
}

// limitedContext is a context with a time limit. It asks the publisher's context, too,
// because a lease can end without Done.
type limitedContext struct {
	context.Context //nolint:containedctx // it is one
	parent          context.Context
}

// Err implements context.Context.
func (c limitedContext) Err() error { return cmp.Or(c.parent.Err(), c.Context.Err()) }

// Within calls send with the time limit, as EachInTurn does. It is for a sink whose messages wait
// for something before the time begins: such a sink calls EachInTurn without Limits.Time.
func (l Limits) Within(ctx context.Context, send func(ctx context.Context) error) error {
	if l.Time <= 0 {
		return send(ctx)
	}
	limited, cancel := context.WithTimeout(ctx, l.Time)
	defer cancel()
	err := send(limitedContext{limited, ctx})
	if err == nil || ctx.Err() != nil || limited.Err() == nil || IsPoison(err) {
		return err
	}
	late := fmt.Sprintf("outbox: no answer within %v", l.Time)
	if l.Hint != "" {
		late += "; " + l.Hint
	}
	return fmt.Errorf("%s: %w", late, err)
}

// ByTopic is a sink that sends each message to the sink of its topic, and a message with
// another topic to the sink of "". If there is none, the message is poison. Each topic has a
// call of its own, and so have the messages with other topics.
func ByTopic(sinks map[string]Sink) Sink { return byTopic(sinks) }

type byTopic map[string]Sink

// Publish implements Sink.
func (t byTopic) Publish(ctx context.Context, messages []Message, answer func(i int, err error)) {
	answer = recovering(ctx, answer)
	indexes := map[string][]int{} // by topic; "" for topics without a sink
	for i := range messages {
		topic := messages[i].Topic
		if t[topic] == nil {
			topic = ""
		}
		indexes[topic] = append(indexes[topic], i)
	}
	var all sync.WaitGroup
	for topic, mine := range indexes {
		sink := t[topic]
		if sink == nil {
			for _, i := range mine {
				answer(i, Poison(fmt.Errorf("outbox: ByTopic has no sink for topic %q", messages[i].Topic)))
			}
			continue
		}
		part := make([]Message, len(mine))
		for n, i := range mine {
			part[n] = messages[i]
		}
		all.Go(func() { publishPart(ctx, sink, part, func(n int, err error) { answer(mine[n], err) }) })
	}
	all.Wait()
}

// publishPart calls a sink on a goroutine. If the sink panics, each of its messages that has no
// answer gets one at once, and does not wait for the other sinks.
func publishPart(ctx context.Context, sink Sink, messages []Message, answer func(i int, err error)) {
	answered := make([]atomic.Bool, len(messages))
	once := func(i int, err error) {
		if !answered[i].Swap(true) {
			answer(i, err)
		}
	}
	err := callback.Do(ctx, sinkName, func() error { sink.Publish(ctx, messages, once); return nil })
	for i := range messages {
		if err != nil {
			once(i, err)
		}
	}
}
