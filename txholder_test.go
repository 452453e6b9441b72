package semel_test

import (
	"context"
	"testing"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/driver"
	"github.com/semel-go/semel/store"
)

type runName struct{}

// The record of a transaction names its run, and the event of a duplicate says which
// run the record is of.
func TestRunIn_TxHolder_RecordAndEventsOfDuplicatesHaveIt(t *testing.T) {
	var events []semel.Event
	g, tx := guard(t, clockless{}, &semel.Options{
		Holder:   "here",
		TxHolder: func(ctx context.Context, holder string) string { return ctx.Value(runName{}).(string) + " " + holder },
		Observe:  func(_ context.Context, e semel.Event) { events = append(events, e) },
	}), newTx()
	in := func(name string, call semel.Call) { // its error is in the event
		_, _ = driver.RunIn(context.WithValue(t.Context(), runName{}, name), g, tx, call, tx.effect(nil))
	}
	in("first", ann("k"))
	in("second", ann("k"))
	in("third", paying("k", semel.JSON(1)))
	want := []semel.Event{{Kind: semel.EventExecuted}, {Kind: semel.EventReplayed, Holder: "first here"}, {Kind: semel.EventRefused, Holder: "first here"}}
	for i, w := range want {
		if len(events) != len(want) || events[i].Kind != w.Kind || events[i].Holder != w.Holder {
			t.Fatalf("the events are %+v, want %+v", events, want)
		}
	}

	released := store.Key{Operation: "pay", Tenant: "ann", Value: "r"}
	p := store.Proposal{Key: released, State: store.Released, Attempt: 1}
	tx.records[released] = p.Insert(tx.now, 0)
	in("fourth", ann("r"))
	if got := tx.records[released].Holder; got != "fourth here" {
		t.Errorf("the holder of a next attempt is %q", got)
	}
}
