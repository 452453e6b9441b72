package deliver

import "time"

// pauses are the times in which the service takes no messages: none at all for the gate, none
// of one tenant for tenants. After a pause one message tries, and its answer opens or begins
// the next pause. The owner locks.
type pauses struct {
	longest  time.Duration // of a pause
	until    time.Time     // zero: open
	began    time.Time     // of the last pause
	failures int           // pauses since it was open
	probing  bool          // a message tries
}

// firstPause is the pause after the first failure. Each further one takes twice as long.
const firstPause = 100 * time.Millisecond

// admit reports whether a message may go on. If that is the one that tries after a pause, the
// owner sets probing to false after the try. Otherwise rest is the rest of the pause; not
// positive: it is over, and another message tries.
func (p *pauses) admit(now time.Time) (rest time.Duration, ok bool) {
	if p.until.IsZero() {
		return 0, true
	}
	if rest = p.until.Sub(now); p.probing || rest > 0 {
		return rest, false
	}
	p.probing = true
	return 0, true
}

// answered ends the pauses after an answer to a message that entered after the last pause
// began. An answer to an earlier message does nothing: a service with too much to do still
// answers the requests that it has taken.
func (p *pauses) answered(entered time.Time) (opened bool) {
	if entered.Before(p.began) {
		return false
	}
	opened = !p.until.IsZero()
	p.until, p.failures = time.Time{}, 0
	return opened
}

// pause begins a pause after the failure of a message; after zero: for a time that grows with each
// pause. The failure of a message that entered before the last pause began is not counted again,
// because it tells nothing new of the service. It only makes the pause longer if the service has
// named a time.
func (p *pauses) pause(now, entered time.Time, after time.Duration) (closed bool) {
	wasOpen, older := p.until.IsZero(), entered.Before(p.began)
	if older && (wasOpen || after <= 0) {
		return false
	}
	if !older && (wasOpen || !now.Before(p.until)) {
		p.failures++
		p.began = now
	}
	if after <= 0 {
		after = firstPause << min(p.failures-1, 20)
	}
	if until := now.Add(min(after, p.longest)); until.After(p.until) {
		p.until = until
	}
	return wasOpen
}
