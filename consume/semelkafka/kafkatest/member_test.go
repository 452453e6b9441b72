package kafkatest

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"

	"github.com/semel-go/semel/consume/driver"
	"github.com/semel-go/semel/consume/semelkafka"
	"github.com/semel-go/semel/store"
)

var errDead = errors.New("the process is dead")

// line is the connections of one member, which can be cut.
type line struct {
	mu    sync.Mutex
	dead  bool
	conns []net.Conn
}

func (l *line) dial(ctx context.Context, network, host string) (net.Conn, error) {
	var d net.Dialer
	c, err := d.DialContext(ctx, network, host)
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.dead {
		_ = c.Close()
		return nil, errDead
	}
	l.conns = append(l.conns, c)
	return c, nil
}

// cut breaks them, for good.
func (l *line) cut() {
	l.mu.Lock()
	l.dead = true
	l.mu.Unlock()
	l.drop()
}

// mend is behind cut: they can be made again.
func (l *line) mend() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.dead = false
}

// drop breaks those that there are.
func (l *line) drop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range l.conns {
		_ = c.Close()
	}
	l.conns = nil
}

func (l *line) fault() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.dead {
		return errDead
	}
	return nil
}

// conn is a member with connections of its own.
type conn struct {
	*semelkafka.Source
	line *line
}

func (c *conn) Next(ctx context.Context, limit int) ([]driver.Delivery, error) {
	if err := c.line.fault(); err != nil {
		return nil, err
	}
	ds, err := c.Source.Next(ctx, limit)
	for i, d := range ds {
		ds[i] = &mortal{d, c.line}
	}
	return ds, err
}

func (c *conn) Kill() { c.line.cut() }

func (c *conn) Close() error {
	if c.line.fault() == nil {
		return c.Source.Close()
	}
	return nil // after Kill it does nothing
}

// mortal is a delivery that fails when its process is dead.
type mortal struct {
	driver.Delivery
	line *line
}

// Waits implements driver.Waiter.
func (d *mortal) Waits(waits bool) { d.Delivery.(driver.Waiter).Waits(waits) }

func (d *mortal) Ack(ctx context.Context) error {
	return errors.Join(d.line.fault(), d.Delivery.Ack(ctx))
}

func (d *mortal) Nak(ctx context.Context, delay time.Duration) error {
	return errors.Join(d.line.fault(), d.Delivery.Nak(ctx, delay))
}

func (d *mortal) Forward(ctx context.Context, to driver.Action, hs []store.Header) error {
	if err := d.line.fault(); err != nil {
		return err
	}
	return d.Delivery.Forward(ctx, to, hs)
}
