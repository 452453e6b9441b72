package semel

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/semel-go/semel/store"
)

// keeper holds the leases of the running handlers: one loop renews them all,
// and ends a handler's context when its lease may be over by the local
// monotonic clock, without waiting for anybody's answer. The loop is a timer
// that sets itself again while handlers run, so nothing needs closing.
type keeper struct {
	st    store.Store
	lease time.Duration

	mu    sync.Mutex
	held  held // the ends of a list: its next is the first, its prev the last
	timer *time.Timer
	armed bool // the timer will fire
	// renewing ends the renewal that is on its way; nil: none is, or no more is
	// expected of it. The deadlines do not wait for it.
	renewing context.CancelFunc
}

// held is one lease.
type held struct {
	next, prev *held
	lease      store.Lease
	run        *runContext // ends when the lease may be lost
	sent       instant     // when the claim, or the last renewal, was sent
	lost       bool
	silent     uint8 // how many renewals have brought no answer, not even an error
}

func (k *keeper) init(st store.Store, lease time.Duration) {
	k.st, k.lease = st, lease
	k.held.next, k.held.prev = &k.held, &k.held
}

// tick is how often the leases are looked at: often enough that a handler is
// cancelled within the margin.
func (k *keeper) tick() time.Duration { return k.lease / 24 }

// deadline is when the handler of a claim or renewal that was sent at sent has
// to stop: a sixth of the lease before another may take over.
func (k *keeper) deadline(sent instant) instant { return sent.add(k.lease - k.lease/6) }

func (k *keeper) add(h *held, sent instant) {
	h.sent = sent
	k.mu.Lock()
	defer k.mu.Unlock()
	h.next, h.prev = &k.held, k.held.prev
	h.prev.next, h.next.prev = h, h
	if !k.armed {
		k.arm()
	}
}

func (k *keeper) remove(h *held) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if h.next == nil {
		return // it was removed already
	}
	h.prev.next, h.next.prev = h.next, h.prev
	h.next, h.prev = nil, nil
	if k.none() && k.renewing != nil {
		k.renewing() // nobody waits for it any more
	}
}

// none reports whether no lease is held. The caller holds mu.
func (k *keeper) none() bool { return k.held.next == &k.held }

// arm sets the timer. The caller holds mu.
func (k *keeper) arm() {
	k.armed = true
	if k.timer == nil {
		k.timer = time.AfterFunc(k.tick(), k.look)
		return
	}
	k.timer.Reset(k.tick())
}

// look is one turn of the loop.
func (k *keeper) look() {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := now()
	var due, alone []*held
	for h := k.held.next; h != &k.held; h = h.next {
		switch {
		case h.lost:
		case now >= k.deadline(h.sent):
			k.lose(h)
		case h.silent > 1: // the store hangs at it although it is alone
		case now.since(h.sent) >= k.lease/3 && k.renewing == nil:
			if h.silent++; h.silent > 1 { // it may be what silences those beside it
				alone = append(alone, h)
			} else {
				due = append(due, h)
			}
		}
	}
	if len(due)+len(alone) > 0 {
		ctx, cancel := context.WithCancel(context.Background())
		k.renewing = cancel
		go k.renew(ctx, due, alone, now)
	}
	if k.armed = !k.none(); k.armed {
		k.arm()
	}
}

// lose ends a handler's context. The caller holds mu.
func (k *keeper) lose(h *held) {
	h.lost = true
	h.run.end(ErrLeaseLost)
}

// renewBatch is how many leases go in one round trip.
const renewBatch = 500

// renew waits for the store's answers, but no longer than for a store that
// listens to its context: what hangs beyond that is left to itself.
func (k *keeper) renew(ctx context.Context, due, alone []*held, sent instant) {
	answered := make(chan struct{})
	go func() {
		defer close(answered)
		var all sync.WaitGroup // together, so that one that hangs holds up no other
		for some := range slices.Chunk(due, renewBatch) {
			all.Go(func() { k.renewSome(ctx, some, sent) })
		}
		for some := range slices.Chunk(alone, 1) {
			all.Go(func() { k.renewSome(ctx, some, sent) })
		}
		all.Wait()
	}()
	select {
	case <-answered:
	case <-time.After(k.lease/6 + k.tick()):
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.renewing()
	k.renewing = nil
}

func (k *keeper) renewSome(ctx context.Context, due []*held, sent instant) {
	leases := make([]store.Lease, len(due))
	for i, h := range due {
		leases[i] = h.lease
	}
	ctx, cancel := context.WithTimeout(ctx, k.lease/6)
	defer cancel()
	errs, err := k.st.Renew(ctx, leases, k.lease)
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, h := range due {
		h.silent = 0
	}
	if err != nil || len(errs) != len(due) {
		return // the next turn tries again, until the deadlines
	}
	for i, h := range due {
		switch {
		case errs[i] == nil && !h.lost:
			h.sent = max(h.sent, sent) // a later one may have been answered first
		case errors.Is(errs[i], store.ErrLeaseLost) && !h.lost:
			k.lose(h)
		}
	}
}
