package semelamqp

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/semel-go/semel/consume/driver"
)

const maxPrefetch = 65535 // the limit of AMQP

// Source is a queue as a driver.Source. It is safe for concurrent use, by one
// Serve at a time. Close it after Serve, because messages with an OrderKey that
// were given back go to other consumers then.
//
// It has one connection to take and ack messages, and another to publish
// copies, because a broker that runs out of memory stops reading from
// publishers. A lost connection is made again, and its queues with it.
type Source struct {
	opt     Options
	queues  topology
	dialer  dialer
	copies  *publisher
	closed  chan struct{}
	closing sync.Once

	making chan struct{} // holds a token while a link is made
	link   atomic.Pointer[link]

	most   atomic.Int64 // the largest number of messages that a Next had to allow for
	single atomic.Int64 // how many more messages are taken one at a time, after one that the client cannot read
}

// New makes a Source of a queue. The url is like
// amqp://user:password@host:5672/vhost, or amqps://. It does no I/O, and its
// error names every mistake in its arguments.
func New(url, queue string, o *Options) (*Source, error) {
	opt := o.withDefaults(queue)
	if err := opt.check(url, queue); err != nil {
		return nil, fmt.Errorf("semelamqp: %w", err)
	}
	s := &Source{opt: opt, dialer: dialer{url: url, config: opt.Config}, closed: make(chan struct{}), making: make(chan struct{}, 1)}
	s.queues = topology{name: queue, opt: &s.opt}
	s.copies = newPublisher(url, opt.Config)
	return s, nil
}

var errClosed = fmt.Errorf("%w: by Close", driver.ErrClosed)

// Close ends the connections; the broker gives messages that are not acked to
// other consumers. After Close, Next returns driver.ErrClosed. Repeated calls
// do nothing.
func (s *Source) Close() error {
	s.closing.Do(func() { close(s.closed) })
	s.copies.close()
	if l := s.link.Load(); l != nil {
		l.mark(errLost)
		return l.close()
	}
	return nil
}

// Info implements driver.Source. It connects, and makes the queues or checks
// that they exist. If an earlier Serve has given back messages with an
// OrderKey, it connects again: the messages that the broker has sent since then
// go back with them, in the queue's order.
func (s *Source) Info(ctx context.Context) (driver.Info, error) {
	if l := s.link.Load(); l != nil && l.holdsBack() && l.mark(errLost) {
		_ = l.close() // after the broker's answer all its messages are in the queue again
	}
	l, err := s.connected(ctx)
	if err != nil {
		return driver.Info{}, err
	}
	l.stopped.Store(false)
	s.single.Store(0)
	return driver.Info{Horizon: s.opt.Horizon, DeliveryLimit: s.opt.DeliveryLimit}, nil
}

// connected returns the current link, or makes one, with all queues.
func (s *Source) connected(ctx context.Context) (*link, error) {
	select {
	case s.making <- struct{}{}:
		defer func() { <-s.making }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if l := s.link.Load(); l != nil && !l.isOver() {
		return l, nil
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-s.closed:
			cancel()
		case <-ctx.Done():
		}
	}()
	conn, err := s.dialer.dial(ctx)
	if err != nil {
		return nil, err
	}
	defer context.AfterFunc(ctx, func() { _ = conn.CloseDeadline(time.Now()) })() // so that calls that hang end
	l, err := newLink(conn)
	if err == nil {
		if err = s.queues.declare(conn); err != nil {
			l.end(err)
		}
	}
	if err != nil {
		s.dialer.ended(false)
		_ = conn.CloseDeadline(time.Now().Add(closeTimeout)) // the connection is useless
		return nil, err
	}
	s.link.Store(l)
	if s.isClosed() { // Close may not have seen it
		l.end(errLost)
	}
	return l, nil
}

// Next implements driver.Source.
func (s *Source) Next(ctx context.Context, limit int) ([]driver.Delivery, error) {
	if s.isClosed() {
		return nil, errClosed
	}
	l, err := s.connected(ctx)
	if err != nil {
		return nil, err
	}
	taken := make(chan error, 1)
	go func() { taken <- l.take(s.queues.name, s.prefetch(l, limit)) }()
	select {
	case err := <-taken:
		if err != nil {
			l.end(err)
			s.dialer.ended(false)
			return nil, l.err
		}
	case <-ctx.Done(): // the next call finds the result in the link
		return nil, ctx.Err()
	}
	s.dialer.ended(true)
	for !l.isOver() && ctx.Err() == nil {
		l.giveBack()
		if ds := s.deliveries(l, limit); len(ds) > 0 {
			return ds, nil
		}
		select {
		case <-l.ready:
		case <-l.over:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	switch {
	case !l.isOver():
		return nil, ctx.Err()
	case s.isClosed():
		return nil, errClosed
	}
	if isUnreadable(l.err) {
		s.single.Store(max(1, s.most.Load(), int64(s.opt.Prefetch)))
		return nil, fmt.Errorf("semelamqp: queue %q: the client cannot read a message, perhaps because its headers are nested more than 32 deep; "+
			"messages are taken one at a time now, so that those before it are handled; if this error comes again and no message is handled, it is the first one: "+
			"remove it with: rabbitmqadmin get queue=%s ackmode=ack_requeue_false count=1: %w", s.queues.name, s.queues.name, l.err)
	}
	return nil, l.err
}

// isUnreadable reports whether the client has closed a connection because of the content of
// a frame. It tells the cause in a text only.
func isUnreadable(err error) bool {
	e, ok := errors.AsType[*amqp.Error](err)
	return ok && e.Code == amqp.FrameError && strings.Contains(e.Reason, amqp.ErrSyntax.Reason)
}

func (s *Source) isClosed() bool {
	select {
	case <-s.closed:
		return true
	default:
		return false
	}
}

// waitingShare is the default of consume's Waiting, in multiples of InFlight.
const waitingShare = 16

// prefetch returns how many messages the broker may send before their acks. The
// first Next of a Serve asks for InFlight messages; a later one for the rest, part
// of which may belong to a lost link.
//
// With an OrderKey the first prefetch has room for the messages that wait, too, and
// stays: a new consumer with a larger one would get them in another order.
//
// After a message that the client cannot read, the prefetch is 1 for as many messages as the
// broker may have sent with it: the client closes the connection when that message comes,
// before those that came with it can be acked. With an OrderKey it stays 1 until the next
// Info.
func (s *Source) prefetch(l *link, limit int) int {
	if s.single.Load() > 0 {
		return 1
	}
	if s.opt.Prefetch > 0 {
		return s.opt.Prefetch
	}
	if s.opt.OrderKey != nil {
		s.most.CompareAndSwap(0, min(int64(limit)*(1+waitingShare), maxPrefetch))
		return int(s.most.Load())
	}
	for {
		old := s.most.Load()
		now := old
		if need := int64(limit) + l.out.Load(); need > old {
			now = min(max(need, 2*old), maxPrefetch) // few new consumers
		}
		if s.most.CompareAndSwap(old, now) {
			return int(now)
		}
	}
}

func (s *Source) deliveries(l *link, limit int) (ds []driver.Delivery) {
	for _, raw := range l.get(limit) {
		l.out.Add(1)
		if s.opt.OrderKey == nil && s.single.Load() > 0 {
			s.single.Add(-1)
		}
		d := &delivery{s: s, l: l, raw: raw, own: message(&raw, s.queues.name)}
		if s.opt.OrderKey != nil {
			d.own.OrderKey = s.opt.OrderKey(d.own)
		}
		ds = append(ds, d)
	}
	return ds
}

// Stop implements driver.Source. It cancels the broker's consumer and gives
// back the messages that Next has not returned.
//
// If Options.OrderKey is set, Stop does nothing, and Close gives them back: a
// queue's next single active consumer would otherwise begin with these messages
// while an earlier one still runs here.
func (s *Source) Stop(ctx context.Context) error {
	l := s.link.Load()
	if l == nil || s.opt.OrderKey != nil {
		return nil
	}
	released := make(chan struct{})
	go func() {
		defer close(released)
		l.release()
	}()
	select {
	case <-released:
		return nil
	case <-ctx.Done():
		err := fmt.Errorf("semelamqp: queue %q: the broker does not answer the cancellation of its consumer: %w", s.queues.name, ctx.Err())
		l.end(err) // the broker gives back all that is not acked
		return err
	}
}
