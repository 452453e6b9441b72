package consume

// suspects are messages for whose key the store did not answer, although it answers for
// other keys, for example because one shard is down. Each try of such a message may last
// as long as the Guard's StoreTimeout. Therefore at most a quarter of Concurrency tries
// them at once, and the other handlers serve the other keys.
type suspects struct {
	running int
	waiting []*task // in the order in which they are to be tried; each is counted in session.waiting
}

// wake makes a message ready that was held, or lets a suspect wait for its turn. A message
// that is to be settled stays in session.waiting, because it still waits for the broker.
func (s *session) wake(t *task) {
	if t.alone && t.step == stepRun {
		s.suspects.waiting = append(s.suspects.waiting, t)
		s.wakeSuspects()
		return
	}
	if t.step == stepRun {
		s.waiting.remove(t)
	}
	s.ready = append(s.ready, t)
}

// wakeSuspects makes those suspects ready that may run, and those that are given back.
func (s *session) wakeSuspects() {
	most := max(1, s.c.opt.Concurrency/4)
	rest := s.suspects.waiting[:0]
	for _, t := range s.suspects.waiting {
		if s.suspects.running >= most && !s.draining && !t.revoked() {
			rest = append(rest, t)
			continue
		}
		t.slot = true
		s.suspects.running++
		s.waiting.remove(t)
		s.ready = append(s.ready, t)
	}
	clear(s.suspects.waiting[len(rest):])
	s.suspects.waiting = rest
}

// freeSuspect ends a suspect's turn.
func (s *session) freeSuspect(t *task) {
	if t.slot {
		t.slot = false
		s.suspects.running--
		s.wakeSuspects()
	}
}
