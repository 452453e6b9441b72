//go:build unix

package semelpulsar_test

import (
	"context"
	"testing"

	"github.com/apache/pulsar-client-go/pulsar"
	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/consume/consumetest"
	"github.com/semel-go/semel/store/memstore"
)

// Waiting for messages, or for a broker that ends each connection, uses little CPU. The test
// is not parallel, and so runs before those that are.
func TestServe_NoMessages_UsesLittleCPU(t *testing.T) {
	b := open(t, pulsar.Shared)
	c := consumer(t, memstore.New(nil), keyHeader, func(context.Context, *semel.Execution, *consume.Message) error { return nil }, consume.Options{})
	m := b.member(t)
	serve(t, c, m.Source)
	b.Publish(t, keyed("k"))
	until(t, "settled", func() bool { return b.Unsettled(t) == 0 })
	consumetest.ReportIdle(t, "Pulsar", "a consumer that waits for messages")
	m.cut(true)
	consumetest.ReportIdle(t, "Pulsar", "a consumer whose broker cannot be reached")
}
