package semelamqp

import (
	"net"
	"strings"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/semel-go/semel/outbox"
)

// A panic on the goroutine that connects would end the process.
func TestSink_DialPanics_MessageFails(t *testing.T) {
	sink, err := NewSink("amqp://localhost:1", &SinkOptions{Config: amqp.Config{Dial: func(string, string) (net.Conn, error) { panic("no such proxy") }}})
	if err != nil {
		t.Fatal(err)
	}
	defer sink.Close()
	sink.Publish(t.Context(), []outbox.Message{{Topic: "orders", ID: "1"}}, func(_ int, err error) {
		if err == nil || outbox.IsPoison(err) || !strings.Contains(err.Error(), "panicked: no such proxy") {
			t.Errorf("answer %v", err)
		}
	})
}
