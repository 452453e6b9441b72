package coalesce

import (
	"context"
	"errors"
	"sync"
)

// ErrClosed is the error of requests after Close.
var ErrClosed = errors.New("coalesce: the batcher is closed")

// Options configures a Batcher. Nil and the zero value mean the defaults.
type Options[Req any] struct {
	// MaxBatch is the most requests in one flush. Zero: 256.
	MaxBatch int
	// Flushers is how many flushes may be in flight at once. Zero: 1. Under
	// load fewer are used, so that batches are fuller; see [Batcher].
	Flushers int
	// QueuedPerFlush is how many requests must be queued, for each flush in flight,
	// before another flush begins under load. Raise it if a flush is expensive
	// however few requests it has. Zero: 8. The limit is MaxBatch.
	QueuedPerFlush int
	// Detached: no caller flushes its request itself, so that each returns when
	// its context ends, even if the flush ignores that. It costs a goroutine for
	// each request that comes alone.
	Detached bool
	// Conflict returns a number for a request. Requests with equal numbers are
	// never in flight together, in one flush or in two; they take turns, in
	// the order in which they came. A hash of the key is good enough, because
	// a collision only delays. Nil: no requests conflict. It must be pure.
	Conflict func(req *Req) uint64
}

// Item is one request of a flush, and its answer: Res and Err. The flush function
// must not use it after it has returned.
type Item[Req, Res any] struct {
	Req Req
	Res Res
	Err error

	done       chan struct{} // one value, once the answer is there; nil in a batch of one
	prev, next *Item[Req, Res]
	state      state
	urgent     bool
	number     uint64            // Options.Conflict's
	blocked    list[Req, Res]    // later requests with the same number
	flight     *flight[Req, Res] // while in flight
}

type state uint8

const (
	queued   state = iota // in one of Batcher.queue
	blocked               // in another item's blocked list
	inFlight              // in a flight
	answered              // done has its value, or is about to
)

// Batcher gathers requests of one kind. Safe for concurrent use. Make it with
// [New].
//
// While requests come one by one, each is flushed at once by a free flusher.
// Under load, when recent flushes had several requests, a request is queued even
// if a flusher is free, so that batches are fuller, until
//
//   - no flush is in flight, or
//   - [Options].QueuedPerFlush requests are queued for each flush in flight, or
//   - the flushes in flight take longer than recent ones did.
//
// So a flush that hangs delays the requests after it by at most six times the
// duration of recent flushes, and by at most 40 ms, if a flusher is free.
type Batcher[Req, Res any] struct {
	flush          func(ctx context.Context, batch []*Item[Req, Res])
	conflict       func(*Req) uint64
	max            int
	flushers       int
	queuedPerFlush int // Options.QueuedPerFlush
	detached       bool

	mu      sync.Mutex
	queue   [2]list[Req, Res] // urgent ones, others
	holder  map[uint64]*Item[Req, Res]
	waiting int // items that are queued or blocked
	running int // flushers at work: at least one while queue is not empty
	pace    pace
	closed  bool
	idle    chan struct{} // closed when closed and nothing runs
}

// New makes a batcher. Flush gets up to MaxBatch requests and answers each by setting
// its Res or Err. With several Flushers it is called concurrently. If a single
// request is flushed by its caller, flush gets the caller's context; otherwise it
// gets one without values and deadline, which ends when the last caller of the
// batch has left, so that no caller can cancel the requests of others. If flush
// panics, each of its callers gets a [*PanicError].
func New[Req, Res any](flush func(ctx context.Context, batch []*Item[Req, Res]), o *Options[Req]) *Batcher[Req, Res] {
	b := &Batcher[Req, Res]{flush: flush, max: 256, flushers: 1, queuedPerFlush: 8}
	if o == nil {
		return b
	}
	if o.MaxBatch > 0 {
		b.max = o.MaxBatch
	}
	if o.Flushers > 0 {
		b.flushers = o.Flushers
	}
	if o.QueuedPerFlush > 0 {
		b.queuedPerFlush = o.QueuedPerFlush
	}
	b.queuedPerFlush, b.detached = min(b.queuedPerFlush, b.max), o.Detached
	if b.conflict = o.Conflict; b.conflict != nil {
		b.holder = map[uint64]*Item[Req, Res]{}
	}
	return b
}

// Do flushes req and returns its answer. If ctx ends while req is queued, Do
// returns ctx's error and req is not sent. If ctx ends later, Do returns ctx's
// error too, and it is not known whether req took effect. A caller that flushes
// its request itself returns when flush does.
func (b *Batcher[Req, Res]) Do(ctx context.Context, req Req) (Res, error) {
	return b.do(ctx, req, false)
}

// Urgent is Do, but overtakes all requests that Do has queued. A request that
// conflicts with a queued one still comes after it.
func (b *Batcher[Req, Res]) Urgent(ctx context.Context, req Req) (Res, error) {
	return b.do(ctx, req, true)
}

func (b *Batcher[Req, Res]) do(ctx context.Context, req Req, urgent bool) (res Res, err error) {
	if err := ctx.Err(); err != nil {
		return res, err
	}
	b.mu.Lock()
	if b.closed {
		b.mu.Unlock()
		return res, ErrClosed
	}
	it := &Item[Req, Res]{Req: req, urgent: urgent}
	if b.enter(it) {
		b.mu.Unlock()
		b.alone(ctx, it)
	} else {
		b.mu.Unlock()
		if !b.wait(ctx, it) {
			return res, ctx.Err()
		}
	}
	return it.Res, it.Err
}

// wait waits for the answer, and reports false if ctx ended before.
func (b *Batcher[Req, Res]) wait(ctx context.Context, it *Item[Req, Res]) bool {
	end := ctx.Done()
	if end == nil { // it never ends, and a select would cost twice as much
		<-it.done
		return true
	}
	select {
	case <-it.done:
	case <-end:
		if b.leave(it) {
			return false
		}
		<-it.done
	}
	return true
}

// enter queues it, or reports that the caller must flush it at once.
func (b *Batcher[Req, Res]) enter(it *Item[Req, Res]) (alone bool) {
	if b.conflict != nil {
		it.number = b.conflict(&it.Req)
		if h := b.holder[it.number]; h != nil {
			b.waiting++
			it.state, it.done = blocked, make(chan struct{}, 1)
			h.blocked.push(it)
			return false
		}
		b.holder[it.number] = it
	}
	if b.running < b.flushers && !b.detached && !b.pace.crowded() {
		b.running++
		it.state = inFlight
		return true
	}
	b.waiting++
	it.done = make(chan struct{}, 1)
	b.enqueue(it)
	if b.waiting >= b.enough(b.running) {
		b.help()
	} else {
		b.hold()
	}
	return false
}

func (b *Batcher[Req, Res]) enqueue(it *Item[Req, Res]) {
	it.state = queued
	if it.urgent {
		b.queue[0].push(it)
	} else {
		b.queue[1].push(it)
	}
}

// release queues the first request that it blocks. That one goes to the end of
// the queue, so that a number in demand does not delay the others.
func (b *Batcher[Req, Res]) release(it *Item[Req, Res]) {
	if b.conflict == nil {
		return
	}
	next := it.blocked.pop()
	if next == nil {
		delete(b.holder, it.number)
		return
	}
	next.blocked, it.blocked = it.blocked, list[Req, Res]{}
	b.holder[it.number] = next
	b.enqueue(next)
}

// leave removes the caller of it. It reports false if the answer is there.
func (b *Batcher[Req, Res]) leave(it *Item[Req, Res]) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch it.state {
	case queued:
		if it.urgent {
			b.queue[0].remove(it)
		} else {
			b.queue[1].remove(it)
		}
		b.waiting--
		b.release(it)
	case blocked:
		b.waiting--
		b.holder[it.number].blocked.remove(it)
	case inFlight:
		it.flight.leave()
	case answered:
		return false
	}
	return true
}

// Queued returns how many requests wait for a flush, for metrics and tests.
func (b *Batcher[Req, Res]) Queued() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.waiting
}

// Close refuses new requests, and returns when all earlier ones have their answers.
// A flush must not call it. Calling it again is harmless.
func (b *Batcher[Req, Res]) Close() {
	b.mu.Lock()
	b.closed = true
	if b.running == 0 {
		b.mu.Unlock()
		return
	}
	if b.idle == nil {
		b.idle = make(chan struct{})
	}
	idle := b.idle
	b.mu.Unlock()
	<-idle
}
