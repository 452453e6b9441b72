package moved_test

import (
	"errors"
	"testing"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
)

// The old store does not answer, but the call has a record in the new one.
func TestClaim_OldStoreDown_RecordOfNewStoreIsNotRunUnprotected(t *testing.T) {
	for _, state := range []store.State{store.Processing, store.Completed} {
		to, from := stores()
		put(t, to, key("k"), state)
		g, err := semel.New(join(t, to, down{from}), &semel.Options{UnprotectedOnOutage: true})
		if err != nil {
			t.Fatal(err)
		}
		s := &service{guard: g}
		if _, err := s.call("k"); !errors.Is(err, semel.ErrUnavailable) || s.runs != 0 {
			t.Errorf("%v in the new store: %d runs, %v; want ErrUnavailable", state, s.runs, err)
		}
		if _, err := s.call("new"); err != nil || s.runs != 1 {
			t.Errorf("a new call: %d runs, %v; want one without a record", s.runs, err)
		}
	}
}
