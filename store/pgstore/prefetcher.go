package pgstore

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/semel-go/semel"
)

// Prefetcher runs batches of calls, one after the other, as [Atomic.RunBatch] does. While
// a batch runs, it prefetches the batches after it: it locks their keys and looks up their
// records, so that they take less time later. Make it with [Atomic.Prefetcher]. One
// goroutine may call Prefetch while another one runs the batches.
//
// The advisory locks of several batches are held at once; [Atomic.In] names the server's
// limit. In a handler, now() is the time of the prefetch, and the records' retention begins
// then.
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

// PrefetchedBatch is a batch that was passed to [Prefetcher.Prefetch]. Call Run or Drop
// before you run the next batch. If the batch could not be prefetched, Run only takes
// longer.
type PrefetchedBatch struct {
	prefetcher *Prefetcher
	calls      []semel.Call
	rows       []*batchCall // the keys of calls; nil: not known
	run        *batchRun    // set by Run

	// The prefetch.
	batch     *batchTry   // nil: there is no prefetch
	inFlight  bool        // its statements are not answered, or its transaction is ending
	dropped   bool        // no longer wanted
	tx        *ownTx      // nil until its statements are answered
	dropTimer *time.Timer // ends tx
}

// prefetchTimeout limits a prefetch, and how long its transaction stays open, because
// the transaction holds locks and a connection that a handler may need. A shorter StoreTimeout
// takes its place.
const prefetchTimeout = time.Second

// spareConnections is how many connections of the pool must be free for a prefetch, so
// that enough of them remain for handlers.
const spareConnections = 3

// Prefetch appends a batch. While earlier batches run, a transaction locks the keys of
// this batch, and inserts records for new keys. Other callers see these keys in progress
// until that transaction commits, at the end of Run. If an earlier batch has the same key,
// the key is looked up after that batch has ended, so that calls of a key keep their order.
//
// A batch is prefetched if these conditions hold; otherwise Run does all the work:
//   - It has 2 to 1,000 calls, all with the same operation and tenant. The same is true
//     of each earlier batch that has not ended.
//   - 3 connections of the pool are free.
//   - In the last ten batches or so, no handler has failed or set an Outcome or Err. After
//     such a batch, the next ten set a savepoint instead.
//   - It runs within a second after its prefetch, or within StoreTimeout or half of MaxIdleTx if
//     that is shorter; otherwise the prefetch is rolled back.
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

// Run runs the batch as [Atomic.RunBatch] does. The records that a prefetch has inserted
// are not committed yet, and are already in the state completed, without an Outcome. If fn
// sets an Outcome or an Err in a prefetched batch, these records are wrong: the transaction is
// rolled back, and fn runs again in a new one.
func (p *PrefetchedBatch) Run(ctx context.Context, fn func(ctx context.Context, newCalls []*PendingCall) error) []BatchResult {
	defer p.Drop()
	return p.prefetcher.atomic.runBatch(ctx, p, p.calls, fn)
}

// Err returns the error with which call i of the batch has ended. It returns nil if call i
// has succeeded, now or earlier, or if call i is still running. Use Err inside fn, to learn
// about the calls that fn does not get.
//
// If Err returns semel.ErrInProgress, another transaction is running the key of call i. If
// call k must not run before call i, fn must write nothing for call k, and must set its
// PendingCall.Err to semel.NoEffect(batch.Err(i)).
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
	if useSavepoints || t.limited(ctx, batch.prefetchDeferred) != nil {
		t.end()
		return nil, nil
	}
	return t, batch
}
