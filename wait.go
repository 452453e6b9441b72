package semel

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/semel-go/semel/store"
)

// wait returns nil when it is time to look at the record again. Waking up is a
// hint and no more: what the caller finds then is judged by the same Decide.
func (v *visit) wait(ctx context.Context, r *store.Record, left time.Duration) error {
	g := v.g
	if v.call.Wait <= 0 {
		return v.refuse(ctx, EventBusy, ErrInProgress, left, nil)
	}
	if v.waitUntil.IsZero() {
		v.waitUntil = time.Now().Add(v.call.Wait)
	}
	rest := time.Until(v.waitUntil)
	if rest <= 0 {
		return v.refuse(ctx, EventBusy, ErrInProgress, left, nil)
	}
	if r.State == store.Processing {
		v.waitedFor = r.Attempt
	}
	w, ok := g.watch.join(r.Key, g.opt.MaxWaiters)
	if !ok {
		return v.refuse(ctx, EventBusy, ErrInProgress, left, errors.New("too many calls wait for this key"))
	}
	defer g.watch.leave(r.Key, w)
	// The end may have come between the look and the join: look once more.
	if f, err := g.st.Get(ctx, r.Key); err == nil && !sameClaim(f.Record.Seen(), r.Seen()) || errors.Is(err, store.ErrNotFound) {
		return nil
	}
	ctx2, cancel := context.WithTimeout(ctx, min(rest, max(left, time.Millisecond)))
	defer cancel()
	v.g.sleep(ctx2, w.ended, r.Seen())
	if err := ctx.Err(); err != nil {
		return v.refuse(ctx, EventBusy, ErrInProgress, left, context.Cause(ctx))
	}
	return nil
}

// The first and the longest pause between two looks of a waiting call, when
// neither this Guard nor the store can tell that the record has changed; and
// the pause while the store can, for a hint may be lost.
const (
	firstPoll = 10 * time.Millisecond
	lastPoll  = 500 * time.Millisecond
	toldPoll  = 5 * time.Second
)

// sleep returns when the record may have changed, or ctx is over.
func (g *Guard) sleep(ctx context.Context, ended <-chan struct{}, seen store.Seen) {
	hint, deaf := make(chan struct{}), make(chan struct{})
	d, last := firstPoll, lastPoll
	if g.waiter != nil {
		d, last = toldPoll, toldPoll
		go func() {
			start := time.Now()
			if g.waiter.Wait(ctx, seen) != nil {
				close(deaf)
				return
			}
			// The pause is for a store that hints too early, again and again.
			if rest := firstPoll - time.Since(start); rest <= 0 || pause(ctx, rest) {
				close(hint)
			}
		}()
	}
	for ; ; d = min(d*3/2, last) {
		t := time.NewTimer(d/2 + rand.N(d))
		select {
		case <-ended:
		case <-hint:
		case <-ctx.Done():
		case <-deaf:
			deaf, d, last = nil, firstPoll*2/3, lastPoll
			t.Stop()
			continue
		case <-t.C:
			if f, err := g.st.Get(ctx, seen.Key); err == nil && sameClaim(f.Record.Seen(), seen) {
				continue
			}
		}
		t.Stop()
		return
	}
}

// sameClaim reports whether a renewal is all that can have happened between.
func sameClaim(a, b store.Seen) bool {
	return a.State == b.State && a.Owner == b.Owner && a.Fence == b.Fence
}

// watchers are the calls that wait for a run of the same Guard. A run costs
// them nothing until somebody waits.
type watchers struct {
	// waiting is how many keys are waited for. It grows before a waiter looks
	// at the record once more, and wake reads it after the record has changed:
	// one of the two sees the other.
	waiting atomic.Int64
	mu      sync.Mutex
	by      map[store.Key]*watched
}

type watched struct {
	ended chan struct{}
	n     int
}

func (w *watchers) join(k store.Key, limit int) (*watched, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	e := w.by[k]
	if e == nil {
		e = &watched{ended: make(chan struct{})}
		if w.by == nil {
			w.by = map[store.Key]*watched{}
		}
		w.by[k] = e
		w.waiting.Add(1)
	}
	if e.n >= limit {
		return nil, false
	}
	e.n++
	return e, true
}

func (w *watchers) leave(k store.Key, e *watched) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if e.n--; e.n == 0 && w.by[k] == e {
		w.remove(k)
	}
}

// wake is called after the store has acknowledged how a run ended.
func (w *watchers) wake(k store.Key) {
	if w.waiting.Load() == 0 {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if e := w.by[k]; e != nil {
		w.remove(k)
		close(e.ended)
	}
}

// remove forgets a key. The caller holds mu.
func (w *watchers) remove(k store.Key) {
	delete(w.by, k)
	w.waiting.Add(-1)
}
