package semelamqp

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// maxCopies is how many copies are on their way to a queue at once. Each has its own
// channel, so that a returned copy can be told from the others.
const maxCopies = 16

// publisher sends copies, and waits until the broker keeps them.
type publisher struct {
	dialer dialer
	slots  places        // one for each copy on its way
	making chan struct{} // holds a token while an outlet is made

	mu     sync.Mutex
	closed bool
	out    *outlet // nil: there is none yet
}

func newPublisher(url string, config amqp.Config) *publisher {
	return &publisher{dialer: dialer{url: url, config: config}, slots: places{limit: maxCopies}, making: make(chan struct{}, 1)}
}

func (p *publisher) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed = true; p.out != nil {
		_ = p.out.conn.CloseDeadline(time.Now().Add(closeTimeout)) // no copy waits for it
	}
}

// open returns an outlet whose connection is open, as far as is known.
func (p *publisher) open(ctx context.Context) (*outlet, error) {
	select {
	case p.making <- struct{}{}:
		defer func() { <-p.making }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	p.mu.Lock()
	o, closed := p.out, p.closed
	p.mu.Unlock()
	switch {
	case closed:
		return nil, errLost
	case o != nil && !o.conn.IsClosed():
		return o, nil
	}
	conn, err := p.dialer.dial(ctx)
	if err != nil {
		return nil, err
	}
	p.dialer.ended(true)
	o = newOutlet(conn)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.out = o; p.closed { // close did not see it
		_ = conn.CloseDeadline(time.Now().Add(closeTimeout)) // no copy waits for it
		return nil, errLost
	}
	return o, nil
}

// sent is a copy on its way.
type sent struct {
	done chan struct{}
	err  error // when done: nil if the broker keeps it
}

// failed reports whether the copy is known to have failed.
func (s *sent) failed() bool {
	select {
	case <-s.done:
		return s.err != nil
	default:
		return false
	}
}

// wait returns nil when the broker keeps the copy.
func (s *sent) wait(ctx context.Context) error {
	select {
	case <-s.done:
		return s.err
	default:
	}
	select {
	case <-s.done:
		return s.err
	case <-ctx.Done():
		return fmt.Errorf("the broker has not confirmed it yet: %w", ctx.Err())
	}
}

// send starts to send a copy to a queue; ctx limits the start only. A copy that
// the broker delays, for instance when its memory runs out, ends later.
func (p *publisher) send(ctx context.Context, q queue, m amqp.Publishing) *sent {
	return start(func() error {
		free, err := p.slots.take(ctx, q.slot())
		if err != nil {
			return err
		}
		defer free()
		return p.deliver(ctx, q, m)
	})
}

// start begins to send a copy by a function.
func start(deliver func() error) *sent {
	s := &sent{done: make(chan struct{})}
	go func() {
		defer close(s.done)
		s.err = deliver()
	}()
	return s
}

// slot is the name of a queue in publisher.slots.
func (q *queue) slot() string { return q.exchange + "/" + q.name }

// deliver sends a copy that has a place in slots.
func (p *publisher) deliver(ctx context.Context, q queue, m amqp.Publishing) error {
	o, err := p.open(ctx)
	if err != nil {
		return err
	}
	if why := o.blocked.Load(); why != nil {
		return fmt.Errorf("the broker blocks publishers now, because of: %s", *why)
	}
	if err := fit(&m, o.conn.Config.FrameSize); err != nil {
		return err
	}
	if err := o.ensure(ctx, &q); err != nil {
		return err
	}
	leave, err := o.channels.take(ctx, "")
	if err != nil {
		return err
	}
	defer leave()
	l, err := o.channel()
	if err != nil {
		return err
	}
	if err := ctx.Err(); err != nil { // a lease can end without Done: see outbox.Sink
		return errors.Join(err, l.ch.Close())
	}
	confirm, err := l.ch.PublishWithDeferredConfirmWithContext(ctx, q.exchange, q.name, true, false, m)
	if err != nil {
		return errors.Join(err, l.ch.Close())
	}
	<-confirm.Done()
	return o.judge(l, confirm.Acked(), q.name)
}
