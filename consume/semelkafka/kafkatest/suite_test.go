package kafkatest

import (
	"testing"

	"github.com/semel-go/semel/consume/consumetest"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/memstore"
)

func harness(open func(t testing.TB) consumetest.Broker) consumetest.Harness {
	return consumetest.Harness{Store: func(testing.TB) store.Store { return memstore.New(nil) }, Open: open, Patience: patience}
}

func TestAdapter_PassesTheSuite(t *testing.T) {
	consumetest.Run(t, harness(func(t testing.TB) consumetest.Broker {
		_, seed := fake(t)
		return open(t, seed)
	}))
}

func TestAdapter_OnARealKafka_PassesTheSuite(t *testing.T) {
	seed := real(t)
	consumetest.Run(t, harness(func(t testing.TB) consumetest.Broker { return open(t, seed) }))
}
