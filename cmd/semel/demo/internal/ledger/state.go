package ledger

// State is the state after all lines of a journal. The ledger itself, the
// progress line and the final count all read it the same way.
type State struct {
	Boots   int
	Runs    int        // requests that were worked on
	RunsOf  map[ID]int // requests that were worked on, by key
	Charges map[ID][]Entry
	Charged int // the number of the last charge
	Refused int // late requests that were refused by their fence

	// CutBefore and CutAfter count the requests that a crash has cut off
	// before and after their charge.
	CutBefore, CutAfter int

	// Answers holds the last answer of each key that was asked about.
	Answers map[ID]Answer
	Asked   int // questions

	working map[int]work
	busy    map[ID]int // requests that are being worked on, by key
	closed  map[ID]uint64
}

// work is a request that is not answered yet.
type work struct {
	id      ID
	charged bool
}

// NewState is the state of an empty journal.
func NewState() *State {
	return &State{
		RunsOf: map[ID]int{}, Charges: map[ID][]Entry{}, Answers: map[ID]Answer{},
		working: map[int]work{}, busy: map[ID]int{}, closed: map[ID]uint64{},
	}
}

// Apply takes the next line.
func (s *State) Apply(e *Entry) {
	id := e.ID()
	switch e.Kind {
	case Boot:
		before, after := s.InFlight()
		s.CutBefore, s.CutAfter = s.CutBefore+before, s.CutAfter+after
		s.Boots++
		clear(s.working)
		clear(s.busy)
	case Begin:
		s.Runs++
		s.RunsOf[id]++
		s.working[e.Run] = work{id: id}
		s.busy[id]++
	case Paid:
		s.Charged = e.Charge
		s.Charges[id] = append(s.Charges[id], *e)
		s.working[e.Run] = work{id: id, charged: true}
	case Stale:
		s.Refused++
	case End:
		if w, ok := s.working[e.Run]; ok {
			delete(s.working, e.Run)
			if s.busy[w.id]--; s.busy[w.id] == 0 {
				delete(s.busy, w.id)
			}
		}
	case Closed:
		s.closed[id] = max(s.closed[id], e.Fence)
	case Asked:
		s.Asked++
		s.Answers[id] = e.Answer
	}
}

// InFlight counts the requests that are being worked on, before and after
// their charge.
func (s *State) InFlight() (before, after int) {
	for _, w := range s.working {
		if w.charged {
			after++
		} else {
			before++
		}
	}
	return before, after
}

// Double counts the charges beyond the first of each key.
func (s *State) Double() int { return s.Charged - len(s.Charges) }

// stale reports whether a request may no longer charge: the ledger has said
// "it did not happen" to somebody who had seen this fence, or a later one. A
// request without a fence counts as the oldest.
func (s *State) stale(id ID, fence uint64) bool {
	upTo, ok := s.closed[id]
	return ok && fence <= upTo
}
