package pipeline

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/semel-go/semel/consume/driver"
)

// Names that consumers need.
const (
	Stream  = "ORDERS"
	Durable = "billing"

	subject = "orders.placed"
	letters = "LETTERS"
)

// Broker is a NATS server on a free port of loopback, with JetStream on files.
// Close it.
type Broker struct {
	// URL is where consumers connect.
	URL string

	server   *server.Server
	conn     *nats.Conn
	js       jetstream.JetStream
	consumer jetstream.Consumer
}

const readyWithin = 20 * time.Second

// Start starts a server with its files in dir, and makes the streams and the
// durable consumer. A message that is taken and not settled comes again after
// ackWait.
func Start(ctx context.Context, dir string, ackWait time.Duration) (*Broker, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil { // the server would say nothing of it
		return nil, fmt.Errorf("the NATS server: %w", err)
	}
	s, err := server.NewServer(&server.Options{
		ServerName: "semel-demo", Host: "127.0.0.1", Port: server.RANDOM_PORT, JetStream: true, StoreDir: dir, NoLog: true, NoSigs: true,
	})
	if err != nil {
		return nil, fmt.Errorf("the NATS server: %w", err)
	}
	b := &Broker{server: s}
	if err := b.start(ctx, ackWait); err != nil {
		b.Close()
		return nil, fmt.Errorf("the NATS server: %w", err)
	}
	return b, nil
}

func (b *Broker) start(ctx context.Context, ackWait time.Duration) (err error) {
	b.server.Start()
	if !b.server.ReadyForConnections(readyWithin) {
		return fmt.Errorf("is not ready after %v", readyWithin)
	}
	b.URL = b.server.ClientURL()
	if b.conn, err = nats.Connect("", nats.InProcessServer(b.server)); err != nil {
		return err
	}
	if b.js, err = jetstream.New(b.conn); err != nil {
		return err
	}
	for _, c := range []jetstream.StreamConfig{
		{Name: Stream, Subjects: []string{subject}, MaxAge: time.Hour},
		{Name: letters, Subjects: []string{"dead-letters.>", "quarantine.>"}},
	} {
		if _, err := b.js.CreateStream(ctx, c); err != nil {
			return err
		}
	}
	b.consumer, err = b.js.CreateOrUpdateConsumer(ctx, Stream, jetstream.ConsumerConfig{
		Durable: Durable, AckPolicy: jetstream.AckExplicitPolicy, AckWait: ackWait, MaxDeliver: -1,
	})
	return err
}

// Close ends the server. Its files stay.
func (b *Broker) Close() {
	if b.conn != nil {
		b.conn.Close()
	}
	b.server.Shutdown()
	b.server.WaitForShutdown()
}

// publish sends a message, and gives its number in the stream.
func (b *Broker) publish(ctx context.Context, m *nats.Msg) (seq uint64, err error) {
	ack, err := b.js.PublishMsg(ctx, m)
	if err != nil {
		return 0, err
	}
	return ack.Sequence, nil
}

// Backlog is what is left to do.
type Backlog struct {
	Unsettled int    // messages
	Floor     uint64 // all messages up to this number are settled
}

// Backlog asks the server.
func (b *Broker) Backlog(ctx context.Context) (Backlog, error) {
	i, err := b.consumer.Info(ctx)
	if err != nil {
		return Backlog{}, err
	}
	return Backlog{int(i.NumPending) + i.NumAckPending, i.AckFloor.Stream}, nil
}

// Letters counts the messages that were dead-lettered or quarantined, by reason.
func (b *Broker) Letters(ctx context.Context) (map[driver.Reason]int, error) {
	s, err := b.js.Stream(ctx, letters)
	if err != nil {
		return nil, err
	}
	n := map[driver.Reason]int{}
	for seq := uint64(1); seq <= s.CachedInfo().State.LastSeq; seq++ {
		m, err := s.GetMsg(ctx, seq)
		if err != nil && !errors.Is(err, jetstream.ErrMsgNotFound) {
			return nil, err
		}
		if err == nil {
			n[driver.Reason(m.Header.Get(driver.LetterReason))]++
		}
	}
	return n, nil
}
