package kafkatest

import (
	"testing"

	"github.com/semel-go/semel/consume/consumetest"
)

// Consumers come and go while handlers fail and are slow.
func TestRestarts_LoseNothing(t *testing.T) {
	const rounds = 4
	t.Run("kfake", func(t *testing.T) {
		t.Parallel()
		_, seed := fake(t)
		consumetest.ReportRestarts(t, "kfake", harness(func(t testing.TB) consumetest.Broker { return open(t, seed) }), rounds, nil)
	})
	t.Run("Apache Kafka", func(t *testing.T) {
		t.Parallel()
		seed := real(t)
		consumetest.ReportRestarts(t, "Apache Kafka", harness(func(t testing.TB) consumetest.Broker { return open(t, seed) }), rounds, nil)
	})
}

func TestOneStuck_OthersGoOn(t *testing.T) {
	_, seed := fake(t)
	consumetest.ReportStuck(t, "kfake", harness(func(t testing.TB) consumetest.Broker { return open(t, seed) }))
}

func TestOneStuckOnARealKafka_OthersGoOn(t *testing.T) {
	seed := real(t)
	consumetest.ReportStuck(t, "Apache Kafka", harness(func(t testing.TB) consumetest.Broker { return open(t, seed) }))
}
