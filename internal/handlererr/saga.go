package handlererr

import (
	"fmt"
	"time"
)

// Pause is the error of a saga's run that ends before the saga does: the saga goes on
// later, in this process or another one.
type Pause struct {
	// Wait is how long no worker looks at the saga. Other runs may begin before.
	Wait time.Duration
	// Attempt is how many attempts have failed since the saga's last progress.
	Attempt int
	// NothingRecorded is true if nothing is recorded of the saga, so that its key is free.
	NothingRecorded bool
	// Err is why the attempt failed. Nil: it waits for a time or an event.
	Err error
	// NoAttempt is true if the definition was not called: Err is for the caller only, and the
	// record keeps the error of the last attempt.
	NoAttempt bool
}

// Error implements error.
func (p *Pause) Error() string {
	if p.Err == nil {
		return fmt.Sprintf("the saga goes on in %v at the latest", p.Wait)
	}
	return p.Err.Error()
}

// Unwrap is for errors.Is and errors.As.
func (p *Pause) Unwrap() error { return p.Err }

// Stuck is the error of a saga's run after which only an operator can say how the saga
// goes on.
type Stuck struct{ Err error }

// Error implements error.
func (s *Stuck) Error() string { return s.Err.Error() }

// Unwrap is for errors.Is and errors.As.
func (s *Stuck) Unwrap() error { return s.Err }
