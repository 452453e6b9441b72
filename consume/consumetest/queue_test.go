package consumetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/consume/driver"
	"github.com/semel-go/semel/store"
)

// queue is a broker in memory that acks each message by itself, as RabbitMQ
// and NATS JetStream do.
type queue struct {
	mu      sync.Mutex
	changed chan struct{} // closed at each change
	msgs    []*queued
	copies  map[driver.Action][]consume.Message
	ackWait time.Duration
	defect  defect
}

type queued struct {
	consume.Message
	holder *queueConn // nil: nobody
	until  time.Time  // the end of the holder's time; without a holder the earliest next delivery
	acked  bool
}

func newQueue() *queue {
	return &queue{changed: make(chan struct{}), copies: map[driver.Action][]consume.Message{}, ackWait: 1500 * time.Millisecond}
}

// notify wakes who waits. The caller holds mu.
func (q *queue) notify() {
	close(q.changed)
	q.changed = make(chan struct{})
}

func (q *queue) Publish(_ testing.TB, ms ...consume.Message) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, m := range ms {
		n := int64(len(q.msgs) + 1)
		m.Origin = consume.Origin{Topic: "queue", Offset: n, ID: fmt.Sprintf("queue/%d", n)}
		m.Published = time.Now()
		q.msgs = append(q.msgs, &queued{Message: m})
	}
	q.notify()
}

func (q *queue) Connect(testing.TB) Conn { return &queueConn{q: q} }

func (q *queue) Copies(_ testing.TB, to driver.Action) []consume.Message {
	q.mu.Lock()
	defer q.mu.Unlock()
	return slices.Clone(q.copies[to])
}

func (q *queue) Unsettled(testing.TB) (n int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, m := range q.msgs {
		if !m.acked {
			n++
		}
	}
	return n
}

var errDead = errors.New("queue: the connection is dead")

type queueConn struct {
	q    *queue
	dead bool // guarded by q.mu
}

func (c *queueConn) Info(context.Context) (driver.Info, error) {
	return driver.Info{Horizon: driver.Forever, AckWait: c.q.ackWait}, nil
}

func (c *queueConn) Stop(context.Context) error { return nil }

func (c *queueConn) Next(ctx context.Context, limit int) ([]driver.Delivery, error) {
	for {
		c.q.mu.Lock()
		changed, dead := c.q.changed, c.dead
		ds, wait := c.ready(limit)
		c.q.mu.Unlock()
		if dead {
			return nil, errDead
		}
		if len(ds) > 0 {
			return ds, nil
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-changed:
		case <-time.After(wait):
		}
	}
}

// ready takes what can be delivered, and says when to look again. The caller
// holds mu.
func (c *queueConn) ready(limit int) (ds []driver.Delivery, wait time.Duration) {
	now, wait := time.Now(), time.Second
	for _, m := range c.q.msgs {
		if m.acked || len(ds) == limit || c.dead {
			continue
		}
		if left := m.until.Sub(now); left > 0 {
			wait = min(wait, left)
			continue
		}
		m.holder, m.until = c, now.Add(c.q.ackWait)
		m.Deliveries++
		own := m.Message
		ds = append(ds, c.q.defect.deliver(&queueDelivery{c: c, m: m, own: &own, n: own.Deliveries}))
	}
	return ds, wait
}

func (c *queueConn) Kill() {
	c.q.mu.Lock()
	defer c.q.mu.Unlock()
	c.dead = true
	for _, m := range c.q.msgs {
		if m.holder == c {
			m.holder, m.until = nil, time.Time{}
		}
	}
	c.q.notify()
}

func (c *queueConn) Close() error {
	c.Kill()
	return nil
}

type queueDelivery struct {
	c   *queueConn
	m   *queued
	own *consume.Message
	n   int // the delivery's number
}

func (d *queueDelivery) Message() *consume.Message { return d.own }
func (d *queueDelivery) Revoked() <-chan struct{}  { return nil }

// change is what the holder of a message may do.
func (d *queueDelivery) change(f func()) error {
	d.c.q.mu.Lock()
	defer d.c.q.mu.Unlock()
	switch {
	case d.c.dead:
		return errDead
	case d.m.holder != d.c || d.m.Deliveries != d.n: // a late word counts for nothing
		return errors.New("queue: the message was delivered again")
	}
	f()
	d.c.q.notify()
	return nil
}

func (d *queueDelivery) Ack(context.Context) error {
	return d.change(func() { d.m.acked = true })
}

func (d *queueDelivery) Nak(_ context.Context, delay time.Duration) error {
	return d.change(func() { d.m.holder, d.m.until = nil, time.Now().Add(delay) })
}

func (d *queueDelivery) Extend(context.Context) error {
	return d.change(func() { d.m.until = time.Now().Add(d.c.q.ackWait) })
}

func (d *queueDelivery) Forward(_ context.Context, to driver.Action, headers []store.Header) error {
	d.c.q.mu.Lock()
	defer d.c.q.mu.Unlock()
	if d.c.dead {
		return errDead
	}
	m := *d.own
	m.Headers = headers
	d.c.q.copies[to] = append(d.c.q.copies[to], m)
	return nil
}
