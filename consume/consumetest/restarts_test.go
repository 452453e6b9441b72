package consumetest

import "testing"

func TestCampaign_Restarts_LoseNothing(t *testing.T) {
	rounds := 12
	if testing.Short() {
		rounds = 4
	}
	for name, open := range map[string]func() Broker{"a queue in memory": func() Broker { return newQueue() }, "a log in memory": func() Broker { return newPartitions() }} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := Harness{Store: inMemory, Open: func(testing.TB) Broker { return open() }}
			ReportRestarts(t, name, h, rounds, nil)
			ReportStuck(t, name, h)
		})
	}
}
