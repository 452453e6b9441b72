package saga

import (
	"errors"
	"fmt"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/handlererr"
	"github.com/semel-go/semel/internal/history"
)

// step is the call of a step. If an operator has skipped it, the call finds the skip.
func (r *Run) step(name string) semel.Call {
	if skip := r.skips[name]; skip != nil {
		name = skip.Name
	}
	return r.x.Step(name)
}

// innermost is the cause of an error that cannot be read, without the calls around it.
func innermost(err error) error {
	if e, ok := errors.AsType[*semel.Error](err); ok && e.Cause != nil {
		err = e.Cause
	}
	for next := errors.Unwrap(err); next != nil; next = errors.Unwrap(err) {
		err = next
	}
	return err
}

// wrongSkip ends a run at a skip that an operator must correct.
func wrongSkip(name string, why error) error {
	return &handlererr.Stuck{Err: fmt.Errorf(history.SkipOf+"%q %w; skip it again, or say that it did not happen", name, why)}
}
