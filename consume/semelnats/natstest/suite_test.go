package natstest

import (
	"testing"

	"github.com/semel-go/semel/consume/consumetest"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/memstore"
)

func harness() consumetest.Harness {
	return consumetest.Harness{
		Store: func(testing.TB) store.Store { return memstore.New(nil) },
		Open:  func(t testing.TB) consumetest.Broker { return open(t, nil) }, Patience: patience,
	}
}

func TestAdapter_PassesTheSuite(t *testing.T) { consumetest.Run(t, harness()) }
