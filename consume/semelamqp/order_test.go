package semelamqp_test

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/consume/driver"
	"github.com/semel-go/semel/consume/semelamqp"
	"github.com/semel-go/semel/consume/semelamqp/amqptest"
)

// ofOneKey returns n messages of one order key, and their keys in order.
func ofOneKey(n int) (ms []consume.Message, want string) {
	ms = many(n)
	for i := range ms {
		ms[i].OrderKey = "lane"
		want += fmt.Sprintf("k%d ", i)
	}
	return ms, want
}

// A second Serve of a Source begins with the messages that the first did not
// finish, although the broker has sent later ones.
func TestOrder_NextServe_IsKept(t *testing.T) {
	for _, kind := range []semelamqp.Kind{semelamqp.Classic, semelamqp.Quorum} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			b := open(t, kind)
			b.opt.Prefetch = 20
			const n = 20
			ms, want := ofOneKey(n)
			b.Publish(t, ms...)
			c := b.connect(t)
			j := &journal{}
			ctx, cancel := context.WithCancel(t.Context())
			err := j.consumer(t, func(context.Context, *semel.Execution, *consume.Message) error {
				cancel()
				return errDead
			}, consume.Options{Concurrency: 1, InFlight: 2}).Serve(ctx, c)
			if err != nil {
				t.Fatal(err)
			}
			serve(t, j.consumer(t, j.plain, consume.Options{}), c)
			settled(t, b)
			j.once(t, n)
			if got := strings.Join(j.order, " ") + " "; got != want {
				t.Errorf("they ran in the order %s", got)
			}
		})
	}
}

// half is a connection that its owner can lose without the broker's noticing.
type half struct {
	net.Conn
	lost atomic.Bool
}

func (h *half) Read(b []byte) (int, error) {
	n, err := h.Conn.Read(b)
	if h.lost.Load() {
		return 0, errDead
	}
	return n, err
}

func (h *half) Write(b []byte) (int, error) {
	if h.lost.Load() {
		return 0, errDead
	}
	return h.Conn.Write(b)
}

func (h *half) Close() error {
	if h.lost.Load() {
		return nil
	}
	return h.Conn.Close()
}

func (h *half) lose() {
	h.lost.Store(true)
	_ = h.SetReadDeadline(time.Now())
}

// A connection is lost, and the broker hears of it later than the consumer. The
// single active consumer stays the old one until then, so that nothing
// overtakes what the broker believes to be in work.
func TestOrder_BrokerNoticesALossLate_IsKept(t *testing.T) {
	s := amqptest.Shared(t)
	b := &broker{server: s, name: fmt.Sprint("half", queues.Add(1)), copies: map[driver.Action][]consume.Message{}, ch: channel(t, s.URL())}
	b.opt = semelamqp.Options{Declare: semelamqp.DeclareAll, Kind: semelamqp.Quorum, SingleActive: true, OrderKey: semelamqp.ByHeader(orderHeader)}
	b.opt.Config.Heartbeat = time.Second // it notices after two
	var conns []*half
	b.opt.Config.Dial = func(network, addr string) (net.Conn, error) {
		c, err := new(net.Dialer).DialContext(context.Background(), network, addr)
		if err != nil {
			return nil, err
		}
		h := &half{Conn: c}
		conns = append(conns, h) // no lock is needed, because the test makes no copies
		return h, nil
	}
	src, err := semelamqp.New(s.URL(), b.name, &b.opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = src.Close() })
	if _, err := src.Info(t.Context()); err != nil { // it makes the queue
		t.Fatal(err)
	}
	if err := b.ch.Confirm(false); err != nil {
		t.Fatal(err)
	}
	const n = 6
	ms, want := ofOneKey(n)
	b.Publish(t, ms...)
	j := &journal{}
	serve(t, j.consumer(t, func(ctx context.Context, x *semel.Execution, m *consume.Message) error {
		if m.Key == "k0" {
			conns[0].lose()
		}
		return j.plain(ctx, x, m)
	}, consume.Options{Concurrency: 1, InFlight: 2}), src)
	settled(t, b)
	j.once(t, n)
	if got := strings.Join(j.order, " ") + " "; got != want {
		t.Errorf("they ran in the order %s", got)
	}
	for _, h := range conns {
		_ = h.Conn.Close()
	}
}
