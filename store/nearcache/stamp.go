package nearcache

import "time"

// stamp is a moment by two clocks of this machine, in nanoseconds. The first
// does not jump, but may stand still while the machine sleeps; the second is
// set by people and daemons.
type stamp struct{ mono, wall int64 }

func (s *Store) stamp() stamp {
	t := s.now()
	return stamp{int64(t.Sub(s.start)), t.UnixNano()}
}

// since says how much time has passed from b to a: no more than most, if the
// clocks are not both wrong, and no less than least.
func (a stamp) since(b stamp) (least, most time.Duration) {
	mono, wall := time.Duration(a.mono-b.mono), time.Duration(a.wall-b.wall)
	return max(0, min(mono, wall)), max(mono, wall)
}

// drift is by how much two clocks may go apart in d: quartz that is ten times
// worse than it should be.
func drift(d time.Duration) time.Duration { return d >> 10 }
