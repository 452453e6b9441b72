package coalesce

import "time"

const (
	// A request is held for three recent flushes, within these limits, and
	// once more if the queue moved meanwhile.
	holdFlushes      = 3
	holdMin, holdMax = 500 * time.Microsecond, 20 * time.Millisecond
)

// pace is how fast the flushes of a lane are.
type pace struct {
	recent time.Duration // what one takes, the recent ones weighing more
	trips  uint64        // batches that were taken off the queue, ever
	crowd  int           // quarters of requests in a batch, the large ones fading
	armed  bool          // a timer looks after who is held
}

// took counts a flush in. One that hung is no measure.
func (p *pace) took(d time.Duration) { p.recent += (min(d, holdMax) - p.recent) / 8 }

// count counts a batch of n that leaves, and gives its number.
func (p *pace) count(n int) uint64 {
	p.crowd = max(4*n, p.crowd*3/4)
	p.trips++
	return p.trips
}

// crowded reports whether requests come together. One that comes alone is not
// yet the end of a crowd.
func (p *pace) crowded() bool { return p.crowd > 4 }

// hold has a timer look after the queue, unless no flusher is free: then
// those at work take all of it. The lane is locked.
func (l *Lane[Req, Res]) hold() {
	if l.pace.armed || l.running >= l.flushers || !l.queued() {
		return
	}
	l.pace.armed = true
	trips := l.pace.trips
	time.AfterFunc(min(max(holdFlushes*l.pace.recent, holdMin), holdMax), func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.pace.armed = false
		if l.pace.trips == trips && l.queued() {
			l.help() // whoever is in flight hangs
		} else {
			l.hold()
		}
	})
}

// help has one more flusher begin, if one is free. The lane is locked.
func (l *Lane[Req, Res]) help() {
	if l.running < l.flushers {
		l.running++
		go l.drain()
	}
}

// spare reports whether the flusher whose trip has ended leaves the queue to
// those in flight, for fuller batches: there is less company than it takes to
// begin, and they do not hang, for one of them began later. The lane is locked.
func (l *Lane[Req, Res]) spare(ended *trip[Req, Res]) bool {
	return l.pace.crowded() && ended.number != 0 && ended.number != l.pace.trips &&
		l.running > 1 && l.waiting < l.enough(l.running-1)
}

// enough is how many requests wait before a flush begins beside n others: what
// it costs by itself is then shared by enough.
func (l *Lane[Req, Res]) enough(n int) int { return l.company * n }

// queued reports whether there is something to flush. The lane is locked.
func (l *Lane[Req, Res]) queued() bool { return l.queue[0].first != nil || l.queue[1].first != nil }
