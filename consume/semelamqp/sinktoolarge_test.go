package semelamqp_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/semel-go/semel/consume/semelamqp"
	"github.com/semel-go/semel/consume/semelamqp/amqptest"
	"github.com/semel-go/semel/outbox"
	"github.com/semel-go/semel/store"
)

// RabbitMQ never takes a message that is larger than its max_message_size, and AMQP none
// whose headers do not fit into a frame. Sent again for ever, it would hold its order key.
func TestSink_MessageTooLarge_IsPoison(t *testing.T) {
	b, server := open(t, semelamqp.Quorum), amqptest.Shared(t)
	const most = 8 << 20 // instead of 128 MiB
	before, err := server.Eval("application:get_env(rabbit, max_message_size, 134217728)")
	if err == nil {
		_, err = server.Eval(fmt.Sprintf("application:set_env(rabbit, max_message_size, %d)", most))
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := server.Eval(fmt.Sprintf("application:set_env(rabbit, max_message_size, %s)", before)); err != nil {
			t.Error(err)
		}
	})
	for name, m := range map[string]outbox.Message{
		"headers": {Topic: b.name, ID: "1", Headers: []store.Header{{Name: "a", Value: strings.Repeat("v", 200_000)}}},
		"body":    {Topic: b.name, ID: "2", Body: make([]byte, most+1)},
	} {
		sinkTo(t, nil).Publish(t.Context(), []outbox.Message{m}, func(_ int, err error) {
			if !outbox.IsPoison(err) {
				t.Errorf("%s: error %v, want poison", name, err)
			}
		})
	}
}
