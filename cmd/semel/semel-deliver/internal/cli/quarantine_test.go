package cli

import (
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/semel-go/semel/consume"
)

// quarantineReader reads the keys of the messages that have come to the quarantine so far.
func quarantineReader(t *testing.T, js jetstream.JetStream) func(t *testing.T) []string {
	t.Helper()
	c, err := js.CreateOrUpdateConsumer(t.Context(), "LETTERS", jetstream.ConsumerConfig{
		Durable: "reader", FilterSubject: "quarantine.>", AckPolicy: jetstream.AckNonePolicy,
	})
	if err != nil {
		t.Fatal(err)
	}
	var keys []string
	return func(t *testing.T) []string {
		t.Helper()
		batch, err := c.FetchNoWait(10_000)
		if err != nil {
			t.Fatal(err)
		}
		for m := range batch.Messages() {
			keys = append(keys, m.Headers().Get(consume.KeyHeader))
		}
		if err := batch.Error(); err != nil {
			t.Fatal(err)
		}
		return keys
	}
}
