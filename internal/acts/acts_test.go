package acts

import (
	"errors"
	"fmt"
	"testing"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/outbox"
	"github.com/semel-go/semel/store"
)

func TestResult_EachError_IsDoneNotDoneOrUnknown(t *testing.T) {
	t.Parallel()
	for want, errs := range map[string][]error{
		"done":        {nil},
		"partly done": {fmt.Errorf("%w: 3 records are left", ErrPartly)},
		"not done":    {ErrNothingChanged, store.ErrChanged, store.ErrNotFound, &semel.Error{Reason: semel.ErrInvalid}, outbox.ErrNotFound, outbox.ErrState},
		"unknown":     {errors.New("connection reset"), &semel.Error{Reason: semel.ErrUnavailable}},
	} {
		for _, err := range errs {
			if got := Result(err); got != want {
				t.Errorf("%v: %q, want %q", err, got, want)
			}
		}
	}
}
