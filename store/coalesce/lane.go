package coalesce

import (
	"context"
	"errors"
	"sync"
)

// ErrClosed is what requests get after Close.
var ErrClosed = errors.New("coalesce: the lane is closed")

// Options configures a Lane. Nil and the zero value are the defaults.
type Options[Req any] struct {
	// MaxBatch is the most requests in one flush. Zero: 256.
	MaxBatch int
	// Flushers is how many flushes may be in flight at once. Zero: 1. While
	// requests come in crowds fewer are used, for fuller batches: see [Lane].
	Flushers int
	// Company is how many requests wait, in a crowd, for each flush in flight
	// before one more begins: the more, the more a flush costs by itself, beside
	// what is in it. Zero: 8. MaxBatch at most.
	Company int
	// Conflict numbers requests so that equal numbers are never in flight
	// together, in one flush or in two: they take their turns, in the order
	// in which they came. A hash of what must not meet will do, for a
	// collision only delays. Nil: all may meet. It must be pure.
	Conflict func(req *Req) uint64
}

// Item is one request of a flush, and the place for its answer: Res and Err.
// It belongs to the flush until the flush function returns, and never after.
type Item[Req, Res any] struct {
	Req Req
	Res Res
	Err error

	done       chan struct{} // one value, once the answer is there
	prev, next *Item[Req, Res]
	state      state
	urgent     bool
	number     uint64             // Options.Conflict's
	behind     list[Req, Res]     // those with the same number
	trip       *trip[Req, Res]    // while in flight
	self       [1]*Item[Req, Res] // a batch of its own, to spare an allocation
}

type state uint8

const (
	queued   state = iota // in one of Lane.queue
	blocked               // in another item's behind
	inFlight              // in a trip
	answered              // done has its value, or is about to
)

// Lane gathers requests of one kind. Safe for concurrent use. Make it with
// [New].
//
// A request that comes while requests come one by one is flushed at once, by
// any flusher that is free. In a crowd it waits for company, though a flusher
// is free: until nothing is in flight, or [Options].Company wait for each flush
// in flight, or those take longer than they used to. (If nothing is, then only
// for those who are about to ask.) So a flush that hangs holds up none but its
// own for more than six times what recent flushes took, and never for more than
// 40 ms, as long as a flusher is free.
type Lane[Req, Res any] struct {
	flush    func(ctx context.Context, batch []*Item[Req, Res])
	conflict func(*Req) uint64
	max      int
	flushers int
	company  int // Options.Company

	mu      sync.Mutex
	queue   [2]list[Req, Res] // urgent ones, others
	holder  map[uint64]*Item[Req, Res]
	waiting int // items that are queued or blocked
	running int // flushers at work: at least one while queue is not empty
	pace    pace
	closed  bool
	idle    chan struct{} // closed when closed and nothing runs
	free    list[Req, Res]
	nfree   int
}

// New makes a lane. Flush is given up to MaxBatch requests and answers each by
// setting its Res or Err; one left alone is answered with zero and nil. With
// several Flushers it is called concurrently. Its context is the caller's own
// if requests come one by one, and a flusher was free; else one without values
// or a deadline that ends when the last of the batch's callers has gone, so no
// single caller can cancel what others wait for. If flush panics, each of its
// callers gets a [*PanicError].
func New[Req, Res any](flush func(ctx context.Context, batch []*Item[Req, Res]), o *Options[Req]) *Lane[Req, Res] {
	l := &Lane[Req, Res]{flush: flush, max: 256, flushers: 1, company: 8}
	if o == nil {
		return l
	}
	if o.MaxBatch > 0 {
		l.max = o.MaxBatch
	}
	if o.Flushers > 0 {
		l.flushers = o.Flushers
	}
	if o.Company > 0 {
		l.company = o.Company
	}
	l.company = min(l.company, l.max)
	if l.conflict = o.Conflict; l.conflict != nil {
		l.holder = map[uint64]*Item[Req, Res]{}
	}
	return l
}

// Do has req flushed, and returns its answer. A caller whose ctx ends while
// req is queued leaves with ctx's error, and req is not sent; one whose ctx
// ends later leaves too, and whether req was carried out is not known. A
// caller that flushes its request itself returns when flush does.
func (l *Lane[Req, Res]) Do(ctx context.Context, req Req) (Res, error) { return l.do(ctx, req, false) }

// Urgent is Do ahead of all requests that are queued by Do. One that
// conflicts with a queued request still comes after it.
func (l *Lane[Req, Res]) Urgent(ctx context.Context, req Req) (Res, error) {
	return l.do(ctx, req, true)
}

// Alone is Do if a flusher is free, and nothing that it conflicts with is in
// flight: then req is flushed at once, by itself, on the caller's goroutine.
// Else ok is false, and nothing was done.
func (l *Lane[Req, Res]) Alone(ctx context.Context, req Req) (res Res, ok bool, err error) {
	if err := ctx.Err(); err != nil {
		return res, true, err
	}
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return res, true, ErrClosed
	}
	if l.running >= l.flushers || l.conflict != nil && l.holder[l.conflict(&req)] != nil {
		l.mu.Unlock()
		return res, false, nil
	}
	it := l.get()
	it.Req = req
	l.enter(it, true)
	l.mu.Unlock()
	l.alone(ctx, it)
	res, err = it.Res, it.Err
	l.put(it)
	return res, true, err
}

func (l *Lane[Req, Res]) do(ctx context.Context, req Req, urgent bool) (res Res, err error) {
	if err := ctx.Err(); err != nil {
		return res, err
	}
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return res, ErrClosed
	}
	it := l.get()
	it.Req, it.urgent = req, urgent
	if l.enter(it, false) {
		l.mu.Unlock()
		l.alone(ctx, it)
	} else {
		l.mu.Unlock()
		if !l.wait(ctx, it) {
			return res, ctx.Err()
		}
	}
	res, err = it.Res, it.Err
	l.put(it)
	return res, err
}

// wait waits for the answer, and reports false if ctx ended before.
func (l *Lane[Req, Res]) wait(ctx context.Context, it *Item[Req, Res]) bool {
	end := ctx.Done()
	if end == nil { // it never ends; a select would cost twice as much
		<-it.done
		return true
	}
	select {
	case <-it.done:
	case <-end:
		if l.leave(it) {
			return false
		}
		<-it.done
	}
	return true
}

// enter queues it, unless the caller is to flush it at once: now, if it likes
// to and can.
func (l *Lane[Req, Res]) enter(it *Item[Req, Res], now bool) (alone bool) {
	if l.conflict != nil {
		it.number = l.conflict(&it.Req)
		if h := l.holder[it.number]; h != nil {
			l.waiting++
			it.state = blocked
			h.behind.push(it)
			return false
		}
		l.holder[it.number] = it
	}
	if l.running < l.flushers && (now || !l.pace.crowded()) {
		l.running++
		it.state = inFlight
		return true
	}
	l.waiting++
	l.enqueue(it)
	if l.waiting >= l.enough(l.running) {
		l.help()
	} else {
		l.hold()
	}
	return false
}

func (l *Lane[Req, Res]) enqueue(it *Item[Req, Res]) {
	it.state = queued
	if it.urgent {
		l.queue[0].push(it)
	} else {
		l.queue[1].push(it)
	}
}

// release lets the first of those behind it take its place. It goes to the
// back, so that a number in demand does not hold up the others.
func (l *Lane[Req, Res]) release(it *Item[Req, Res]) {
	if l.conflict == nil {
		return
	}
	next := it.behind.pop()
	if next == nil {
		delete(l.holder, it.number)
		return
	}
	next.behind, it.behind = it.behind, list[Req, Res]{}
	l.holder[it.number] = next
	l.enqueue(next)
}

// leave takes the caller of it away, and reports false if the answer has come
// already.
func (l *Lane[Req, Res]) leave(it *Item[Req, Res]) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch it.state {
	case queued:
		if it.urgent {
			l.queue[0].remove(it)
		} else {
			l.queue[1].remove(it)
		}
		l.waiting--
		l.release(it)
	case blocked:
		l.waiting--
		l.holder[it.number].behind.remove(it)
	case inFlight:
		it.trip.leave()
	case answered:
		return false
	}
	return true
}

// Queued is how many requests wait for a flush now: for metrics and tests.
func (l *Lane[Req, Res]) Queued() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.waiting
}

// Close refuses new requests, and returns when those that it found have been
// answered. A flush must not call it. Harmless when repeated.
func (l *Lane[Req, Res]) Close() {
	l.mu.Lock()
	l.closed = true
	if l.running == 0 {
		l.mu.Unlock()
		return
	}
	if l.idle == nil {
		l.idle = make(chan struct{})
	}
	idle := l.idle
	l.mu.Unlock()
	<-idle
}
