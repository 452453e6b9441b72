package semelamqp_test

import (
	"testing"

	"github.com/semel-go/semel/consume/consumetest"
	"github.com/semel-go/semel/consume/semelamqp"
	"github.com/semel-go/semel/consume/semelamqp/amqptest"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/memstore"
)

func harness(kind semelamqp.Kind) consumetest.Harness {
	return consumetest.Harness{
		Store: func(testing.TB) store.Store { return memstore.New(nil) }, Patience: patience,
		Open: func(t testing.TB) consumetest.Broker { return open(t, kind) },
	}
}

// Consumers come and go, and in the group the broker closes their channels, too, while
// handlers fail and are slow.
func TestCampaign_Restarts_LoseNothing(t *testing.T) {
	rounds := 12
	if testing.Short() {
		rounds = 4
	}
	for _, kind := range []semelamqp.Kind{semelamqp.Classic, semelamqp.Quorum} {
		t.Run(string(kind), func(t *testing.T) {
			consumetest.ReportRestarts(t, "RabbitMQ, "+string(kind)+" queue", harness(kind), rounds, func(round int) {
				if round%5 != 4 {
					return
				}
				if _, err := amqptest.Shared(t).Eval(closeConsumers); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// closeConsumers ends all channels that have a consumer. No other test runs meanwhile.
const closeConsumers = `[exit(proplists:get_value(channel_pid, C), kill) || C <- rabbit_amqqueue:consumers_all(<<"/">>)]`

func TestOneStuck_OthersGoOn(t *testing.T) {
	consumetest.ReportStuck(t, "RabbitMQ, quorum queue", harness(semelamqp.Quorum))
}
