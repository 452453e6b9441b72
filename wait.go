package semel

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/semel-go/semel/internal/protocol"
	"github.com/semel-go/semel/internal/retry"
	"github.com/semel-go/semel/store"
)

// waitForEnd returns nil when it is time to look at the record again. A
// notification is only a hint: store.Decide judges what the caller finds then.
func (c *pendingCall) waitForEnd(ctx context.Context, r *store.Record, leaseLeft time.Duration) error {
	g := c.guard
	if c.wait <= 0 {
		return c.refuse(ctx, ErrInProgress, leaseLeft, nil)
	}
	if c.waitUntil.IsZero() {
		c.waitUntil = time.Now().Add(c.wait)
	}
	waitLeft := time.Until(c.waitUntil)
	if waitLeft <= 0 {
		return c.refuse(ctx, ErrInProgress, leaseLeft, nil)
	}
	if r.State == store.Processing && !protocol.IsReconcilerClaim(r) { // no attempt fails while a reconciler asks
		c.waitedFor = r.Attempt
	}
	w, ok := g.waiters.join(r.Key, g.options.MaxWaiters)
	if !ok {
		return c.refuse(ctx, ErrInProgress, leaseLeft, fmt.Errorf("%d calls wait for this key already (Options.MaxWaiters); call again later", g.options.MaxWaiters))
	}
	defer g.waiters.leave(r.Key, w)
	// The run may have ended between the look and the join: look once more.
	f, err := c.look(ctx)
	switch {
	case errors.Is(err, store.ErrNotFound), err == nil && !sameClaim(f.Record.Seen(), r.Seen()):
		return nil
	case err != nil && ctx.Err() == nil:
		return c.unavailable(ctx, err)
	}
	waitCtx, cancel := context.WithTimeout(ctx, min(waitLeft, max(leaseLeft, time.Millisecond)))
	defer cancel()
	g.sleep(waitCtx, w.ended, r.Seen())
	if err := ctx.Err(); err != nil {
		return c.refuse(ctx, ErrInProgress, leaseLeft, context.Cause(ctx))
	}
	return nil
}

// The first and the longest pause between two looks of a waiting call, if neither
// this Guard nor the store can notify it; and the pause if the store can, because
// a notification may be lost.
const (
	firstPoll    = 10 * time.Millisecond
	lastPoll     = 500 * time.Millisecond
	notifiedPoll = 5 * time.Second
)

// sleep returns when the record may have changed, or ctx has ended.
func (g *Guard) sleep(ctx context.Context, ended <-chan struct{}, seen store.Seen) {
	notified, notifierFailed := make(chan struct{}), make(chan struct{})
	d, last := firstPoll, lastPoll
	if g.notifier != nil {
		d, last = notifiedPoll, notifiedPoll
		go func() {
			start := time.Now()
			if g.notifier.Wait(ctx, seen) != nil {
				close(notifierFailed)
				return
			}
			// The pause is for a store that notifies too early, again and again.
			if rest := firstPoll - time.Since(start); rest <= 0 || retry.Pause(ctx, rest) {
				close(notified)
			}
		}()
	}
	for ; ; d = min(d*3/2, last) {
		timer := time.NewTimer(d/2 + rand.N(d))
		select {
		case <-ended:
		case <-notified:
		case <-ctx.Done():
		case <-notifierFailed:
			notifierFailed, d, last = nil, firstPoll*2/3, lastPoll
			timer.Stop()
			continue
		case <-timer.C:
			if f, err := g.read(ctx, seen.Key); err == nil && sameClaim(f.Record.Seen(), seen) {
				continue
			}
		}
		timer.Stop()
		return
	}
}

// sameClaim reports whether only renewals can have happened between a and b.
func sameClaim(a, b store.Seen) bool {
	return a.State == b.State && a.Owner == b.Owner && a.Fence == b.Fence
}

// waiters are the calls that wait for a run of the same Guard.
type waiters struct {
	mu    sync.Mutex
	byKey map[store.Key]*waitGroup
}

// waitGroup is the calls that wait for one key.
type waitGroup struct {
	ended chan struct{}
	size  int
}

func (w *waiters) join(k store.Key, limit int) (*waitGroup, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	group := w.byKey[k]
	if group == nil {
		group = &waitGroup{ended: make(chan struct{})}
		if w.byKey == nil {
			w.byKey = map[store.Key]*waitGroup{}
		}
		w.byKey[k] = group
	}
	if group.size >= limit {
		return nil, false
	}
	group.size++
	return group, true
}

func (w *waiters) leave(k store.Key, group *waitGroup) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if group.size--; group.size == 0 && w.byKey[k] == group {
		delete(w.byKey, k)
	}
}

// wake is called after the store has acknowledged how a run ended.
func (w *waiters) wake(k store.Key) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if group := w.byKey[k]; group != nil {
		delete(w.byKey, k)
		close(group.ended)
	}
}
