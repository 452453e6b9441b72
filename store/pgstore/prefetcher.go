package pgstore

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/semel-go/semel"
)

// Prefetcher runs batches one after the other, and prefetches each batch while the
// batches before it run. Make it with [Atomic.Prefetcher]. One goroutine may call
// Prefetch while another one runs the batches.
type Prefetcher struct {
	a *Atomic

	mu       sync.Mutex         // guards the fields below, and those of the open batches
	open     []*PrefetchedBatch // batches that have not ended, in order
	free     []batchBuffer      // of batches that have ended
	lookDone sync.Cond          // signals that a prefetch has ended
}

// Prefetcher makes a Prefetcher, without any batch.
func (a *Atomic) Prefetcher() *Prefetcher {
	q := &Prefetcher{a: a}
	q.lookDone.L = &q.mu
	return q
}

// PrefetchedBatch is a batch of a Prefetcher. Run or Drop it before the next batch
// is run.
type PrefetchedBatch struct {
	q      *Prefetcher
	calls  []semel.Call
	buffer batchBuffer
	keys   []prefetchedRow // of calls; nil: they are not known
	runs   *batchRun       // what Run has started

	// The prefetch.
	y       *batchTry   // nil: there is none
	looking bool        // it is on its way
	dropped bool        // it is not wanted any more
	t       *ownTx      // its transaction, once its statements are answered
	drop    *time.Timer // drops t
}

// lookFor limits a prefetch, and how long its transaction stays open: it holds locks
// and a connection that a handler may wait for.
const lookFor = time.Second

// spare is how many connections of the pool must be free for a prefetch, so that
// handlers find some.
const spare = 3

// Prefetch appends a batch. While the batches before it run, a transaction of its own
// locks its keys, and writes records of the new ones as done. For other callers these
// keys are in progress from then on. A key that is also in a batch before is left
// out, and looked for when that batch has ended, so that nothing overtakes.
//
// Prefetch works for 2 to 1,000 calls, if the pool has connections to spare and each
// batch before was prefetched too. The transaction is dropped after a second. Without
// it, Run does everything. A Prefetcher holds the advisory locks of two batches or
// more at once (see [Atomic.In] for the server's limit). In the handler, now() may be
// a second old, and so are the times of the records, from which their retention
// counts.
func (q *Prefetcher) Prefetch(ctx context.Context, calls []semel.Call) *PrefetchedBatch {
	n := &PrefetchedBatch{q: q, calls: calls}
	_, inside := q.a.s.inside(ctx)
	can := !inside && len(calls) > 1 && len(calls) <= maxTogether && q.a.wary.Load() <= 0
	q.mu.Lock()
	q.open = append(q.open, n)
	if last := len(q.free) - 1; can && last >= 0 {
		n.buffer, q.free = q.free[last], q.free[:last]
	}
	q.mu.Unlock()
	if !can {
		return n
	}
	y := q.a.prepare(calls, &n.buffer)
	if y == nil {
		return n
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	n.keys = y.prefetched.rows
	for _, b := range q.open { // batches before this one that have not ended
		if b == n {
			break
		}
		if b.keys == nil {
			return n
		}
		y.prefetched.leaveOut(b.keys)
	}
	if len(y.prefetched.rows) == 0 {
		return n
	}
	n.y = y
	n.looking = true
	go n.look(ctx)
	return n
}

// Run is [Atomic.RunWhole] of the batch. If fn sets an Outcome or an Err, fn runs
// once more, because the records of the prefetch have neither.
func (n *PrefetchedBatch) Run(ctx context.Context, fn func(ctx context.Context, fresh []*NewCall) error) []Ended {
	defer n.Drop()
	return n.q.a.runWhole(ctx, n, n.calls, fn)
}

// Err tells fn, while it runs, how a call of the batch that is not new has ended so
// far: nil if it is done, or comes later. So fn can leave out calls that must not
// overtake one that is semel.ErrInProgress elsewhere.
func (n *PrefetchedBatch) Err(i int) error {
	b := n.runs
	if b == nil || i < 0 || i >= len(b.ended) {
		return nil
	}
	if err := b.ended[i].Err; err != nil || b.now == nil {
		return err
	}
	if vs := b.now.batchCalls; len(vs) > 0 && i >= vs[0].i && i-vs[0].i < len(vs) {
		return vs[i-vs[0].i].err
	}
	return nil
}

// Drop ends the batch, and rolls its prefetch back. It may be called again.
func (n *PrefetchedBatch) Drop() {
	q := n.q
	q.mu.Lock()
	defer q.mu.Unlock()
	n.dropPrefetch()
	q.open = slices.DeleteFunc(q.open, func(o *PrefetchedBatch) bool { return o == n })
	n.y, n.keys, n.runs = nil, nil, nil
	if n.buffer.batchCalls != nil {
		n.buffer.clear()
		q.free, n.buffer = append(q.free, n.buffer), batchBuffer{}
	}
}

// dropPrefetch rolls the prefetch back; if it is on its way, it waits for it first. The
// caller holds mu, which is released in between.
func (n *PrefetchedBatch) dropPrefetch() {
	n.dropped = true
	for n.looking {
		n.q.lookDone.Wait()
	}
	t := n.t
	if t == nil {
		return
	}
	n.drop.Stop()
	n.t, n.looking = nil, true // until its keys are free
	n.q.mu.Unlock()
	t.end()
	n.q.mu.Lock()
	n.looking = false
	n.q.lookDone.Broadcast()
}

func (n *PrefetchedBatch) look(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, n.q.a.lookFor)
	t := n.y.lookAhead(ctx)
	cancel()
	q := n.q
	q.mu.Lock()
	defer q.mu.Unlock()
	defer q.lookDone.Broadcast()
	if n.looking = false; t == nil {
		return
	}
	if n.dropped {
		t.end()
		return
	}
	n.t = t
	n.drop = time.AfterFunc(min(q.a.lookFor, q.a.s.opt.MaxIdleTx/2), func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		n.dropPrefetch()
	})
}

// begun is the prefetch, if it is still good. It is for the first try of the batch,
// when all batches before have ended.
func (n *PrefetchedBatch) begun(ctx context.Context, careful bool) (*ownTx, *batchTry) {
	if n == nil {
		return nil, nil
	}
	q := n.q
	q.mu.Lock()
	for n.looking {
		q.lookDone.Wait()
	}
	t, y := n.t, n.y
	if t != nil {
		n.drop.Stop()
	}
	n.dropped, n.t, n.y = true, nil, nil
	q.mu.Unlock()
	if t == nil {
		return nil, nil
	}
	if careful || y.lookForRest(ctx) != nil {
		t.end()
		return nil, nil
	}
	return t, y
}
