package ledger

import "github.com/semel-go/semel/cmd/semel/demo/internal/journal"

// Tail follows the journal of a running ledger from outside. Not safe for
// concurrent use.
type Tail struct {
	State *State
	*journal.Tail[Entry]
}

// NewTail follows the journal at path, which need not be there yet.
func NewTail(path string) *Tail {
	s := NewState()
	return &Tail{s, journal.NewTail(path, s.Apply)}
}
