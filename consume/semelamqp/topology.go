package semelamqp

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/bits"
	"strconv"
	"strings"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// The shortest and the longest delay of a retry by the broker. Each level is
// twice the one before, and has its own queue: messages expire at the head of a
// queue only, so that in one queue a long delay would hold up the short ones.
const (
	firstLevel = 250 * time.Millisecond
	levels     = 20
	lastLevel  = firstLevel << (levels - 1) // 36 h
)

// level returns the shortest level that is not shorter than a delay, or the longest one. A
// retry must not come before the Retry-After of a handler's error.
func level(d time.Duration) time.Duration {
	if d <= firstLevel {
		return firstLevel
	}
	if d >= lastLevel {
		return lastLevel
	}
	return firstLevel << bits.Len64(uint64((d-1)/firstLevel))
}

func retryName(queue string, l time.Duration) string { return queue + ".retry." + l.String() }

// queue describes a queue that a Source needs.
type queue struct {
	name string
	args amqp.Table
	// exact: a queue with other arguments is an error.
	exact bool
	// make: make the queue if it is missing.
	make bool
	// exchange takes the messages, with the name as their routing key. Empty: the
	// default exchange, which gives them to the queue.
	exchange string
}

// topology describes the queues of a Source.
type topology struct {
	name string
	opt  *Options
	// unlimited: the broker has a default limit of deliveries, which -1 lifts.
	unlimited bool
}

// consumed is the queue that messages come from. Messages that the broker
// itself drops go to the dead letters.
func (t *topology) consumed() queue {
	args := t.pass("", t.opt.DeadLetters)
	if t.opt.DeliveryLimit > 0 {
		args["x-delivery-limit"] = int64(t.opt.DeliveryLimit)
	} else if t.opt.Kind == Quorum && t.unlimited {
		args["x-delivery-limit"] = int64(-1) // since version 4 the default is 20
	}
	if t.opt.SingleActive {
		args[amqp.SingleActiveConsumerArg] = true
	}
	return queue{name: t.name, args: args, exact: true, make: t.opt.Declare == DeclareAll}
}

// retry is the queue in which a message waits for its retry.
func (t *topology) retry(l time.Duration) queue {
	args := t.pass("", t.name)
	args[amqp.QueueMessageTTLArg] = l.Milliseconds()
	return queue{name: retryName(t.name, l), args: args, exact: true, make: t.opt.Declare != DeclareNothing}
}

// letters is a queue for copies. If an operator limits its length, by a policy, it refuses
// copies instead of dropping those that it has confirmed: the argument counts more than the
// policy's overflow. AMQP shows no policy, so that the Source cannot look for one.
func (t *topology) letters(name string) queue {
	args := amqp.Table{amqp.QueueTypeArg: string(t.opt.Kind), amqp.QueueOverflowArg: amqp.QueueOverflowRejectPublish}
	return queue{name: name, args: args, make: t.opt.Declare != DeclareNothing}
}

// pass returns the arguments of a queue that passes on the messages that it
// drops. A quorum queue keeps a message until the next queue has it.
func (t *topology) pass(exchange, key string) amqp.Table {
	args := amqp.Table{amqp.QueueTypeArg: string(t.opt.Kind), "x-dead-letter-exchange": exchange, "x-dead-letter-routing-key": key}
	if t.opt.Kind == Quorum {
		args["x-dead-letter-strategy"] = "at-least-once"
		args[amqp.QueueOverflowArg] = amqp.QueueOverflowRejectPublish // at-least-once requires it
	}
	return args
}

// declare makes, or looks for, every queue that must exist from the start. The error names
// all that are missing.
func (t *topology) declare(conn *amqp.Connection) error {
	t.unlimited = limitsDeliveries(conn)
	var missing []error
	for _, q := range []queue{t.letters(t.opt.DeadLetters), t.letters(t.opt.Quarantine), t.consumed()} {
		switch err := q.ensure(conn); {
		case is(err, amqp.NotFound):
			missing = append(missing, err)
		case err != nil:
			return errors.Join(append(missing, err)...)
		}
	}
	return errors.Join(missing...)
}

// ensure looks for the queue, and makes it if make is set.
func (q *queue) ensure(conn *amqp.Connection) error {
	if !q.exact || !q.make {
		err := q.on(conn, func(ch *amqp.Channel) error {
			_, err := ch.QueueDeclarePassive(q.name, true, false, false, false, nil)
			return err
		})
		switch {
		case err == nil:
			return nil
		case !is(err, amqp.NotFound):
			return fmt.Errorf("semelamqp: queue %q: %w", q.name, err)
		case !q.make:
			return fmt.Errorf("semelamqp: queue %q: does not exist; declare it with: %s, or see Options.Declare (declare=all in an address of semel deliver): %w", q.name, q.command(), err)
		}
	}
	err := q.on(conn, func(ch *amqp.Channel) error {
		_, err := ch.QueueDeclare(q.name, true, false, false, false, q.args)
		return err
	})
	switch {
	case is(err, amqp.PreconditionFailed):
		return fmt.Errorf("semelamqp: queue %q: exists with other arguments than %v, and a queue keeps its arguments; empty it, delete it with rabbitmqadmin delete queue name=%s, and let it be made again, or take it as it is (Options.Declare, or declare=copies in an address; see also Options.Kind): %w", q.name, q.args, q.name, err)
	case err != nil:
		return fmt.Errorf("semelamqp: queue %q: %w", q.name, err)
	}
	return nil
}

// command is the command that makes the queue.
func (q *queue) command() string {
	args, _ := json.Marshal(q.args) // texts and numbers
	return fmt.Sprintf("rabbitmqadmin declare queue name=%s durable=true arguments='%s'", q.name, args)
}

// on uses a channel of its own, because an error closes the channel.
func (q *queue) on(conn *amqp.Connection, f func(ch *amqp.Channel) error) error {
	ch, err := conn.Channel()
	if err != nil {
		return err
	}
	defer func() { _ = ch.Close() }() // its effects stay
	return f(ch)
}

// is reports whether an error is the broker's, with this code.
func is(err error, code int) bool {
	e, ok := errors.AsType[*amqp.Error](err)
	return ok && e.Code == code
}

// limitsDeliveries reports whether the broker limits the deliveries of a quorum
// queue by default, as RabbitMQ does since version 4.
func limitsDeliveries(conn *amqp.Connection) bool {
	version, _ := conn.Properties["version"].(string)
	major, _, _ := strings.Cut(version, ".")
	n, err := strconv.Atoi(major)
	return err == nil && n >= 4
}
