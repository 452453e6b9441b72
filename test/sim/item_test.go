package sim

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"sync/atomic"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/test/linear"
)

// kind is what a goroutine asks the scheduler for.
type kind uint8

const (
	ends   kind = iota // a call has ended
	begins             // a handler has begun
	naps               // a handler wants to be woken later
	acts               // a handler or a reconciler sends to the ledger
	claims             // the rest are messages to the store
	swaps
	renews
	settles
	gets
	sweeps
	lists
	records
	journals
	queries // to the database of an atomic seed
)

var kindNames = [...]string{"ends", "begins", "naps", "acts", "claim", "swap", "renew", "settle", "get", "sweep", "list", "record step", "steps", "query"}

// item is one such request, and its answer.
type item struct {
	kind   kind
	p      *process
	c      *call // nil: nobody's, such as a renewal
	key    store.Key
	fence  uint64
	apply  func() reply // on the scheduler's goroutine
	ticks  int          // of a nap
	tx     *tx          // of a query
	parent *run         // of a step's

	inputs   []linear.Input // the operation, by key, if a history is kept
	reply    reply
	done     chan struct{}
	answered bool        // the scheduler's
	left     atomic.Bool // the sender has given up
	sent     int         // number of the message in the trace and the history
}

// reply is what the store answers to any of its methods.
type reply struct {
	found store.Found
	errs  []error
	swept store.SweepResult
	list  []store.Found
	steps []store.Step
	err   error
	op    int // number of the first operation in the history, and how many
	ops   int

	verdict semel.Verdict // of the ledger
}

func (it *item) call() int {
	if it.c == nil {
		return 0
	}
	return it.c.id
}

// compare orders the requests that came since the scheduler last looked. No
// two of one moment are equal in all of it.
func (it *item) compare(o *item) int {
	return cmp.Or(cmp.Compare(it.p.id, o.p.id), cmp.Compare(it.call(), o.call()), cmp.Compare(it.kind, o.kind),
		strings.Compare(it.key.Operation, o.key.Operation), strings.Compare(it.key.Value, o.key.Value), cmp.Compare(it.fence, o.fence))
}

var errDead = errors.New("sim: the process is dead")

// ask hands an item to the scheduler and waits for the answer.
func (p *process) ask(ctx context.Context, it *item) (reply, error) {
	if !p.post(it) {
		return reply{}, errDead
	}
	select {
	case <-it.done:
		return it.reply, it.reply.err
	case <-ctx.Done():
		it.left.Store(true)
		return reply{}, context.Cause(ctx)
	}
}

// post hands an item to the scheduler. False: the process is dead.
func (p *process) post(it *item) bool {
	it.p, it.done = p, make(chan struct{})
	w := p.w
	w.mu.Lock()
	defer w.mu.Unlock()
	if p.dead {
		return false
	}
	w.box = append(w.box, it)
	return true
}

// answer lets the sender go on.
func (w *world) answer(it *item, r reply) {
	if it.answered {
		return
	}
	it.answered, it.reply = true, r
	close(it.done)
}

// accept plans what becomes of an item.
func (w *world) accept(it *item) {
	p := it.p
	if p.dead {
		w.answer(it, reply{err: errDead})
		return
	}
	p.asked = append(p.asked, it)
	w.note("asks: "+kindNames[it.kind], it.call(), int64(it.p.id))
	e := &event{at: w.tick, proc: p}
	switch it.kind {
	case ends:
		e.first, e.run = true, func() { w.ended(it.c) }
	case begins:
		e.first, e.wakes, e.run = true, true, func() { w.answer(it, it.apply()) }
	case naps:
		e.at, e.wakes, e.run = w.tick+it.ticks, true, func() { w.answer(it, reply{}) }
	case acts:
		e.run = func() { w.act(it) }
	case queries:
		w.tally.ops++
		e.run = func() { w.db.query(it) }
	default:
		w.tally.ops++
		w.truth.sent++
		it.sent = w.truth.sent
		w.truth.hist.sent(it)
		e.run = func() { w.send(it) }
	}
	w.push(e)
}
