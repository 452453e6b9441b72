package semelkafka

import (
	"context"
	"testing"

	"github.com/semel-go/semel/consume"
)

// The loop has no caller that could recover, so a panic would end the process.
func TestServeBatches_ObservePanics_GoesOn(t *testing.T) {
	l := &scripted{}
	b := looping(t, l, consume.Options{Observe: func(context.Context, consume.Event) { panic("boom") }}, 2)
	b.turn(t)
	if len(l.given) != 2 || len(b.held) > 0 {
		t.Errorf("the ledger was given %q, and %d order keys wait; want two messages, settled", l.given, len(b.held))
	}
}
