package natstest

import (
	"context"
	"fmt"
	"net"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/consume/driver"
)

// restarts is how often the campaigns stop and start a consumer.
func restarts(short int) int {
	if os.Getenv("SEMEL_EVIDENCE") != "" {
		return 50
	}
	return short
}

// Five messages of one order key, whose head fails: after each stop the next Serve
// begins with the head again.
func TestOrder_HeadFailsAndServeStops_IsKept(t *testing.T) {
	t.Parallel()
	for n := range restarts(5) {
		b := open(t, nil)
		var ms []consume.Message
		for i := range 5 {
			m := keyed(fmt.Sprint("k", i))
			m.OrderKey = "lane"
			ms = append(ms, m)
		}
		b.Publish(t, ms...)
		var mu sync.Mutex
		var order []string
		failing, failed := true, make(chan struct{}, 100)
		h := func(_ context.Context, _ *semel.Execution, m *consume.Message) error {
			mu.Lock()
			defer mu.Unlock()
			if failing {
				failed <- struct{}{}
				return semel.NoEffect(fmt.Errorf("%s is not ready", m.Key))
			}
			order = append(order, m.Key)
			return nil
		}
		c := consumer(t, h, &consume.Options{Backoff: func(int) time.Duration { return time.Second }})
		s := b.Connect(t)
		stop := serve(t, c, s)
		<-failed
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		mu.Lock()
		failing = false
		mu.Unlock()
		serve(t, c, b.Connect(t))
		until(t, "all run", func() bool { return b.Unsettled(t) == 0 })
		mu.Lock()
		if want := []string{"k0", "k1", "k2", "k3", "k4"}; !slices.Equal(order, want) {
			t.Errorf("stop %d: they ran in the order %v", n, order)
		}
		mu.Unlock()
	}
}

// A slow connection delays what its client sends, as the way to the leader of a cluster
// does.
type slowConn struct {
	net.Conn
	sent chan []byte
}

const slow = 300 * time.Millisecond

func (c *slowConn) Dial(network, address string) (net.Conn, error) {
	conn, err := net.Dial(network, address)
	if err != nil {
		return nil, err
	}
	s := &slowConn{conn, make(chan []byte, 1000)}
	go func() {
		for b := range s.sent {
			<-time.After(slow)
			_, _ = conn.Write(b) // the connection may be closed
		}
	}()
	return s, nil
}

func (c *slowConn) Write(b []byte) (int, error) {
	c.sent <- slices.Clone(b)
	return len(b), nil
}

// When Nak has returned, the server has the message back: the pull of another member gets
// it before the message after it.
func TestNak_SlowConnection_ReturnsAfterServerHasMessage(t *testing.T) {
	t.Parallel()
	b := open(t, nil)
	b.Publish(t, keyed("k0"), keyed("k1"))
	near := b.connect
	b.connect = func(t testing.TB) jetstream.JetStream {
		conn, err := nats.Connect(shared.ClientURL(), nats.SetCustomDialer(&slowConn{}))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(conn.Close)
		js, err := jetstream.New(conn)
		if err != nil {
			t.Fatal(err)
		}
		return js
	}
	ds, err := b.Connect(t).Next(t.Context(), 1)
	if err != nil || len(ds) != 1 {
		t.Fatalf("%d deliveries, %v", len(ds), err)
	}
	b.connect = near
	other := b.Connect(t)
	if err := ds[0].Nak(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	ds, err = other.Next(t.Context(), 1)
	if err != nil || len(ds) != 1 || string(ds[0].Message().Body) != "k0" {
		t.Fatalf("the next pull gets %d messages, %v; want k0", len(ds), err)
	}
}

// Messages that only wait are given back at each restart, which the server counts.
// None of them may become a dead letter before its handler has begun.
func TestRestarts_MessagesWait_NoneIsDeadLettered(t *testing.T) {
	t.Parallel()
	b := open(t, nil)
	var ms []consume.Message
	for i := range 20 {
		m := keyed(fmt.Sprint("k", i))
		m.OrderKey = fmt.Sprint("lane", i%2)
		ms = append(ms, m)
	}
	b.Publish(t, ms...)
	begun := make(chan struct{}, 100)
	var mu sync.Mutex
	blocking, ran := true, map[string]int{}
	h := func(ctx context.Context, _ *semel.Execution, m *consume.Message) error {
		mu.Lock()
		wait := blocking
		if !wait {
			ran[m.Key]++
		}
		mu.Unlock()
		if wait {
			begun <- struct{}{}
			<-ctx.Done()
			return semel.NoEffect(ctx.Err())
		}
		return nil
	}
	c := consumer(t, h, &consume.Options{Concurrency: 1, InFlight: 20, MaxDeliveries: 3, Drain: time.Millisecond})
	for range restarts(6) {
		stop := serve(t, c, b.Connect(t))
		<-begun
		if err := stop(); err != nil {
			t.Fatal(err)
		}
	}
	mu.Lock()
	blocking = false
	mu.Unlock()
	serve(t, c, b.Connect(t))
	until(t, "all settled", func() bool { return b.Unsettled(t) == 0 })
	if n := len(b.Copies(t, driver.DeadLetter)); n != 0 {
		t.Errorf("%d dead letters of messages that only waited", n)
	}
	mu.Lock()
	defer mu.Unlock()
	if len(ran) != len(ms) {
		t.Errorf("%d of %d messages ran", len(ran), len(ms))
	}
}

// 300 messages of one order key, the first of which fails, do not delay the rest.
func TestOneKeyFails_OthersAreServedAtOnce(t *testing.T) {
	t.Parallel()
	b := open(t, nil)
	stuck := make([]consume.Message, 300)
	for i := range stuck {
		stuck[i] = keyed(fmt.Sprint("stuck", i))
		stuck[i].OrderKey = "stuck"
	}
	b.Publish(t, stuck...)
	var mu sync.Mutex
	ran := 0
	h := func(_ context.Context, _ *semel.Execution, m *consume.Message) error {
		if m.OrderKey == "stuck" {
			return fmt.Errorf("%s fails", m.Key)
		}
		mu.Lock()
		defer mu.Unlock()
		ran++
		return nil
	}
	serve(t, consumer(t, h, &consume.Options{Backoff: func(int) time.Duration { return time.Hour }}), b.Connect(t))
	others := make([]consume.Message, 200)
	for i := range others {
		others[i] = keyed(fmt.Sprint("k", i))
		others[i].OrderKey = fmt.Sprint("lane", i)
	}
	b.Publish(t, others...)
	until(t, "the others run", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return ran == len(others)
	})
}
