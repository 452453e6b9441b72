package saga

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/semel-go/semel/internal/history"
	"github.com/semel-go/semel/internal/protocol"
	"github.com/semel-go/semel/store"
)

// roomSteps is how many steps of the record the steps of a saga leave for operators' decisions.
// Of protocol.SagaReserveBytes, decisions leave a half for compensations.
const roomSteps = 100

// eventRoom is what a record has left for the event, in bytes, when Await begins to wait.
const eventRoom = 2 << 10

// checkRoom refuses a step before it starts if the record might have no room for the
// compensations after it. The caller holds mu.
func (r *Run) checkRoom(u *use) error {
	var soon []string
	for _, s := range r.started { // u is the last
		if !s.event || r.recorded[s.name+eventPart] == nil {
			soon = append(soon, s.name)
		}
		if s.undo != nil {
			soon = append(soon, s.name+undoPart)
		}
	}
	count, size, _ := r.driver.RecordSize(soon)
	count += u.marks
	room := "compensations"
	if u.event && r.recorded[u.name+untilPart] == nil {
		size, room = size+eventRoom, "its event and compensations"
	}
	if count <= store.MaxSteps-roomSteps && size <= store.MaxStepBytes-protocol.SagaReserveBytes {
		return nil
	}
	u.state = noEffect
	return r.stick(fmt.Errorf("step %q does not start, because it could leave no room for %s: with them the record would have %d steps of %d bytes, and it keeps at most %d of %d; turn the saga back; a new version of the definition needs fewer steps or smaller results",
		u.name, room, count, size, store.MaxSteps, store.MaxStepBytes))
}

// unmark records that a Parked step has not happened. Without that record the saga is
// parked, which is safe.
func (r *Run) unmark(ctx context.Context, u *use) {
	n := 1
	for r.recorded[fmt.Sprintf("%s%s%d", u.name, nonePart, n)] != nil {
		n++
	}
	_ = r.mark(context.WithoutCancel(ctx), fmt.Sprintf("%s%s%d", u.name, nonePart, n))
	r.mu.Lock()
	defer r.mu.Unlock()
	u.none = n
}

const (
	// frequentAttempts is how many attempts of a Parked step without effect have the pauses of
	// Definition.Backoff only. By default these take about 95 minutes.
	frequentAttempts = 100
	// spareShare is the part of the time since the first attempt that a later pause lasts at
	// least. So the saga goes on late by that part of an outage.
	spareShare = 20
	// longestSpare is the longest of these pauses.
	longestSpare = 24 * time.Hour
)

// spare is how long the saga must wait at least, so that the attempts of a Parked step without
// effect do not use up the record during an outage. Each keeps two steps of it, so that there is
// room for about 440: these last for 7 hours if the pauses are a minute, and for 8 months if
// they grow with the outage. The caller holds mu.
func (r *Run) spare() time.Duration {
	if r.back != nil {
		return 0 // compensations keep their own pauses
	}
	wait := time.Duration(0)
	for _, u := range r.started {
		if first := r.recorded[u.name+begunPart+"1"]; first != nil && u.none > frequentAttempts {
			wait = max(wait, r.driver.Now().Sub(first.Recorded)/spareShare)
		}
	}
	return min(wait, longestSpare)
}

// checkSize refuses an input or an event that the saga could not keep. It is called in the step
// that records it.
func (r *Run) checkSize(kind string, size int) error {
	_, kept, reserved := r.driver.RecordSize(nil)
	left := max(0, store.MaxStepBytes-protocol.SagaReserveBytes-kept-reserved)
	most := min(maxInput, r.core.driver.Options().MaxOutcome)
	switch {
	case size > most:
		return fmt.Errorf("saga: the %s has %d bytes; at most %d are allowed, so keep large ones elsewhere", kind, size, most)
	case size > left:
		return fmt.Errorf("saga: the %s has %d bytes, and the saga's record has %d left for it, because the results of steps have used the others; keep large ones elsewhere", kind, size, left)
	}
	return nil
}

// roomFor refuses a decision that uses the room of compensations. The steps have left roomSteps
// for all decisions: one for the record that the saga turns back, and, until it does, two for the
// operator's decision to turn it back.
func roomFor(recorded, added []store.Step) error {
	decisions, size, most := 0, 0, roomSteps-3
	for _, s := range slices.Concat(recorded, added) {
		size += s.Size()
		switch {
		case s.Name == backStep:
			most = roomSteps - 1
		case isDecision(s.Name):
			decisions++
		}
	}
	switch {
	case decisions > most && most < roomSteps-1:
		return fmt.Errorf("with this decision the record would have %d steps of operators' decisions, and it keeps at most %d before the saga turns back: turn the saga back", decisions, most)
	case decisions > most:
		return fmt.Errorf("with this decision the record would have %d steps of operators' decisions, and it keeps at most %d", decisions, most)
	case size > store.MaxStepBytes-protocol.SagaReserveBytes/2:
		return fmt.Errorf("with this decision the steps of the record would have %d bytes, and no room for compensations, because at most %d are allowed: give a smaller result or a shorter reason", size, store.MaxStepBytes-protocol.SagaReserveBytes/2)
	}
	return nil
}

// isDecision says whether a step is a part of an operator's decision. Answers about Parked steps
// are not: each such step has left room for its answer.
func isDecision(step string) bool {
	return strings.HasPrefix(step, history.SagaOperator) || strings.Contains(step, history.SagaSkip) || strings.Contains(step, history.SagaUnskip)
}
