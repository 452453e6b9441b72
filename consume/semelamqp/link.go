package semelamqp

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

var (
	errCancelled = errors.New("semelamqp: the broker has cancelled the consumer: its queue was deleted, or its node is gone")
	errLost      = errors.New("semelamqp: the connection is closed")
)

// link is one connection with its channel. Delivery tags are valid on this
// channel only, so a delivery keeps its link, and is over when the link is.
type link struct {
	conn *amqp.Connection
	ch   *amqp.Channel
	over chan struct{} // closed when calls on this link have no effect any more
	once sync.Once
	err  error // set before over is closed

	calls    sync.Mutex // one RPC of the channel at a time
	stop     func()     // ends taking; nil: not taking
	prefetch int        // the prefetch of the broker's consumer
	takes    int        // consumers made so far
	// stopped: Stop was called, and no Info after it. A take that was waiting
	// for calls then takes nothing.
	stopped atomic.Bool

	out atomic.Int64 // messages that Next has returned, and that are not settled

	mu      sync.Mutex
	buffer  []amqp.Delivery // messages that Next has not returned yet
	returns []uint64        // the tags of messages to give back
	ready   chan struct{}   // has a token if buffer or returns is not empty
}

func newLink(conn *amqp.Connection) (*link, error) {
	ch, err := conn.Channel()
	if err != nil {
		return nil, err
	}
	l := &link{conn: conn, ch: ch, over: make(chan struct{}), ready: make(chan struct{}, 1)}
	closed := ch.NotifyClose(make(chan *amqp.Error, 1))
	go func() {
		if err := <-closed; err != nil {
			l.end(fmt.Errorf("semelamqp: the broker has closed the channel: %w", err))
		}
		l.end(errLost)
	}()
	return l, nil
}

// end ends the link. The broker gives its unacked messages to others.
func (l *link) end(err error) {
	if l.mark(err) {
		go func() { _ = l.close() }() // the connection is useless in any case
	}
}

// mark marks the link as over, and reports whether it was not before.
func (l *link) mark(err error) (first bool) {
	l.once.Do(func() {
		first, l.err = true, err
		close(l.over)
	})
	return first
}

// close closes the connection. Repeated calls do nothing.
func (l *link) close() error {
	if err := l.conn.CloseDeadline(time.Now().Add(closeTimeout)); err != nil && !errors.Is(err, amqp.ErrClosed) {
		return fmt.Errorf("semelamqp: %w", err)
	}
	return nil
}

func (l *link) isOver() bool {
	select {
	case <-l.over:
		return true
	default:
		return false
	}
}

// take makes the broker's consumer of a queue with a prefetch. It does nothing
// if the consumer has one as large.
func (l *link) take(queue string, prefetch int) error {
	l.calls.Lock()
	defer l.calls.Unlock()
	if l.stopped.Load() || l.stop != nil && prefetch <= l.prefetch {
		return nil
	}
	if l.stop != nil { // a consumer's prefetch cannot be changed
		l.stop()
	}
	if err := l.ch.Qos(prefetch, 0, false); err != nil {
		return fmt.Errorf("semelamqp: prefetch of %d: %w", prefetch, err)
	}
	l.takes++ // a quorum queue fails if a consumer's name is used again while it has messages
	tag := fmt.Sprint("semel-", l.takes)
	cancelled := l.ch.NotifyCancel(make(chan string, 1))
	ds, err := l.ch.Consume(queue, tag, false, false, false, false, nil)
	if err != nil {
		return fmt.Errorf("semelamqp: queue %q: %w", queue, err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for d := range ds {
			l.put(d)
		}
		select {
		case _, ok := <-cancelled:
			if ok {
				l.end(errCancelled)
			}
		default: // cancelled here
		}
	}()
	l.prefetch = prefetch
	l.stop = func() {
		l.stop = nil
		if err := l.ch.Cancel(tag, false); err != nil {
			l.end(err)
		}
		<-ended
	}
	return nil
}

// release ends taking, and gives back the messages that Next has not returned.
func (l *link) release() {
	l.stopped.Store(true)
	l.calls.Lock()
	defer l.calls.Unlock()
	if l.stop == nil || l.isOver() {
		return
	}
	l.stop()
	for _, d := range l.get(maxPrefetch) {
		if err := d.Nack(false, true); err != nil {
			l.end(err) // the broker gives back the rest
			return
		}
	}
}

func (l *link) put(d amqp.Delivery) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.buffer = append(l.buffer, d)
	l.wake()
}

func (l *link) wake() {
	select {
	case l.ready <- struct{}{}:
	default:
	}
}

// putBack notes a message to give back. Messages go back together, sorted,
// because a quorum queue delivers in the order in which they came back. When
// the channel is closed, the broker restores the order itself.
func (l *link) putBack(tag uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.returns = append(l.returns, tag)
	l.wake()
}

// holdsBack reports whether messages are noted that have not gone back.
func (l *link) holdsBack() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.returns) > 0
}

// giveBack gives back the noted messages.
func (l *link) giveBack() {
	l.mu.Lock()
	tags := l.returns
	l.returns = nil
	l.mu.Unlock()
	slices.Sort(tags)
	for _, tag := range tags {
		if err := l.ch.Nack(tag, false, true); err != nil {
			l.end(err) // the broker gives back the rest
			return
		}
	}
}

// get returns up to limit messages, in the order of their delivery.
func (l *link) get(limit int) []amqp.Delivery {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := min(limit, len(l.buffer))
	ds := l.buffer[:n:n]
	if l.buffer = l.buffer[n:]; len(l.buffer) == 0 {
		l.buffer = nil
	}
	if len(l.buffer) > 0 {
		l.wake()
	}
	return ds
}
