package outbox

import "time"

// attemptBefore is when the attempt before this failed one of a message began, and notes this one.
// If another publisher has made that attempt, it is about the backoff ago.
func (s *session) attemptBefore(b *sending, t *Taken) time.Time {
	if s.p.opt.MaxAttempts == 0 {
		return b.began
	}
	last, ok := s.lastFailed[t.Position]
	if !ok || last.number < t.Attempts {
		last.began = b.began.Add(-s.p.opt.Backoff(max(1, t.Attempts)) - time.Second)
	}
	if len(s.lastFailed) >= mostNoted {
		clear(s.lastFailed)
	}
	s.lastFailed[t.Position] = failedAttempt{b.began, t.Attempts + 1}
	return last.began
}

// failedAttempt is an attempt of this publisher that did not send a message.
type failedAttempt struct {
	began  time.Time
	number int // from 1 on
}

// mostNoted is how many entries lastSent and lastFailed have at most: each message may have its
// own topic, and all may fail.
const mostNoted = 10_000

// noteSent notes that a message of a topic was sent, for MaxAttempts.
func (s *session) noteSent(topic string) {
	if s.p.opt.MaxAttempts == 0 {
		return
	}
	if len(s.lastSent) >= mostNoted {
		clear(s.lastSent) // a message that should go to the quarantine is sent again at most
	}
	s.lastSent[topic] = time.Now()
}
