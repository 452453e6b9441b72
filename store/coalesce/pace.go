package coalesce

import "time"

const (
	// A queued request waits for the duration of three recent flushes, within
	// these limits, and once more if a flush began meanwhile.
	holdFlushes      = 3
	holdMin, holdMax = 500 * time.Microsecond, 20 * time.Millisecond
)

// pace measures the flushes of a batcher.
type pace struct {
	recent  time.Duration // average duration of a flush, weighted to recent ones
	flights uint64        // batches taken from the queue so far
	crowd   int           // four times the size of recent batches; large ones decay
	armed   bool          // a timer is running
}

// took adds the duration of a flush, up to holdMax, so that a flush that hung
// counts little.
func (p *pace) took(d time.Duration) { p.recent += (min(d, holdMax) - p.recent) / 8 }

// count adds a batch of n requests, and returns its number.
func (p *pace) count(n int) uint64 {
	p.crowd = max(4*n, p.crowd*3/4)
	p.flights++
	return p.flights
}

// crowded reports whether recent batches had several requests. One batch with a
// single request does not change that.
func (p *pace) crowded() bool { return p.crowd > 4 }

// hold starts a timer that begins another flush if the queue does not move. If no
// flusher is free it does nothing, because the running ones take the whole queue.
// The batcher is locked.
func (b *Batcher[Req, Res]) hold() {
	if b.pace.armed || b.running >= b.flushers || !b.queued() {
		return
	}
	b.pace.armed = true
	flights := b.pace.flights
	time.AfterFunc(min(max(holdFlushes*b.pace.recent, holdMin), holdMax), func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.pace.armed = false
		if b.pace.flights == flights && b.queued() {
			b.help() // the flushes in flight hang
		} else {
			b.hold()
		}
	})
}

// help starts one more flusher, if one is free. The batcher is locked.
func (b *Batcher[Req, Res]) help() {
	if b.running < b.flushers {
		b.running++
		go b.drain()
	}
}

// spare reports whether the flusher of an ended flight should stop, so that the
// flushes in flight take a fuller batch later. That is so under load, if fewer
// requests are queued than a new flush needs, and a flush in flight began later
// than the ended one, so that it probably does not hang. The batcher is locked.
func (b *Batcher[Req, Res]) spare(ended *flight[Req, Res]) bool {
	return b.pace.crowded() && ended.number != 0 && ended.number != b.pace.flights &&
		b.running > 1 && b.waiting < b.enough(b.running-1)
}

// enough is how many requests must be queued before a flush begins beside n others,
// so that enough of them share its cost.
func (b *Batcher[Req, Res]) enough(n int) int { return b.queuedPerFlush * n }

// queued reports whether there is something to flush. The batcher is locked.
func (b *Batcher[Req, Res]) queued() bool { return b.queue[0].first != nil || b.queue[1].first != nil }
