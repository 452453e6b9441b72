package semelpulsar_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"
	"github.com/semel-go/semel/consume/consumetest"
	"github.com/semel-go/semel/consume/driver"
	"github.com/semel-go/semel/consume/semelpulsar"
	"github.com/semel-go/semel/consume/semelpulsar/pulsartest"
	"github.com/semel-go/semel/store"
)

// Connect implements consumetest.Broker.
func (b *broker) Connect(t testing.TB) consumetest.Conn {
	t.Helper()
	return b.member(t)
}

func (b *broker) member(t testing.TB) *conn {
	t.Helper()
	name := fmt.Sprint("member-", members.Add(1))
	p := proxyOf(t, b.server)
	client := newClient(t, pulsar.ClientOptions{
		URL: fmt.Sprint("pulsar://127.0.0.1:", b.server.ProxyPort()), ListenerName: pulsartest.Proxied,
		Authentication: pulsar.NewAuthenticationToken("<" + name + ">"),
	})
	life, kill := context.WithCancelCause(context.Background())
	c := &conn{Source: b.source(t, client), client: client, cut: func(dead bool) { p.cut(name, dead) }, life: life, kill: kill}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

var errDead = errors.New("the process is dead")

// conn is a member with a connection of its own.
type conn struct {
	*semelpulsar.Source
	client pulsar.Client
	cut    func(dead bool)
	life   context.Context
	kill   context.CancelCauseFunc
	once   sync.Once
}

// Info subscribes. While another member has an exclusive subscription, it tries again, as
// an operator would start the process again.
func (c *conn) Info(ctx context.Context) (i driver.Info, err error) {
	for {
		i, err = c.Source.Info(ctx)
		if err == nil || !strings.Contains(err.Error(), "ConsumerBusy") || c.life.Err() != nil {
			return i, err
		}
		select {
		case <-ctx.Done():
			return i, ctx.Err()
		case <-time.After(100 * time.Millisecond):
		}
	}
}

func (c *conn) Next(ctx context.Context, limit int) ([]driver.Delivery, error) {
	if c.life.Err() != nil {
		return nil, errDead
	}
	ds, err := c.Source.Next(ctx, limit)
	for i := range ds {
		ds[i] = &mortalDelivery{ds[i], c}
	}
	return ds, err
}

func (c *conn) Stop(ctx context.Context) error {
	if c.life.Err() != nil {
		return errDead
	}
	return c.Source.Stop(ctx)
}

func (c *conn) Kill() {
	c.kill(errDead)
	c.cut(true)
	_ = c.Close()
}

// Close closes the client, in the background because a client that was cut off waits for
// the answers of the broker.
func (c *conn) Close() error {
	c.once.Do(func() { go c.client.Close() })
	return nil
}

// mortalDelivery dies with its process.
type mortalDelivery struct {
	driver.Delivery
	c *conn
}

// alive calls f, which fails when the process dies.
func (d *mortalDelivery) alive(ctx context.Context, f func(context.Context) error) error {
	if d.c.life.Err() != nil {
		return errDead
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(d.c.life, func() { cancel(errDead) })()
	return f(ctx)
}

func (d *mortalDelivery) Ack(ctx context.Context) error {
	return d.alive(ctx, d.Delivery.Ack)
}

func (d *mortalDelivery) Nak(ctx context.Context, delay time.Duration) error {
	return d.alive(ctx, func(ctx context.Context) error { return d.Delivery.Nak(ctx, delay) })
}

func (d *mortalDelivery) Forward(ctx context.Context, to driver.Action, headers []store.Header) error {
	return d.alive(ctx, func(ctx context.Context) error { return d.Delivery.Forward(ctx, to, headers) })
}
