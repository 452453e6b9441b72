package protocol_test

import (
	"testing"

	"github.com/semel-go/semel/internal/protocol"
	"github.com/semel-go/semel/store"
)

func TestDecisionInterrupted_EachHistory(t *testing.T) {
	const operator, worker = protocol.SagaOperator + "ann: again", "host/1"
	ended := func(holder string, in store.State) store.FormerOwner {
		return store.FormerOwner{Holder: holder, State: in}
	}
	for name, c := range map[string]struct {
		owners []store.FormerOwner
		want   bool
	}{
		"none":                                {nil, false},
		"a run that died":                     {[]store.FormerOwner{ended(worker, store.Processing)}, false},
		"stuck, decided":                      {[]store.FormerOwner{ended(worker, store.Unknown), ended(operator, store.Released)}, false},
		"stuck, decided, run died":            {[]store.FormerOwner{ended(worker, store.Unknown), ended(operator, store.Released), ended(worker, store.Processing)}, false},
		"interrupted":                         {[]store.FormerOwner{ended(worker, store.Unknown), ended(operator, store.Processing)}, true},
		"interrupted, swept":                  {[]store.FormerOwner{ended(worker, store.Unknown), ended(operator, store.Processing), ended(operator, store.Released)}, true},
		"interrupted, run died":               {[]store.FormerOwner{ended(worker, store.Unknown), ended(operator, store.Processing), ended(worker, store.Processing)}, true},
		"interrupted, run died, swept":        {[]store.FormerOwner{ended(operator, store.Processing), ended(worker, store.Processing), ended(worker, store.Released)}, true},
		"interrupted, stuck, decided, paused": {[]store.FormerOwner{ended(operator, store.Processing), ended(worker, store.Unknown), ended(operator, store.Released), ended(worker, store.Released)}, false},
		"interrupted, stuck, decided":         {[]store.FormerOwner{ended(operator, store.Processing), ended(worker, store.Unknown), ended(operator, store.Released)}, false},
	} {
		if got := protocol.DecisionInterrupted(store.Key{Operation: "order" + protocol.SagaSuffix}, c.owners); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
		if protocol.DecisionInterrupted(store.Key{Operation: "order"}, c.owners) {
			t.Errorf("%s: a call that is no saga is interrupted", name)
		}
	}
}
