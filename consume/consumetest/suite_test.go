package consumetest

import (
	"testing"

	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/memstore"
)

func inMemory(testing.TB) store.Store { return memstore.New(nil) }

func TestSuite_Queue_Passes(t *testing.T) {
	Run(t, Harness{Store: inMemory, Open: func(testing.TB) Broker { return newQueue() }})
}

func TestSuite_Log_Passes(t *testing.T) {
	Run(t, Harness{Store: inMemory, Open: func(testing.TB) Broker { return newPartitions() }})
}
