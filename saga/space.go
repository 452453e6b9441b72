package saga

import (
	"fmt"
	"slices"
	"strings"

	"github.com/semel-go/semel/internal/history"
	"github.com/semel-go/semel/store"
)

// Steps and decisions leave so much room in the record for later ones. A decision that turns
// the saga back may use the steps. Results of steps leave twice as many bytes.
const (
	roomSteps = 100
	roomBytes = 64 << 10
)

// checkRoom refuses a step before it starts if the record might have no room for the
// compensations after it. The caller holds mu.
func (r *Run) checkRoom(u *use) error {
	count, size := r.driver.Kept()
	count += 1 + u.marks
	for _, s := range r.started { // u is the last
		if s.undo != nil {
			count, size = count+1, size+(&store.Step{Name: s.name + undoPart}).Size()
		}
	}
	if count <= store.MaxSteps-roomSteps && size <= store.MaxStepBytes-2*roomBytes {
		return nil
	}
	u.state = noEffect
	return r.stick(fmt.Errorf("step %q does not start, because it could leave no room for compensations: with them the record would have %d steps of %d bytes, and it keeps at most %d of %d; turn the saga back, and make sagas with fewer steps or smaller results",
		u.name, count, size, store.MaxSteps, store.MaxStepBytes))
}

// checkSize refuses an input or an event that the saga could not keep.
func (r *Run) checkSize(kind string, size int) error {
	_, kept := r.driver.Kept()
	if most := min(maxInput, r.core.driver.Options().MaxOutcome, max(0, store.MaxStepBytes-2*roomBytes-kept-512)); size > most {
		return fmt.Errorf("saga: the %s has %d bytes; at most %d are allowed, so keep large ones elsewhere", kind, size, most)
	}
	return nil
}

// roomFor refuses a decision after which the record had no room for the compensations, or
// for the decision to turn back. The steps have left room for that one.
func roomFor(recorded, added []store.Step, stuck history.StuckSaga, back bool) error {
	count, size := len(recorded)+len(added)+len(stuck.Steps), 0
	if !back {
		count += roomSteps
		for _, s := range recorded {
			if !strings.Contains(s.Name, ":") {
				count++ // its compensation
			}
		}
	}
	for _, s := range slices.Concat(recorded, added) {
		size += s.Size()
	}
	if count > store.MaxSteps || size > store.MaxStepBytes-roomBytes {
		return fmt.Errorf("the saga has %d steps recorded, and with this decision its record had no room for later ones, because it keeps at most %d steps of %d bytes in all: turn the saga back, or give a smaller result",
			len(recorded), store.MaxSteps, store.MaxStepBytes)
	}
	return nil
}
