package amqptest

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

func TestMain(m *testing.M) { os.Exit(Main(m)) }

func TestServer_KilledAndStarted_HasItsMessages(t *testing.T) {
	s := Start(t)
	for _, kind := range []string{"classic", "quorum"} {
		ch := dial(t, s)
		if _, err := ch.QueueDeclare(kind, true, false, false, false, amqp.Table{"x-queue-type": kind}); err != nil {
			t.Fatal(err)
		}
		if err := ch.Confirm(false); err != nil {
			t.Fatal(err)
		}
		for i := range 5 {
			c, err := ch.PublishWithDeferredConfirm("", kind, true, false, amqp.Publishing{DeliveryMode: amqp.Persistent, Body: fmt.Append(nil, i)})
			if err != nil || !c.Wait() {
				t.Fatal(err)
			}
		}
		if err := ch.Qos(2, 0, false); err != nil {
			t.Fatal(err)
		}
		ds, err := ch.Consume(kind, "", false, false, false, false, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := (<-ds).Ack(false); err != nil {
			t.Fatal(err)
		}
		<-ds
		count(t, s, 4, kind)
	}
	<-time.After(5 * time.Second) // the quorum queue needs that age: see Kill
	s.Kill()
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	count(t, s, 8, "classic", "quorum", "none")
}

func dial(t *testing.T, s *Server) *amqp.Channel {
	t.Helper()
	conn, err := amqp.Dial(s.URL())
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

// count waits until queues have so many messages.
func count(t *testing.T, s *Server, want int, queues ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	for {
		n, err := s.Messages(queues...)
		if err == nil && n == want {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("%v have %d messages, error %v; want %d", queues, n, err, want)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

func TestEval_ExpressionFails_Error(t *testing.T) {
	s := Shared(t)
	if v, err := s.Eval("1 + 2"); err != nil || v != "3" {
		t.Errorf("1 + 2 = %q, error %v; want 3", v, err)
	}
	for _, expr := range []string{"1 + a", "1 +", "exit(bad)"} {
		if v, err := s.Eval(expr); err == nil {
			t.Errorf("%s = %q, want an error", expr, v)
		}
	}
	other := &Server{evalPort: s.evalPort, token: "another"}
	if v, err := other.Eval("1"); err == nil {
		t.Errorf("with a wrong token: %q, want an error", v)
	}
}
