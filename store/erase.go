package store

import (
	"context"
	"fmt"
)

// Eraser is a store that can delete a record before it expires, because somebody's data
// must be erased. It is optional. Package erase needs it.
type Eraser interface {
	// Erase deletes the record and its steps if it is still as it was seen, in one
	// atomic step. Like Sweep, it keeps the key's fence from going back. Call
	// [CheckErase] first.
	//
	// [ErrNotFound]: there is no record. An erasure that is sent again returns it.
	// [ErrChanged]: the record has changed since it was seen, and stays.
	// errors.ErrUnsupported: this is a wrapper, and its store cannot erase.
	Erase(ctx context.Context, seen Seen) error
}

// Confirmer is a store that can show a change before a fail-over can no longer take it back:
// the server has made it, and its caller got no answer, because a replica was away. It is
// optional. Package erase needs it: a record that was erased in this way is in no list, so
// that a second erasure would not find it.
type Confirmer interface {
	// Confirm returns nil after each change that was visible when it was called is as safe
	// as one that was answered.
	Confirm(ctx context.Context) error
}

// Scrubber is a store whose files keep bytes of deleted records until it rewrites them. It
// is optional.
type Scrubber interface {
	// Scrub removes from the files of the database what deleted records have left
	// there. The documentation of each store says which locks it takes, and which
	// bytes stay. It is harmless to repeat.
	Scrub(ctx context.Context) error
}

// Erasable reports whether a record in state s may be erased: no claim is live, and
// nothing is in doubt.
func (s State) Erasable() bool { return s == Released || s.Terminal() }

// CheckErase returns an error if a record in the state that was seen must not be erased.
// Stores call it before they erase.
func CheckErase(seen Seen) error {
	if seen.State.Erasable() {
		return nil
	}
	return WithExtent(fmt.Errorf("store: the record of key %s is %v, and only a released, completed or failed one can be erased", seen.Key.Short(), seen.State), ExtentCall)
}
