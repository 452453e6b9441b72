package semel

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/semel-go/semel/internal/leaseend"
	"github.com/semel-go/semel/store"
)

// instant is a time of both local clocks. Corrections of the wall clock do not move the
// monotonic clock, but that stands still while the machine is suspended. The zero instant is
// no time.
type instant struct{ mono, wall time.Duration }

var processStart = time.Now()

func now() instant {
	t := time.Now()
	return instant{t.Sub(processStart), time.Duration(t.UnixNano())}
}

func (i instant) add(d time.Duration) instant { return instant{i.mono + d, i.wall + d} }

// since is the time from j to i on the monotonic clock.
func (i instant) since(j instant) time.Duration { return i.mono - j.mono }

// mostSince is the most time that may have passed from j to i. The end of a lease goes by it.
func (i instant) mostSince(j instant) time.Duration { return max(i.mono-j.mono, i.wall-j.wall) }

// heartbeat renews the leases of all running handlers of a Guard. If a lease may
// have expired by one of the local clocks, it cancels the handler's context,
// without waiting for an answer of the store. It is a timer that sets itself
// again while handlers run, so nothing needs closing.
type heartbeat struct {
	store store.Store
	lease time.Duration

	mu     sync.Mutex
	active renewal // the ends of a linked list: next is the first, prev the last
	timer  *time.Timer
	armed  bool // the timer will fire
	// stopRenewing cancels the renewal that is under way. Nil: none is. The
	// deadlines do not wait for it.
	stopRenewing context.CancelFunc
}

// renewal is one lease in the list of a heartbeat.
type renewal struct {
	next, prev *renewal
	lease      store.Lease
	cancel     context.CancelCauseFunc // cancels the handler's context
	sent       instant                 // when the claim, or the last renewal, was sent
	end        instant                 // no renewal goes beyond it; zero: no end is known
	lost       bool
	settling   bool  // a settlement was sent: if it was carried out, a renewal finds the lease lost
	unanswered uint8 // renewals in a row without any answer, not even an error
}

func (h *heartbeat) init(st store.Store, lease time.Duration) {
	h.store, h.lease = st, lease
	h.active.next, h.active.prev = &h.active, &h.active
}

// interval is the time between two checks: short enough to cancel a handler
// within the margin before its lease expires.
func (h *heartbeat) interval() time.Duration { return h.lease / 24 }

// renewTimeout is how long one renewal may take. It ends between two checks, so that
// the next check always sees that it has ended. With it, the last renewal begins
// between three quarters of the lease and the deadline.
func (h *heartbeat) renewTimeout() time.Duration { return h.lease/6 + h.interval()/2 }

// isOver reports whether the handler of a claim or renewal sent at the given time has to
// stop: a sixth of the lease before another process may take over.
func (h *heartbeat) isOver(sent, now instant) bool { return now.mostSince(sent) >= h.lease-h.lease/6 }

// holds reports whether the handler may go on by the local clocks. If not, it cancels the
// handler's context at once. The periodic check would do so too, but in a process that was
// frozen it runs late.
func (h *heartbeat) holds(r *renewal) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if now := now(); !r.lost && (h.isOver(r.sent, now) || r.end != (instant{}) && now.mostSince(r.end) >= 0) {
		h.lose(r)
	}
	return !r.lost
}

func (h *heartbeat) add(r *renewal, sent instant) {
	r.sent = sent
	h.mu.Lock()
	defer h.mu.Unlock()
	r.next, r.prev = &h.active, h.active.prev
	r.prev.next, r.next.prev = r, r
	if !h.armed {
		h.arm()
	}
}

func (h *heartbeat) remove(r *renewal) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if r.next == nil {
		return // it was removed already
	}
	r.prev.next, r.next.prev = r.next, r.prev
	r.next, r.prev = nil, nil
	if h.isEmpty() && h.stopRenewing != nil {
		h.stopRenewing() // no handler needs its answer any more
	}
}

// setSettling says whether a settlement of the lease was sent, so that renewals may find
// the lease lost because of it.
func (h *heartbeat) setSettling(r *renewal, settling bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	r.settling = settling
}

// isEmpty reports whether no lease is held. The caller holds mu.
func (h *heartbeat) isEmpty() bool { return h.active.next == &h.active }

// arm sets the timer. The caller holds mu.
func (h *heartbeat) arm() {
	h.armed = true
	if h.timer == nil {
		h.timer = time.AfterFunc(h.interval(), h.check)
		return
	}
	h.timer.Reset(h.interval())
}

// check runs at each interval.
func (h *heartbeat) check() {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := now()
	var due, alone []*renewal
	for r := h.active.next; r != &h.active; r = r.next {
		switch {
		case r.lost:
		case h.isOver(r.sent, now):
			h.lose(r)
		case r.unanswered > 1: // the store hangs on this lease although it was sent alone
		case now.mostSince(r.sent) >= h.lease/3 && h.stopRenewing == nil:
			if r.unanswered++; r.unanswered > 1 { // this lease may be the reason why its batch had no answer
				alone = append(alone, r)
			} else {
				due = append(due, r)
			}
		}
	}
	if len(due)+len(alone) > 0 {
		ctx, cancel := context.WithCancel(context.Background())
		h.stopRenewing = cancel
		go h.renew(ctx, due, alone, now)
	}
	if h.armed = !h.isEmpty(); h.armed {
		h.arm()
	}
}

// lose cancels a handler's context. The caller holds mu.
func (h *heartbeat) lose(r *renewal) {
	r.lost = true
	r.cancel(ErrLeaseLost)
}

// maxRenewals is how many leases go in one round trip.
const maxRenewals = 500

// renew sends all batches at the same time, so that one that hangs does not delay
// the others. It stops waiting when the context of the batches has ended, also
// for a store that ignores its context.
func (h *heartbeat) renew(ctx context.Context, due, alone []*renewal, sent instant) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		var batches sync.WaitGroup
		for _, together := range byEnd(due) {
			for batch := range slices.Chunk(together, maxRenewals) {
				batches.Go(func() { h.renewBatch(ctx, batch, sent) })
			}
		}
		for batch := range slices.Chunk(alone, 1) {
			batches.Go(func() { h.renewBatch(ctx, batch, sent) })
		}
		batches.Wait()
	}()
	select {
	case <-done:
	case <-time.After(h.renewTimeout() + h.interval()/4):
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.stopRenewing()
	h.stopRenewing = nil
}

// byEnd groups renewals by the end of their leases, because a request of the store
// renews all its leases for the same time.
func byEnd(due []*renewal) map[instant][]*renewal {
	groups := map[instant][]*renewal{}
	for _, r := range due {
		groups[r.end] = append(groups[r.end], r)
	}
	return groups
}

// leaseEnd is the instant at which the leases of a context have to end; zero if it
// has no such time.
func leaseEnd(ctx context.Context) instant {
	end, ok := leaseend.From(ctx)
	if !ok {
		return instant{}
	}
	return now().add(time.Until(end))
}

// leaseWithin is the lease of a claim: Options.Lease, or less if the leases of the
// context have to end earlier.
func (g *Guard) leaseWithin(ctx context.Context) time.Duration {
	end, ok := leaseend.From(ctx)
	if !ok {
		return g.options.Lease
	}
	return min(g.options.Lease, max(minLease, time.Until(end)))
}

// renewBatch renews leases that have the same end.
func (h *heartbeat) renewBatch(ctx context.Context, batch []*renewal, sent instant) {
	lease := h.lease
	if end := batch[0].end; end != (instant{}) {
		if lease = min(lease, -now().mostSince(end)); lease <= 0 {
			return
		}
	}
	leases := make([]store.Lease, len(batch))
	for i, r := range batch {
		leases[i] = r.lease
	}
	ctx, cancel := context.WithTimeout(ctx, h.renewTimeout())
	defer cancel()
	errs, err := h.store.Renew(ctx, leases, lease)
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, r := range batch {
		r.unanswered = 0
	}
	if err != nil || len(errs) != len(batch) {
		return // the next check tries again, until the deadlines
	}
	for i, r := range batch {
		switch {
		case errs[i] == nil && !r.lost:
			if sent.mono > r.sent.mono { // a later renewal may have been answered first
				r.sent = sent
			}
		case errors.Is(errs[i], store.ErrLeaseLost) && !r.lost && !r.settling:
			h.lose(r)
		}
	}
}
