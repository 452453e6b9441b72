package store

import "fmt"

// State is the state of a record. The zero State is invalid: a store that reads it
// returns an error and never treats the record as absent.
type State uint8

const (
	// Started means reserved: the handler has not begun. Until is the end of the
	// reservation.
	Started State = iota + 1
	// Processing means that Owner has claimed the record until Until. The handler
	// may have had an effect.
	Processing
	// Released means that the last attempt ended without a result to keep. The
	// next may start at Until.
	Released
	// Completed means that every duplicate gets the outcome. Terminal.
	Completed
	// Failed means that every duplicate gets a final failure. Terminal.
	Failed
	// Unknown means parked: it is not known whether the effect happened. The call
	// does not run again by itself. The record never expires.
	Unknown
)

var stateNames = [...]string{Started: "started", Processing: "processing", Released: "released", Completed: "completed", Failed: "failed", Unknown: "unknown"}

// Valid reports whether s is one of the six states.
func (s State) Valid() bool { return s >= Started && s <= Unknown }

// Terminal reports whether a record in state s stays unchanged until it expires.
func (s State) Terminal() bool { return s == Completed || s == Failed }

// String is the state's name in lower case.
func (s State) String() string {
	if !s.Valid() {
		return fmt.Sprintf("State(%d)", uint8(s))
	}
	return stateNames[s]
}

// MarshalText returns the name. An invalid state is an error.
func (s State) MarshalText() ([]byte, error) {
	if !s.Valid() {
		return nil, fmt.Errorf("store: invalid %v", s)
	}
	return []byte(s.String()), nil
}

// UnmarshalText accepts the names that String returns, and "parked" for unknown.
func (s *State) UnmarshalText(text []byte) error {
	if string(text) == "parked" {
		*s = Unknown
		return nil
	}
	for i, name := range stateNames {
		if name != "" && name == string(text) {
			*s = State(i)
			return nil
		}
	}
	return fmt.Errorf("store: state %q is not one of started, processing, released, completed, failed, unknown (or parked, which is the same)", text)
}

// Policy is what happens to a call in doubt, when it is not known whether its effect
// happened: the lease was lost, the process died, the handler returned a plain
// error or panicked. The record keeps it.
type Policy uint8

const (
	// Retry runs the handler again.
	Retry Policy = iota
	// Park leaves the record Unknown for a reconciler or an operator.
	Park
)

// Stricter returns Park if either policy is Park. It combines the record's policy
// and the call's, so that a rolling deployment cannot weaken a key.
func (p Policy) Stricter(other Policy) Policy { return max(p, other) }

// String is "retry" or "park".
func (p Policy) String() string {
	switch p {
	case Retry:
		return "retry"
	case Park:
		return "park"
	}
	return fmt.Sprintf("Policy(%d)", uint8(p))
}

// MarshalText returns the name. An invalid policy is an error.
func (p Policy) MarshalText() ([]byte, error) {
	if p > Park {
		return nil, fmt.Errorf("store: invalid %v", p)
	}
	return []byte(p.String()), nil
}

// UnmarshalText accepts "retry" and "park".
func (p *Policy) UnmarshalText(text []byte) error {
	switch string(text) {
	case "retry":
		*p = Retry
	case "park":
		*p = Park
	default:
		return fmt.Errorf("store: policy %q is not one of retry, park", text)
	}
	return nil
}
