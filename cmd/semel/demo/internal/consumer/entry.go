package consumer

import (
	"time"

	"github.com/semel-go/semel/consume/driver"
)

// Kind is the kind of a line of the journal.
type Kind string

// The kinds of lines.
const (
	Boot    Kind = "boot"    // a process has begun to consume; the messages of the process before it are cut off
	Taken   Kind = "taken"   // a message was delivered here
	Begun   Kind = "begun"   // its handler runs
	Charged Kind = "charged" // the handler has inserted the charge; with Semel, not committed yet
	Held    Kind = "held"    // its key is in flight elsewhere
	Settled Kind = "settled" // the broker has heard what became of it
)

// Entry is a line of a consumer's journal.
type Entry struct {
	Kind Kind   `json:"t"`
	PID  int    `json:"pid,omitempty"` // Boot
	Seq  int64  `json:"seq,omitempty"` // the message's number in its stream; all but Boot
	Key  string `json:"key,omitempty"` // Begun
	// Reason and Took are of Settled: why, and how long it is since the message
	// was published; 0: that is not measured.
	Reason driver.Reason `json:"reason,omitempty"`
	Took   time.Duration `json:"took_ns,omitempty"`
}

// State is the state after all lines of a journal.
type State struct {
	Boots   int
	RunsOf  map[string]int // of the handler, by key
	Held    int
	Reasons map[driver.Reason]int // of settled messages
	Took    []time.Duration

	// CutBefore and CutAfter count the handlers that a crash has cut off before
	// and after their charge was inserted.
	CutBefore, CutAfter int

	taken   map[int64]Kind // messages that are not settled, and how far each is
	stopped bool           // by StopMeasuring
}

// NewState is the state of an empty journal.
func NewState() *State {
	return &State{RunsOf: map[string]int{}, Reasons: map[driver.Reason]int{}, taken: map[int64]Kind{}}
}

// Apply takes the next line.
func (s *State) Apply(e *Entry) {
	switch e.Kind {
	case Boot:
		for _, far := range s.taken {
			switch far {
			case Begun:
				s.CutBefore++
			case Charged:
				s.CutAfter++
			}
		}
		s.Boots++
		clear(s.taken)
	case Taken:
		s.taken[e.Seq] = Taken
	case Begun:
		s.RunsOf[e.Key]++
		s.taken[e.Seq] = Begun
	case Charged:
		s.taken[e.Seq] = Charged
	case Held:
		s.Held++
	case Settled:
		delete(s.taken, e.Seq)
		s.Reasons[e.Reason]++
		if e.Took > 0 && !s.stopped {
			s.Took = append(s.Took, e.Took)
		}
	}
}

// StopMeasuring keeps later messages out of Took.
func (s *State) StopMeasuring() { s.stopped = true }

// InFlight counts the messages that are here and not settled, and of those the
// ones whose handler is at work.
func (s *State) InFlight() (all, atWork int) {
	for _, far := range s.taken {
		if far != Taken {
			atWork++
		}
	}
	return len(s.taken), atWork
}
