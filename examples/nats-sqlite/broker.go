package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/semel-go/semel/consume"
)

// broker is a NATS server in this process, with its streams on disk. In
// production it runs elsewhere, and all but js and consumer is the operator's.
type broker struct {
	server   *server.Server
	conn     *nats.Conn
	js       jetstream.JetStream
	consumer jetstream.Consumer
}

func startBroker(ctx context.Context, dir string) (_ *broker, err error) {
	dir = filepath.Join(dir, "nats")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	b := &broker{}
	b.server, err = server.NewServer(&server.Options{DontListen: true, JetStream: true, StoreDir: dir, NoLog: true, NoSigs: true})
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			b.close()
		}
	}()
	b.server.Start()
	if !b.server.ReadyForConnections(20 * time.Second) {
		return nil, errors.New("the NATS server is not ready after 20 s")
	}
	if b.conn, err = nats.Connect("", nats.InProcessServer(b.server)); err != nil {
		return nil, err
	}
	if b.js, err = jetstream.New(b.conn); err != nil {
		return nil, err
	}
	for _, c := range []jetstream.StreamConfig{
		{Name: "ORDERS", Subjects: []string{"orders.>"}, MaxAge: 24 * time.Hour}, // less than outcomes are kept
		{Name: "LETTERS", Subjects: []string{"dead-letters.>", "quarantine.>"}},  // somebody reads them
	} {
		if _, err := b.js.CreateOrUpdateStream(ctx, c); err != nil {
			return nil, err
		}
	}
	b.consumer, err = b.js.CreateOrUpdateConsumer(ctx, "ORDERS", jetstream.ConsumerConfig{
		Durable: "booking", AckPolicy: jetstream.AckExplicitPolicy, AckWait: 30 * time.Second, MaxDeliver: -1,
	})
	return b, err
}

func (b *broker) close() {
	if b.conn != nil {
		b.conn.Close()
	}
	b.server.Shutdown()
	b.server.WaitForShutdown()
}

// idle reports whether no message is left.
func (b *broker) idle(ctx context.Context) (bool, error) {
	s, err := b.js.Stream(ctx, "ORDERS")
	if err != nil {
		return false, err
	}
	c, err := b.consumer.Info(ctx)
	if err != nil {
		return false, err
	}
	return c.AckFloor.Stream >= s.CachedInfo().State.LastSeq, nil
}

// send publishes orders, each three times, as a producer does that is not sure
// whether its message has arrived. The key in the header is the order's own,
// the same each time.
func send(ctx context.Context, b *broker, orders int) error {
	for n := range 3 * orders {
		o := order{ID: fmt.Sprintf("order-%d", n%orders+1), Item: "book", Cents: 1990}
		body, err := json.Marshal(o)
		if err != nil {
			return err
		}
		m := nats.NewMsg("orders.placed")
		m.Data = body
		m.Header.Set(consume.KeyHeader, o.ID)
		if _, err := b.js.PublishMsg(ctx, m); err != nil {
			return err
		}
	}
	return nil
}
