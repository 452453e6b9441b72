package main

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"strconv"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/examples/internal/exampletest"
	"github.com/semel-go/semel/internal/proctest"
)

// Variables that make this binary a NATS server.
const (
	brokerVar    = "SEMEL_EXAMPLE_BROKER"     // its port
	brokerDirVar = "SEMEL_EXAMPLE_BROKER_DIR" // its files
)

const accountHeader = "account"

// serveBroker is a NATS server that keeps its messages in files.
func serveBroker(port, dir string) error {
	n, err := strconv.Atoi(port)
	if err != nil {
		return err
	}
	s, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: n, JetStream: true, StoreDir: dir, NoSigs: true, NoLog: true})
	if err != nil {
		return err
	}
	s.Start()
	s.WaitForShutdown()
	return nil
}

// broker is a NATS server in a process of its own, which keeps its messages when it is
// killed.
type broker struct {
	*program
	url string
	js  jetstream.JetStream
}

func startBroker(t *testing.T) *broker {
	t.Helper()
	port, err := proctest.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	b := &broker{url: fmt.Sprintf("nats://127.0.0.1:%d", port)}
	b.program = &program{t: t, command: func() *exec.Cmd {
		return proctest.Self(t, brokerVar+"="+fmt.Sprint(port), brokerDirVar+"="+dir)
	}}
	b.start()
	conn, err := nats.Connect(b.url, nats.RetryOnFailedConnect(true), nats.MaxReconnects(-1), nats.ReconnectWait(20*time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	if b.js, err = jetstream.New(conn, jetstream.WithDefaultTimeout(2*time.Second)); err != nil {
		t.Fatal(err)
	}
	b.await()
	for name, subjects := range map[string][]string{"PAYMENTS": {topic}, "COPIES": {"dead-letters." + group, "quarantine." + group}} {
		if _, err := b.js.CreateStream(t.Context(), jetstream.StreamConfig{Name: name, Subjects: subjects, MaxAge: time.Hour}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := b.js.CreateConsumer(t.Context(), "PAYMENTS", jetstream.ConsumerConfig{
		Durable: group, AckPolicy: jetstream.AckExplicitPolicy, AckWait: 2 * time.Second, MaxDeliver: -1, MaxAckPending: 10_000,
	}); err != nil {
		t.Fatal(err)
	}
	return b
}

// await waits until the server answers.
func (b *broker) await() {
	b.t.Helper()
	exampletest.WaitFor(b.t, "the broker answers", func() bool {
		_, err := b.js.AccountInfo(b.t.Context())
		return err == nil
	})
}

// publish sends the body of a payment. An error says that it may not have arrived.
func (b *broker) publish(t *testing.T, p payment, body any) error {
	t.Helper()
	m := nats.NewMsg(topic)
	m.Header.Set(consume.KeyHeader, p.ID)
	m.Header.Set(accountHeader, p.Account)
	var err error
	if m.Data, err = json.Marshal(body); err != nil {
		return err
	}
	_, err = b.js.PublishMsg(t.Context(), m)
	return err
}

// handled reports whether the group has acknowledged all messages.
func (b *broker) handled(t *testing.T) bool {
	t.Helper()
	c, err := b.js.Consumer(t.Context(), "PAYMENTS", group)
	if err != nil {
		return false
	}
	i := c.CachedInfo()
	return i.NumPending == 0 && i.NumAckPending == 0
}

// copies counts the messages in the dead letters and the quarantine.
func (b *broker) copies(t *testing.T) int {
	t.Helper()
	s, err := b.js.Stream(t.Context(), "COPIES")
	if err != nil {
		t.Fatal(err)
	}
	return int(s.CachedInfo().State.Msgs)
}
