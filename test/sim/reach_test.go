package sim

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/semel-go/semel"
)

// place is something that a good run of seeds has come by.
type place uint8

const (
	ownClaimFound place = iota
	zombieRefused
	lateRefused
	claimRaced
	swapRaced
	expiredRestarted
	swept
	floorUsed
	renewed
	renewalSaved
	outageRefused
	jumpedForward
	jumpedBack
	crashedInHand
	frozenPastLease
	zombieEffect
	effectVoided
	doubledEffect
	tokenTwice
	tokenExpired
	ticketFresh
	ticketSame
	ticketDone
	waiterWoken
	waiterFailed
	mismatchInFlight
	mismatchDone
	givenBack
	panicSettled
	goexitSettled
	reconciledYes
	reconciledNo
	reconciledFailed
	resolved
	resolveRefused
	completedEarly
	notKept
	stepReplayed
	stepRecorded
	stepInDoubt
	stepRefused
	reran
	messageTwice
	messageLost
	messageLate
	messageStalled
	callerLeft
	txCommitted
	txRolledBack
	txCommitLost
	txBroken
	places
)

var placeNames = [places]string{
	"own claim found after a lost reply", "zombie's settlement refused", "late message refused", "claim raced", "swap raced",
	"expired and begun anew", "swept", "fence above the swept one", "renewed", "renewal saved a long handler", "refused by an outage",
	"clock forward", "clock back", "crash with a claim in hand", "frozen past its lease", "zombie's effect", "effect voided",
	"effect twice under retry", "token twice", "token expired", "ticket fresh", "ticket again", "ticket with a result", "waiter got the outcome",
	"waiter told of the failure", "mismatch in flight", "mismatch with an outcome", "attempt given back", "panic settled", "Goexit settled",
	"reconciled: happened", "reconciled: did not happen", "reconciled: failed", "resolved by the operator", "operator too late",
	"completed early", "outcome too large", "step replayed", "step recorded", "step in doubt ran again", "step's record refused", "rerun", "message twice", "reply lost", "message late", "message stalled", "caller left",
	"transaction committed", "transaction rolled back", "commit's reply lost", "transaction broken",
}

// eventNames are the events that seeds must reach: each kind, refusals by their
// reason, and what happens in the background apart from the ends of calls.
var eventNames = [...]string{
	semel.EventExecuted, semel.EventFailed, semel.EventReleased, semel.EventParked, semel.EventReplayed,
	semel.EventNotStored, semel.EventUnprotected, semel.EventTakenOver, semel.EventReconciled,
	"in the background: " + semel.EventFailed, "in the background: " + semel.EventReleased, "in the background: " + semel.EventParked,
	semel.ErrInProgress.Error(), semel.ErrReleased.Error(), semel.ErrMismatch.Error(), semel.ErrParked.Error(),
	semel.ErrExpired.Error(), semel.ErrUnavailable.Error(), semel.ErrCanceled.Error(), semel.ErrLeaseLost.Error(),
}

// eventIndex is the place of an event in eventNames.
func eventIndex(e *semel.Event) int {
	name := e.Kind
	reason, ok := errors.AsType[*semel.Error](e.Err)
	switch {
	case e.Kind == semel.EventRefused && ok, e.Kind == semel.EventNotStored && ok && errors.Is(reason.Reason, semel.ErrLeaseLost):
		name = reason.Reason.Error()
	case !e.EndsCall && slices.Contains([]string{semel.EventFailed, semel.EventReleased, semel.EventParked}, e.Kind):
		name = "in the background: " + e.Kind
	}
	i := slices.Index(eventNames[:], name)
	if i < 0 {
		panic("eventNames lacks " + name)
	}
	return i
}

// tally counts the places and the Guards' events of many seeds.
type tally struct {
	seeds, ops, calls, runs, effects, answers int64
	steps, twice                              int64        // steps that ran or were replayed; those that ran after they were recorded, or twice under Park
	played, paid, doubles                     [mixes]int64 // by policy: operations, effects, and those that were not the first
	cuts, failOvers, losses                   int64        // of the replication; losses: fail-overs that took something back
	place                                     [places]int64
	event                                     [len(eventNames)]int64
}

func (t *tally) add(o *tally) {
	t.seeds, t.ops, t.calls = t.seeds+o.seeds, t.ops+o.ops, t.calls+o.calls
	t.steps, t.twice = t.steps+o.steps, t.twice+o.twice
	t.cuts, t.failOvers, t.losses = t.cuts+o.cuts, t.failOvers+o.failOvers, t.losses+o.losses
	t.runs, t.effects, t.answers = t.runs+o.runs, t.effects+o.effects, t.answers+o.answers
	for i := range mixes {
		t.played[i], t.paid[i], t.doubles[i] = t.played[i]+o.played[i], t.paid[i]+o.paid[i], t.doubles[i]+o.doubles[i]
	}
	for i, n := range o.place {
		t.place[i] += n
	}
	for i, n := range o.event {
		t.event[i] += n
	}
}

// missing names what was never reached.
func (t *tally) missing() (names []string) {
	for i, n := range t.place {
		if n == 0 {
			names = append(names, placeNames[i])
		}
	}
	for i, name := range eventNames {
		if t.event[i] == 0 {
			names = append(names, "event: "+name)
		}
	}
	return names
}

func (t *tally) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d seeds, %d operations (%d calls), %d runs, %d effects, %d steps (%d twice), %d answers compared", t.seeds, t.ops, t.calls, t.runs, t.effects, t.steps, t.twice, t.answers)
	for i, n := range t.place {
		fmt.Fprintf(&b, "; %s %d", placeNames[i], n)
	}
	for i, name := range eventNames {
		fmt.Fprintf(&b, "; event %q %d", name, t.event[i])
	}
	return b.String()
}

// reach is the scheduler's; saw is for the others.
func (w *world) reach(p place) { w.tally.place[p]++ }

func (w *world) saw(p place) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.tally.place[p]++
}

// observe is told by the Guards, on goroutines of theirs.
func (w *world) observe(_ context.Context, e semel.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.tally.event[eventIndex(&e)]++
}
