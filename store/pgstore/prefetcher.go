package pgstore

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/semel-go/semel"
)

// Series is batches that are run one behind the other, each of which may be
// looked for while those before it run. Make it with [Atomic.Prefetcher]. It is for
// one goroutine that calls Next, and one that runs the batches.
type Prefetcher struct {
	a *Atomic

	mu       sync.Mutex         // guards what follows, and the looks
	open     []*PrefetchedBatch // that have not ended, in their order
	free     []batchBuffer      // of those that have
	lookDone sync.Cond          // signals that a prefetch has ended
}

// Series begins a series of batches.
func (a *Atomic) Prefetcher() *Prefetcher {
	q := &Prefetcher{a: a}
	q.lookDone.L = &q.mu
	return q
}

// Next is a batch of a series. Run or Drop it before the one behind it is run.
type PrefetchedBatch struct {
	q      *Prefetcher
	calls  []semel.Call
	buffer batchBuffer
	keys   []prefetchedRow // of calls; nil: they are not known
	runs   *batchRun       // what Run has begun

	// The look.
	y       *batchTry   // nil: there is none
	looking bool        // it is on its way
	dropped bool        // it is not wanted any more
	t       *ownTx      // it has come
	drop    *time.Timer // of t
}

// lookFor is how long a look is kept: it holds a connection, which a handler may
// wait for, and locks; and of a batch that takes longer it is a small part. The
// server would end it by MaxIdleTx.
const lookFor = time.Second

// spare is how many connections the pool has free where a look takes one:
// handlers may want some, too.
const spare = 3

// Next is the next batch of the series. While those before it run it is looked
// for, in a transaction of its own: its keys are locked, and recorded as done
// where they are new. To others they are in progress from then on. A key that
// is also in a batch before it is looked for when that has ended, so nothing
// overtakes. There is a look from 2 to 1,000 calls, if the pool has connections
// to spare, and each batch before it has one, too; it is dropped after a second.
// Without one, Run does all.
//
// So a series holds the advisory locks of two batches or more at once (see
// [Atomic.In] for how many there are), and now() in fn may be a second old: it
// is when the look began. So are the times of the records, from which their
// retention counts.
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
	for _, b := range q.open { // of those before, those that have not ended meanwhile
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

// Run is [Atomic.RunWhole] of the batch. It costs another run of fn if that
// sets an Outcome or an Err.
func (n *PrefetchedBatch) Run(ctx context.Context, fn func(ctx context.Context, fresh []*NewCall) error) []Ended {
	defer n.Drop()
	return n.q.a.runWhole(ctx, n, n.calls, fn)
}

// Err is, for fn while it runs, how a call of the batch that is not fresh has
// ended so far: nil if it is done, or comes later. So fn may leave out what has
// to come behind a call that is semel.ErrInProgress elsewhere.
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

// Drop ends the batch: a look is rolled back. Harmless when repeated.
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

// dropPrefetch drops the look, also one on its way. The caller holds mu, which others
// may have meanwhile.
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

// begun is what was begun ahead, if it is still good: once, for the first try.
// All batches before have ended.
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
