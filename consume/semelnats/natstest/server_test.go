package natstest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/consume/consumetest"
	"github.com/semel-go/semel/consume/driver"
	"github.com/semel-go/semel/consume/semelnats"
	"github.com/semel-go/semel/store"
)

// shared is the server of all tests.
var shared *server.Server

func TestMain(m *testing.M) {
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "natstest")
		if err != nil {
			panic(err)
		}
		defer os.RemoveAll(dir)
		shared, err = start(dir)
		if err != nil {
			panic(err)
		}
		defer shared.WaitForShutdown()
		defer shared.Shutdown()
		return m.Run()
	}())
}

// start starts a server with JetStream on files in a directory.
func start(dir string) (*server.Server, error) {
	return startAt(dir, -1)
}

// connect is a connection that ends with the test.
func connect(t testing.TB, s *server.Server) jetstream.JetStream {
	t.Helper()
	conn, err := nats.Connect("", nats.InProcessServer(s))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	js, err := jetstream.New(conn, jetstream.WithDefaultTimeout(patience))
	if err != nil {
		t.Fatal(err)
	}
	return js
}

var streams atomic.Int64

// broker is a stream with a durable consumer, and a stream of copies.
type broker struct {
	js       jetstream.JetStream
	connect  func(t testing.TB) jetstream.JetStream // a new connection
	name     string                                 // of the stream, and of the subjects below it
	consumer jetstream.Consumer
	opt      semelnats.Options
}

const orderHeader = "order-key"

// open makes a broker of its own. Change may change the consumer.
func open(t testing.TB, change func(c *jetstream.ConsumerConfig)) *broker {
	t.Helper()
	return openOn(t, func(t testing.TB) jetstream.JetStream { return connect(t, shared) }, 1, change)
}

// openOn makes a broker on other servers, which keep each message so many times.
func openOn(t testing.TB, connect func(t testing.TB) jetstream.JetStream, replicas int, change func(c *jetstream.ConsumerConfig)) *broker {
	t.Helper()
	b := &broker{js: connect(t), connect: connect, name: fmt.Sprintf("s%d", streams.Add(1))}
	for name, subjects := range map[string][]string{b.name: {b.name + ".in.>"}, b.name + "-copies": {b.name + ".dead", b.name + ".quarantine"}} {
		repeat(t, "a stream", func(ctx context.Context) error {
			_, err := b.js.CreateOrUpdateStream(ctx, jetstream.StreamConfig{Name: name, Subjects: subjects, Replicas: replicas})
			return err
		})
	}
	cfg := jetstream.ConsumerConfig{Durable: "group", AckPolicy: jetstream.AckExplicitPolicy, AckWait: 1500 * time.Millisecond, MaxDeliver: -1}
	if change != nil {
		change(&cfg)
	}
	repeat(t, "a consumer", func(ctx context.Context) (err error) {
		b.consumer, err = b.js.CreateOrUpdateConsumer(ctx, b.name, cfg)
		return err
	})
	b.opt = semelnats.Options{
		DeadLetters: b.name + ".dead", Quarantine: b.name + ".quarantine", PollWait: 100 * time.Millisecond,
		OrderKey: func(m *consume.Message) string {
			key, _ := m.Header(orderHeader)
			return key
		},
	}
	return b
}

// Publish implements consumetest.Broker.
func (b *broker) Publish(t testing.TB, ms ...consume.Message) {
	t.Helper()
	for i := range ms {
		repeat(t, "a publication", func(ctx context.Context) error {
			_, err := b.js.PublishMsg(ctx, natsMsg(b, &ms[i]))
			return err
		})
	}
}

// natsMsg is a message for the broker's stream.
func natsMsg(b *broker, in *consume.Message) *nats.Msg {
	m := nats.NewMsg(b.name + ".in.x")
	m.Data = in.Body
	for _, h := range in.Headers {
		m.Header.Add(h.Name, h.Value)
	}
	if in.OrderKey != "" {
		m.Header.Set(orderHeader, in.OrderKey)
	}
	return m
}

// Copies implements consumetest.Broker.
func (b *broker) Copies(t testing.TB, to driver.Action) (ms []consume.Message) {
	t.Helper()
	ctx := context.Background()
	var s jetstream.Stream
	repeat(t, "the stream of copies", func(ctx context.Context) (err error) {
		s, err = b.js.Stream(ctx, b.name+"-copies")
		return err
	})
	subject := b.opt.DeadLetters
	if to == driver.Quarantine {
		subject = b.opt.Quarantine
	}
	for seq := uint64(1); seq <= s.CachedInfo().State.LastSeq; seq++ {
		raw, err := s.GetMsg(ctx, seq)
		if err != nil {
			t.Fatal(err)
		}
		if raw.Subject != subject {
			continue
		}
		m := consume.Message{Body: raw.Data}
		for name, values := range raw.Header {
			for _, v := range values {
				m.Headers = append(m.Headers, store.Header{Name: name, Value: v})
			}
		}
		ms = append(ms, m)
	}
	return ms
}

// Unsettled implements consumetest.Broker.
func (b *broker) Unsettled(t testing.TB) int {
	t.Helper()
	var s jetstream.Stream
	var i *jetstream.ConsumerInfo
	repeat(t, "the state of the consumer", func(ctx context.Context) (err error) {
		if s, err = b.js.Stream(ctx, b.name); err != nil {
			return err
		}
		i, err = b.consumer.Info(ctx)
		return err
	})
	n := int(i.NumPending) + i.NumAckPending
	if n == 0 { // the consumer hears of a new message later than the stream
		n = int(s.CachedInfo().State.LastSeq - i.AckFloor.Stream)
	}
	return n
}

// Connect implements consumetest.Broker.
func (b *broker) Connect(t testing.TB) consumetest.Conn {
	t.Helper()
	js := b.connect(t)
	var c jetstream.Consumer
	repeat(t, "the consumer", func(ctx context.Context) (err error) {
		c, err = js.Consumer(ctx, b.name, "group")
		return err
	})
	s, err := semelnats.New(js, c, &b.opt)
	if err != nil {
		t.Fatal(err)
	}
	return &conn{s, js.Conn()}
}

// conn is a member with a connection of its own.
type conn struct {
	*semelnats.Source
	nc *nats.Conn
}

func (c *conn) Kill() { c.nc.Close() }

func (c *conn) Close() error {
	c.nc.Close()
	return nil
}

// startAt is start, on a port. With port -1 the system chooses one.
func startAt(dir string, port int) (*server.Server, error) {
	s, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: port, JetStream: true, StoreDir: dir, NoLog: true, NoSigs: true})
	if err != nil {
		return nil, err
	}
	s.Start()
	if !s.ReadyForConnections(2 * time.Minute) {
		return nil, errors.New("natstest: the server is not ready after 2 minutes")
	}
	return s, nil
}

// storeDir is a directory for a server. A server may write for a moment after
// its end, so the directory is removed in several attempts.
func storeDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "natstest") //nolint:usetesting // t.TempDir fails if something is written while it removes
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		until(t, "the server's directory removed", func() bool { return os.RemoveAll(dir) == nil })
	})
	return dir
}
