package semelpulsar_test

import (
	"testing"

	"github.com/apache/pulsar-client-go/pulsar"
	"github.com/semel-go/semel/consume/consumetest"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/memstore"
)

var kinds = map[string]pulsar.SubscriptionType{
	"exclusive": pulsar.Exclusive, "failover": pulsar.Failover, "shared": pulsar.Shared, "key-shared": pulsar.KeyShared,
}

func harness(kind pulsar.SubscriptionType) consumetest.Harness {
	return consumetest.Harness{
		Store: func(testing.TB) store.Store { return memstore.New(nil) }, Patience: patience, Unordered: kind == pulsar.Shared,
		Open: func(t testing.TB) consumetest.Broker { return open(t, kind) },
	}
}

func TestAdapter_PassesTheSuite(t *testing.T) {
	consumetest.Run(t, harness(pulsar.KeyShared))
}

func TestCampaign_OtherSubscriptions_PassTheSuite(t *testing.T) {
	if testing.Short() {
		t.Skip("takes half a minute; one type of subscription is tested in any case")
	}
	for name, kind := range kinds {
		if kind == pulsar.KeyShared {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			consumetest.Run(t, harness(kind))
		})
	}
}
