package semelamqp

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	amqp "github.com/rabbitmq/amqp091-go"
)

var (
	errUnroutable = errors.New("no queue takes it")
	errRefused    = errors.New("the broker refused it: its queue is full, or in trouble; see its limits with: rabbitmqctl list_queues name messages policy arguments")
)

// outlet is one connection for copies.
type outlet struct {
	conn     *amqp.Connection
	blocked  atomic.Pointer[string] // the broker's reason; nil: not blocked
	making   places                 // one while a queue is made
	channels places                 // one for each channel in use, so that no copy fails because the channels are used up

	mu    sync.Mutex
	made  map[string]bool // queues that exist, as far as is known
	spare []*copyChannel
}

// copyChannel is a channel for one copy at a time.
type copyChannel struct {
	ch      *amqp.Channel
	returns chan amqp.Return
	closed  chan *amqp.Error
}

func newOutlet(conn *amqp.Connection) *outlet {
	channels := max(1, int(conn.Config.ChannelMax)-1) // one is for making a queue
	o := &outlet{conn: conn, making: places{limit: 1}, channels: places{limit: channels}, made: map[string]bool{}}
	news := conn.NotifyBlocked(make(chan amqp.Blocking, 1))
	go func() {
		for b := range news {
			if b.Active {
				o.blocked.Store(&b.Reason)
			} else {
				o.blocked.Store(nil)
			}
		}
	}()
	return o
}

// channel returns a spare channel or a new one.
func (o *outlet) channel() (*copyChannel, error) {
	for {
		o.mu.Lock()
		n := len(o.spare)
		if n == 0 {
			o.mu.Unlock()
			break
		}
		l := o.spare[n-1]
		o.spare = o.spare[:n-1]
		o.mu.Unlock()
		if !l.ch.IsClosed() {
			return l, nil
		}
	}
	ch, err := o.conn.Channel()
	if err != nil {
		return nil, err
	}
	if err := ch.Confirm(false); err != nil {
		return nil, errors.Join(err, ch.Close())
	}
	return &copyChannel{ch, ch.NotifyReturn(make(chan amqp.Return, 1)), ch.NotifyClose(make(chan *amqp.Error, 1))}, nil
}

// judge says whether the broker keeps a channel's copy. A return arrives before
// its confirm.
func (o *outlet) judge(l *copyChannel, acked bool, name string) error {
	if !acked {
		select {
		case why := <-l.closed:
			if why != nil {
				return why
			}
			return errLost
		default:
			_ = l.ch.Close() // later confirms on this channel could be wrong
			return errRefused
		}
	}
	returned := false
	select {
	case _, returned = <-l.returns: // false: it is closed
	default:
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.spare = append(o.spare, l)
	if returned {
		delete(o.made, name)
		return errUnroutable
	}
	return nil
}

// ensure makes a queue that this connection has not seen yet: once at a time,
// because a broker may fail if two make the same queue at once.
func (o *outlet) ensure(ctx context.Context, q *queue) error {
	if !q.make || o.seen(q.name) {
		return nil
	}
	free, err := o.making.take(ctx, q.name)
	if err != nil {
		return err
	}
	defer free()
	if o.seen(q.name) {
		return nil
	}
	if err := q.ensure(o.conn); err != nil {
		return err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.made[q.name] = true
	return nil
}

func (o *outlet) seen(name string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.made[name]
}
