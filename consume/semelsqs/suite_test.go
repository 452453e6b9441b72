package semelsqs_test

import (
	"testing"

	"github.com/semel-go/semel/consume/consumetest"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/memstore"
)

// kinds are the kinds of queues, and whether they are FIFO queues.
var kinds = map[string]bool{"standard": false, "fifo": true}

func harness(fifo bool) consumetest.Harness {
	return consumetest.Harness{
		Store: func(testing.TB) store.Store { return memstore.New(nil) }, Patience: patience, Unordered: !fifo,
		Open: func(t testing.TB) consumetest.Broker { return open(t, fifo) },
	}
}

func TestAdapter_PassesTheSuite(t *testing.T) {
	for name, fifo := range kinds {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			consumetest.Run(t, harness(fifo))
		})
	}
}

func TestOneStuck_OthersGoOn(t *testing.T) {
	consumetest.ReportStuck(t, "SQS (ElasticMQ), FIFO queue", harness(true))
}
