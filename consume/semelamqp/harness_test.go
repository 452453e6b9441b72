package semelamqp_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/consume/consumetest"
	"github.com/semel-go/semel/consume/driver"
	"github.com/semel-go/semel/consume/semelamqp"
	"github.com/semel-go/semel/consume/semelamqp/amqptest"
	"github.com/semel-go/semel/store"
)

func TestMain(m *testing.M) {
	if runChild() {
		return
	}
	os.Exit(amqptest.Main(m))
}

// patience is how long a test waits for an event, on a busy machine.
const patience = 4 * time.Minute

var queues atomic.Int64

const orderHeader = "order-key"

// broker is a queue of its own on a node, with its copies.
type broker struct {
	server *amqptest.Server
	name   string
	opt    semelamqp.Options
	ch     *amqp.Channel // of the test
	mu     sync.Mutex    // one copy read at a time
	copies map[driver.Action][]consume.Message
}

// open makes a queue on the shared node. All its queues are of this kind.
func open(t testing.TB, kind semelamqp.Kind) *broker {
	t.Helper()
	return openOn(t, amqptest.Shared(t), kind)
}

func openOn(t testing.TB, s *amqptest.Server, kind semelamqp.Kind) *broker {
	t.Helper()
	b := &broker{server: s, name: fmt.Sprintf("q%d", queues.Add(1)), copies: map[driver.Action][]consume.Message{}}
	b.opt = semelamqp.Options{Declare: semelamqp.DeclareAll, Kind: kind, OrderKey: semelamqp.ByHeader(orderHeader)}
	src, err := semelamqp.New(s.URL(), b.name, &b.opt)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := src.Info(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := src.Close(); err != nil {
		t.Fatal(err)
	}
	b.ch = channel(t, s.URL())
	if err := b.ch.Confirm(false); err != nil {
		t.Fatal(err)
	}
	return b
}

// channel is one that ends with the test.
func channel(t testing.TB, url string) *amqp.Channel {
	t.Helper()
	conn, err := amqp.Dial(url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	ch, err := conn.Channel()
	if err != nil {
		t.Fatal(err)
	}
	return ch
}

// Publish implements consumetest.Broker.
func (b *broker) Publish(t testing.TB, ms ...consume.Message) {
	t.Helper()
	var sent []*amqp.DeferredConfirmation
	for i := range ms {
		c, err := b.ch.PublishWithDeferredConfirm("", b.name, false, false, publishing(&ms[i]))
		if err != nil {
			t.Fatal(err)
		}
		sent = append(sent, c)
	}
	for _, c := range sent {
		if !c.Wait() {
			t.Fatal("the broker refused a message")
		}
	}
}

func publishing(m *consume.Message) amqp.Publishing {
	p := amqp.Publishing{DeliveryMode: amqp.Persistent, Timestamp: time.Now(), Headers: amqp.Table{}, Body: m.Body}
	for _, h := range m.Headers {
		p.Headers[h.Name] = h.Value
	}
	if m.OrderKey != "" {
		p.Headers[orderHeader] = m.OrderKey
	}
	return p
}

// Copies implements consumetest.Broker. It takes what is in the queue, and
// remembers it.
func (b *broker) Copies(t testing.TB, to driver.Action) []consume.Message {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, d := range drain(t, b.ch, b.letters(to)) {
		m := consume.Message{Body: d.Body}
		for name, v := range d.Headers {
			m.Headers = append(m.Headers, store.Header{Name: name, Value: fmt.Sprint(v)})
		}
		b.copies[to] = append(b.copies[to], m)
	}
	return b.copies[to]
}

// drain takes all messages of a queue.
func drain(t testing.TB, ch *amqp.Channel, queue string) (ds []amqp.Delivery) {
	t.Helper()
	for {
		d, ok, err := ch.Get(queue, true)
		if err != nil {
			t.Fatal(err)
		}
		if !ok {
			return ds
		}
		ds = append(ds, d)
	}
}

func (b *broker) letters(to driver.Action) string {
	if to == driver.Quarantine {
		return b.name + ".quarantine"
	}
	return b.name + ".dead-letters"
}

// retries are the queues in which messages wait.
func (b *broker) retries() (names []string) {
	for d := 250 * time.Millisecond; d < 48*time.Hour; d *= 2 {
		names = append(names, b.name+".retry."+d.String())
	}
	return names
}

// Unsettled implements consumetest.Broker. It looks at the retries before and
// after, because a message moves between the queues.
func (b *broker) Unsettled(t testing.TB) int {
	t.Helper()
	var ns [3]int
	for i, queues := range [][]string{b.retries(), {b.name}, b.retries()} {
		var err error
		if ns[i], err = b.server.Messages(queues...); err != nil {
			t.Fatal(err)
		}
	}
	return ns[1] + max(ns[0], ns[2])
}

// Connect implements consumetest.Broker.
func (b *broker) Connect(t testing.TB) consumetest.Conn {
	t.Helper()
	return b.connect(t)
}

func (b *broker) connect(t testing.TB) *conn {
	t.Helper()
	c := &conn{}
	o := b.opt
	o.Config.Dial = c.dial
	s, err := semelamqp.New(b.server.URL(), b.name, &o)
	if err != nil {
		t.Fatal(err)
	}
	c.Source = s
	t.Cleanup(func() { _ = s.Close() })
	return c
}

// conn is a member whose connections can be cut.
type conn struct {
	*semelamqp.Source
	mu    sync.Mutex
	dead  bool
	conns []net.Conn
}

var errDead = errors.New("the process is dead")

func (c *conn) dial(network, addr string) (net.Conn, error) {
	nc, err := new(net.Dialer).DialContext(context.Background(), network, addr)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.dead {
		if err == nil {
			_ = nc.Close()
		}
		return nil, errDead
	}
	if err == nil {
		c.conns = append(c.conns, nc)
	}
	return nc, err
}

// cut closes what is connected.
func (c *conn) cut() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, nc := range c.conns {
		_ = nc.Close()
	}
	c.conns = nil
}

// Kill implements consumetest.Conn.
func (c *conn) Kill() {
	c.mu.Lock()
	c.dead = true
	c.mu.Unlock()
	c.cut()
}

// until waits for a condition.
func until(t testing.TB, what string, ready func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !ready(); <-time.After(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("after %v: not %s", patience, what)
		}
	}
}
