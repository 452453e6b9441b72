package store

import "fmt"

// State is where a record stands. The zero State is invalid: a store that
// reads it reports an error and never takes it for absence.
type State uint8

const (
	// Started is reserved: the handler has not begun. Until is the deadline
	// of the reservation.
	Started State = iota + 1
	// Processing is claimed by Owner until Until, and may have had an effect.
	Processing
	// Released is an attempt that ended without a result that is kept. The
	// next may start at Until. The error of the last is in LastError.
	Released
	// Completed has an outcome that every duplicate gets. Terminal.
	Completed
	// Failed has a final failure that every duplicate gets. Terminal.
	Failed
	// Unknown is parked: nobody knows whether the effect happened, and
	// nothing runs it again by itself. It never expires.
	Unknown
)

var stateNames = [...]string{Started: "started", Processing: "processing", Released: "released", Completed: "completed", Failed: "failed", Unknown: "unknown"}

// Valid reports whether s is one of the six states.
func (s State) Valid() bool { return s >= Started && s <= Unknown }

// Terminal reports whether a record in s never changes until it expires.
func (s State) Terminal() bool { return s == Completed || s == Failed }

// String is the state's name in lower case.
func (s State) String() string {
	if !s.Valid() {
		return fmt.Sprintf("State(%d)", uint8(s))
	}
	return stateNames[s]
}

// MarshalText gives the name; an invalid state is an error.
func (s State) MarshalText() ([]byte, error) {
	if !s.Valid() {
		return nil, fmt.Errorf("store: invalid %v", s)
	}
	return []byte(s.String()), nil
}

// UnmarshalText takes a name that String gives.
func (s *State) UnmarshalText(text []byte) error {
	for i, name := range stateNames {
		if name != "" && name == string(text) {
			*s = State(i)
			return nil
		}
	}
	return fmt.Errorf("store: state %q is not one of started, processing, released, completed, failed, unknown", text)
}

// Policy is what happens to a key when nobody knows whether its effect
// happened: the lease was lost, the process died, the handler returned a plain
// error or panicked. It is kept in the record.
type Policy uint8

const (
	// Retry runs the handler again.
	Retry Policy = iota
	// Park leaves the record Unknown for a reconciler or an operator.
	Park
)

// Stricter is Park if either is: the record's policy and the call's are
// combined by it, so a rolling deploy cannot weaken a key.
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

// MarshalText gives the name; an invalid policy is an error.
func (p Policy) MarshalText() ([]byte, error) {
	if p > Park {
		return nil, fmt.Errorf("store: invalid %v", p)
	}
	return []byte(p.String()), nil
}

// UnmarshalText takes "retry" or "park".
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
