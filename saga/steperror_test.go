package saga_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store/memstore"
)

// An error that a step's function got from another call is its own: the step runs again.
func TestStep_ReturnsErrorOfAnotherCall_RunsAgain(t *testing.T) {
	t.Parallel()
	for _, reason := range []error{semel.ErrMismatch, semel.ErrInvalid, semel.ErrNotKept, semel.ErrInProgress, semel.ErrParked} {
		runs := 0
		s := oneStep(t, memstore.New(nil), func(int) time.Duration { return 0 }, func() error {
			if runs++; runs == 1 {
				return fmt.Errorf("the bank's client: %w", &semel.Error{Reason: reason, Operation: "bank"})
			}
			return nil
		})
		_, first := s.Do(t.Context(), "ann", "1", book)
		if out, err := s.Do(t.Context(), "ann", "1", book); err != nil || out != "ok" || runs != 2 {
			t.Errorf("%v: the step ran %d times, errors %v and %v; want it to run again", reason, runs, first, err)
		}
	}
}
