package pgstore

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/semel-go/semel"
)

// Prefetcher runs batches of calls, one after the other, as [Atomic.RunWhole] does. While
// a batch runs, it prefetches the batches after it: it locks their keys and looks up their
// records, so that they take less time later. Make it with [Atomic.Prefetcher]. One
// goroutine may call Prefetch while another one runs the batches.
type Prefetcher struct {
	atomic *Atomic

	mu            sync.Mutex         // guards the fields below, and the fields of open batches
	open          []*PrefetchedBatch // batches that have not ended, in order
	prefetchEnded sync.Cond          // signals that a prefetch has ended
}

// Prefetcher returns a new Prefetcher, which has no batches.
func (a *Atomic) Prefetcher() *Prefetcher {
	p := &Prefetcher{atomic: a}
	p.prefetchEnded.L = &p.mu
	return p
}

// PrefetchedBatch is a batch of a Prefetcher. Call Run or Drop before you run the next
// batch.
type PrefetchedBatch struct {
	prefetcher *Prefetcher
	calls      []semel.Call
	rows       []prefetchRow // the keys of calls; nil: not known
	run        *batchRun     // set by Run

	// The prefetch.
	batch     *batchTry   // nil: there is no prefetch
	inFlight  bool        // its statements are not answered, or its transaction is ending
	dropped   bool        // no longer wanted
	tx        *ownTx      // nil until its statements are answered
	dropTimer *time.Timer // ends tx
}

// prefetchTimeout limits a prefetch, and how long its transaction stays open, because
// the transaction holds locks and a connection that a handler may need.
const prefetchTimeout = time.Second

// spareConnections is how many connections of the pool must be free for a prefetch, so
// that enough of them remain for handlers.
const spareConnections = 3

// Prefetch appends a batch. While earlier batches run, a transaction locks the keys of
// this batch, and inserts completed records for new keys. From then on other callers
// see these keys in progress. A key that an earlier batch has too is looked up after
// that batch has ended, so that calls with the same key keep their order.
//
// A batch is prefetched only if it, and each earlier batch that has not ended, has 2 to
// 1,000 calls, all with the same operation and tenant, and if 3 connections of the pool
// are free. After a batch in which fn failed or set an Outcome or an Err, about ten
// batches are not prefetched. If the batch does not run within a second, its prefetch is
// rolled back. Without a prefetch, Run does all the work.
//
// A Prefetcher holds the advisory locks of two or more batches at the same time; see
// [Atomic.In] for the server's limit. In fn, now() is the time of the prefetch, up to a
// second earlier. The retention of the records begins then, too.
func (p *Prefetcher) Prefetch(ctx context.Context, calls []semel.Call) *PrefetchedBatch {
	batch := &PrefetchedBatch{prefetcher: p, calls: calls}
	_, inside := p.atomic.store.inside(ctx)
	possible := !inside && len(calls) > 1 && len(calls) <= maxTogether && p.atomic.savepointBatches.Load() <= 0
	p.mu.Lock()
	p.open = append(p.open, batch)
	p.mu.Unlock()
	if !possible {
		return batch
	}
	try := p.atomic.newPrefetch(ctx, calls)
	if try == nil {
		return batch
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	batch.rows = try.prefetch.rows
	for _, other := range p.open { // batches before this one that have not ended
		if other == batch {
			break
		}
		if other.rows == nil {
			return batch
		}
		try.prefetch.leaveOut(other.rows)
	}
	if len(try.prefetch.rows) == 0 {
		return batch
	}
	batch.batch = try
	batch.inFlight = true
	go batch.prefetch(ctx)
	return batch
}

// Run runs the batch as [Atomic.RunWhole] does. A prefetch has inserted records that say:
// completed, without an Outcome. So if fn sets an Outcome or an Err in a prefetched batch,
// its transaction is rolled back, and fn runs again in a new one.
func (p *PrefetchedBatch) Run(ctx context.Context, fn func(ctx context.Context, fresh []*NewCall) error) []Ended {
	defer p.Drop()
	return p.prefetcher.atomic.runWhole(ctx, p, p.calls, fn)
}

// Err tells fn, while it runs, how call i of the batch has ended, because fn gets only the
// new calls. Err returns nil if the call is done, or has not ended. If it returns
// semel.ErrInProgress, call i is running elsewhere. If a later call must not run before
// call i, fn must write nothing for it, and set its NewCall.Err to semel.NoEffect with
// this error.
func (p *PrefetchedBatch) Err(i int) error {
	run := p.run
	if run == nil || i < 0 || i >= len(run.results) {
		return nil
	}
	if err := run.results[i].Err; err != nil || run.current == nil {
		return err
	}
	if calls := run.current.calls; len(calls) > 0 && i >= calls[0].index && i-calls[0].index < len(calls) {
		return calls[i-calls[0].index].err
	}
	return nil
}

// Drop removes the batch from its Prefetcher, and rolls its prefetch back. Run does so at
// its end. Drop may be called again.
func (p *PrefetchedBatch) Drop() {
	prefetcher := p.prefetcher
	prefetcher.mu.Lock()
	defer prefetcher.mu.Unlock()
	p.dropPrefetch()
	prefetcher.open = slices.DeleteFunc(prefetcher.open, func(o *PrefetchedBatch) bool { return o == p })
	p.batch, p.rows, p.run = nil, nil, nil
}

// dropPrefetch rolls the prefetch back, after its statements are answered. The caller
// holds mu, which is released in between.
func (p *PrefetchedBatch) dropPrefetch() {
	p.dropped = true
	for p.inFlight {
		p.prefetcher.prefetchEnded.Wait()
	}
	t := p.tx
	if t == nil {
		return
	}
	p.dropTimer.Stop()
	p.tx, p.inFlight = nil, true // until the locks of its keys are released
	p.prefetcher.mu.Unlock()
	t.end()
	p.prefetcher.mu.Lock()
	p.inFlight = false
	p.prefetcher.prefetchEnded.Broadcast()
}

func (p *PrefetchedBatch) prefetch(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, p.prefetcher.atomic.prefetchTimeout)
	t := p.batch.startPrefetch(ctx)
	cancel()
	prefetcher := p.prefetcher
	prefetcher.mu.Lock()
	defer prefetcher.mu.Unlock()
	defer prefetcher.prefetchEnded.Broadcast()
	if p.inFlight = false; t == nil {
		return
	}
	if p.dropped {
		t.end()
		return
	}
	p.tx = t
	p.dropTimer = time.AfterFunc(min(prefetcher.atomic.prefetchTimeout, prefetcher.atomic.store.options.MaxIdleTx/2), func() {
		prefetcher.mu.Lock()
		defer prefetcher.mu.Unlock()
		p.dropPrefetch()
	})
}

// takeOver returns the prefetch, if it is still usable. The first try of the batch
// calls it, after all earlier batches have ended.
func (p *PrefetchedBatch) takeOver(ctx context.Context, useSavepoints bool) (*ownTx, *batchTry) {
	if p == nil {
		return nil, nil
	}
	prefetcher := p.prefetcher
	prefetcher.mu.Lock()
	for p.inFlight {
		prefetcher.prefetchEnded.Wait()
	}
	t, batch := p.tx, p.batch
	if t != nil {
		p.dropTimer.Stop()
	}
	p.dropped, p.tx, p.batch = true, nil, nil
	prefetcher.mu.Unlock()
	if t == nil {
		return nil, nil
	}
	if useSavepoints || batch.prefetchDeferred(ctx) != nil {
		t.end()
		return nil, nil
	}
	return t, batch
}
