package semel_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/memstore"
)

func TestEventOutcome_EachEnd_HasOneWord(t *testing.T) {
	refused := func(reason error) error { return &semel.Error{Reason: reason, Operation: pay} }
	for _, c := range []struct {
		event semel.Event
		want  string
	}{
		{semel.Event{Kind: semel.EventExecuted}, "executed"},
		{semel.Event{Kind: semel.EventFailed, Err: errBoom}, "failed"},
		{semel.Event{Kind: semel.EventReleased, Err: errBoom}, "released"},
		{semel.Event{Kind: semel.EventParked, Err: errBoom}, "parked"},
		{semel.Event{Kind: semel.EventReplayed}, "replayed"},
		{semel.Event{Kind: semel.EventUnprotected}, "unprotected"},
		{semel.Event{Kind: semel.EventNotStored, Err: refused(semel.ErrOutcomeNotStored)}, "not_stored"},
		{semel.Event{Kind: semel.EventNotStored, Err: refused(semel.ErrLeaseLost)}, "lease_lost"},
		{semel.Event{Kind: semel.EventRefused, Err: refused(semel.ErrInProgress)}, "refused_in_progress"},
		{semel.Event{Kind: semel.EventRefused, Err: refused(semel.ErrReleased)}, "refused_in_progress"},
		{semel.Event{Kind: semel.EventRefused, Err: refused(semel.ErrMismatch)}, "refused_mismatch"},
		{semel.Event{Kind: semel.EventRefused, Err: refused(semel.ErrParked)}, "refused_parked"},
		{semel.Event{Kind: semel.EventRefused, Err: refused(semel.ErrUnavailable)}, "refused_store_unavailable"},
		{semel.Event{Kind: semel.EventRefused, Err: refused(semel.ErrCanceled)}, "refused_canceled"},
		{semel.Event{Kind: semel.EventRefused, Err: refused(store.ErrCorrupt)}, "refused"},
	} {
		if got := c.event.Outcome(); got != "" {
			t.Errorf("%s (%v) does not end a call, but has the outcome %q", c.event.Kind, c.event.Err, got)
		}
		c.event.EndsCall = true
		if got := c.event.Outcome(); got != c.want || !slices.Contains(semel.EventOutcomes(), got) {
			t.Errorf("%s (%v): the outcome is %q, want %q, one of EventOutcomes", c.event.Kind, c.event.Err, got, c.want)
		}
	}
}

// A call that runs without a record ends once: not with the refusal of the store and
// again with its run.
func TestObserve_Unprotected_OneEndingEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var seen events
		down := &hooks{Store: memstore.New(nil), claim: func(context.Context, store.Proposal) (store.Found, error) { return store.Found{}, errBoom }}
		g := guard(t, down, &semel.Options{UnprotectedOnOutage: true, Observe: seen.observe})
		_, _ = g.Run(t.Context(), ann("k"), answer("bare"))
		time.Sleep(time.Minute) // the claim that got no answer is not given back any more
		var ends []string
		for _, e := range seen.all {
			if o := e.Outcome(); o != "" {
				ends = append(ends, o)
			}
		}
		if !slices.Equal(ends, []string{"unprotected"}) {
			t.Errorf("the call ended as %q, want once, as unprotected", ends)
		}
	})
}

// The time of a run is that of its function. A step whose result is recorded has none.
func TestObserve_RecordedStep_TookNothing(t *testing.T) {
	var seen events
	g := guard(t, memstore.New(nil), &semel.Options{Observe: seen.observe})
	for range 2 {
		_, _ = g.Run(t.Context(), ann("k"), func(ctx context.Context, x *semel.Execution) (store.Outcome, error) {
			_, err := g.Run(ctx, x.Step("bank"), answer("paid"))
			if err != nil {
				return store.Outcome{}, err
			}
			return store.Outcome{}, errBoom
		})
	}
	replays := 0
	for _, e := range seen.all {
		if e.Kind == semel.EventReplayed {
			replays++
			if e.Took != 0 || !e.EndsCall || e.Operation != pay+"#bank" {
				t.Errorf("the recorded step has the event %+v, want the end of a call that ran nothing", e)
			}
		}
	}
	if replays != 1 {
		t.Errorf("%d events of recorded steps, want 1", replays)
	}
}
