package consumetest_test

import (
	"testing"

	"github.com/semel-go/semel/consume/consumetest"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/memstore"
)

// One call in a test of its own tests an adapter. The Broker that openBroker
// returns publishes messages, connects members and reads the dead letters.
func Example() {
	var openBroker func(t testing.TB) consumetest.Broker
	_ = func(t *testing.T) { // TestTheAdapterPassesTheSuite
		consumetest.Run(t, consumetest.Harness{
			Store: func(testing.TB) store.Store { return memstore.New(nil) },
			Open:  openBroker,
		})
	}
}
