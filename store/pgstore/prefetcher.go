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
	atomic *Atomic

	mu            sync.Mutex         // guards the fields below, and the fields of open batches
	open          []*PrefetchedBatch // batches that have not ended, in order
	free          []batchBuffer      // of batches that have ended
	prefetchEnded sync.Cond          // signals that a prefetch has ended
}

// Prefetcher makes a Prefetcher, without any batch.
func (a *Atomic) Prefetcher() *Prefetcher {
	p := &Prefetcher{atomic: a}
	p.prefetchEnded.L = &p.mu
	return p
}

// PrefetchedBatch is a batch of a Prefetcher. Run or Drop it before the next batch
// is run.
type PrefetchedBatch struct {
	prefetcher *Prefetcher
	calls      []semel.Call
	buffer     batchBuffer
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
// Prefetch needs 2 to 1,000 calls, free connections in the pool, and a prefetch of
// each earlier batch. After a second the transaction is dropped. Without a prefetch,
// Run does all the work. A Prefetcher holds the advisory locks of two or more batches
// at the same time; see [Atomic.In] for the server's limit. In the handler, now() may
// be a second old. The times of the records, and so their retention, begin at that
// time too.
func (p *Prefetcher) Prefetch(ctx context.Context, calls []semel.Call) *PrefetchedBatch {
	batch := &PrefetchedBatch{prefetcher: p, calls: calls}
	_, inside := p.atomic.store.inside(ctx)
	possible := !inside && len(calls) > 1 && len(calls) <= maxTogether && p.atomic.savepointBatches.Load() <= 0
	p.mu.Lock()
	p.open = append(p.open, batch)
	if last := len(p.free) - 1; possible && last >= 0 {
		batch.buffer, p.free = p.free[last], p.free[:last]
	}
	p.mu.Unlock()
	if !possible {
		return batch
	}
	try := p.atomic.newPrefetch(calls, &batch.buffer)
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

// Run is [Atomic.RunWhole] of the batch. If fn sets an Outcome or an Err, fn runs once
// more, because the records of the prefetch have neither.
func (p *PrefetchedBatch) Run(ctx context.Context, fn func(ctx context.Context, fresh []*NewCall) error) []Ended {
	defer p.Drop()
	return p.prefetcher.atomic.runWhole(ctx, p, p.calls, fn)
}

// Err tells fn, while it runs, how a call that is not new has ended. It is nil if the
// call is done, or has not ended. With it, fn can leave out calls that must not
// overtake a call that is semel.ErrInProgress elsewhere.
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

// Drop ends the batch, and rolls its prefetch back. It may be called again.
func (p *PrefetchedBatch) Drop() {
	prefetcher := p.prefetcher
	prefetcher.mu.Lock()
	defer prefetcher.mu.Unlock()
	p.dropPrefetch()
	prefetcher.open = slices.DeleteFunc(prefetcher.open, func(o *PrefetchedBatch) bool { return o == p })
	p.batch, p.rows, p.run = nil, nil, nil
	if p.buffer.batchCalls != nil {
		p.buffer.clear()
		prefetcher.free, p.buffer = append(prefetcher.free, p.buffer), batchBuffer{}
	}
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
