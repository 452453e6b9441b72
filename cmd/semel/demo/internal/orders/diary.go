package orders

import (
	"context"
	"os"
	"sync"
	"time"

	"github.com/semel-go/semel/cmd/semel/demo/internal/journal"
)

// Kind is the kind of a line of a worker's journal.
type Kind string

// The kinds of lines.
const (
	Boot  Kind = "boot"  // a process begins to work; the orders of the process before it are cut off
	Begun Kind = "begun" // a request is sent
	Done  Kind = "done"  // its answer has come
	Ended Kind = "ended" // the end of the order is kept
	Left  Kind = "left"  // a run of the order is over, and the order has not ended
)

// Entry is a line of a worker's journal. The journal shows the demo what a worker does;
// no worker reads it.
type Entry struct {
	Kind  Kind   `json:"t"`
	PID   int    `json:"pid,omitempty"`   // Boot
	Order string `json:"order,omitempty"` // all but Boot
	Known bool   `json:"known,omitempty"` // Done: the system had recognised the key
	// Took is how long the order took in this process: in Ended.
	Took time.Duration `json:"took_ns,omitempty"`
}

// State is the state after all lines of a journal.
type State struct {
	PID, Boots int
	Runs       int // of an order in a process
	Requests   int
	Known      int // answers of requests whose key the system had recognised
	Took       []time.Duration

	inFlight map[string]bool // orders
	stopped  bool            // by StopMeasuring
}

// NewState is the state of an empty journal.
func NewState() *State { return &State{inFlight: map[string]bool{}} }

// Apply takes the next line.
func (s *State) Apply(e *Entry) {
	switch e.Kind {
	case Boot:
		s.PID = e.PID
		s.Boots++
		clear(s.inFlight)
	case Begun:
		s.Requests++
		if !s.inFlight[e.Order] {
			s.inFlight[e.Order] = true
			s.Runs++
		}
	case Done:
		if e.Known {
			s.Known++
		}
	case Ended:
		if s.inFlight[e.Order] && e.Took > 0 && !s.stopped {
			s.Took = append(s.Took, e.Took)
		}
		delete(s.inFlight, e.Order)
	case Left:
		delete(s.inFlight, e.Order)
	}
}

// StopMeasuring keeps later orders out of Took.
func (s *State) StopMeasuring() { s.stopped = true }

// InFlight counts the orders that have begun here and not ended.
func (s *State) InFlight() int { return len(s.inFlight) }

// diary writes the journal of this process. Safe for concurrent use.
type diary struct {
	mu    sync.Mutex
	j     *journal.Journal[Entry]
	fail  context.CancelCauseFunc // a worker that nobody can watch must not go on
	begun map[string]time.Time    // the orders in flight
}

// openDiary opens the journal. fail is called if it cannot be written.
func openDiary(path string, fail context.CancelCauseFunc) (*diary, error) {
	j, err := journal.Open(path, func(*Entry) {})
	if err != nil {
		return nil, err
	}
	return &diary{j: j, fail: fail, begun: map[string]time.Time{}}, nil
}

func (d *diary) note(e *Entry) {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch e.Kind {
	case Boot:
		e.PID = os.Getpid()
	case Begun:
		if d.begun[e.Order].IsZero() {
			d.begun[e.Order] = time.Now()
		}
	case Ended, Left:
		if begun := d.begun[e.Order]; !begun.IsZero() && e.Kind == Ended {
			e.Took = time.Since(begun)
		}
		delete(d.begun, e.Order)
	}
	if err := d.j.Append(e); err != nil {
		d.fail(err)
	}
}
