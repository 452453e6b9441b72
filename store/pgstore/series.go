package pgstore

import (
	"context"
	"sync"
	"time"

	"github.com/semel-go/semel"
)

// Series is batches that are run one behind the other, each of which may be
// looked for while the one before it runs. Make it with [Atomic.Series]. It is
// for one goroutine.
type Series struct {
	a    *Atomic
	last *Next

	free []room // of batches that have ended

	mu   sync.Mutex // guards what follows in each Next
	told sync.Cond  // of a change there
}

// Series begins a series of batches.
func (a *Atomic) Series() *Series {
	q := &Series{a: a}
	q.told.L = &q.mu
	return q
}

// Next is a batch of a series. Run or Drop it before the one behind it is run.
type Next struct {
	q     *Series
	calls []semel.Call
	y     *inbox // nil: it is not looked for ahead
	room  room

	before  *Next // nil: it has ended
	behind  *Next // nil: there is none yet
	stage   stage
	looking bool        // its look is on its way
	off     bool        // there is to be no look, or not any more
	t       *ownTx      // of the look
	drop    *time.Timer // of t
}

// stage is how far a batch is.
type stage uint8

const (
	toRun   stage = iota // or it has not all of its keys yet
	hasKeys              // all of them, in its only transaction so far
	runsAgain
	ended
)

// lookFor is how long a look is kept: it holds a connection, which a handler may
// wait for, and locks; and of a batch that takes longer it is a small part. The
// server would end it by MaxIdleTx.
const lookFor = time.Second

// spare is how many connections the pool has free where a look takes one:
// handlers may want some, too.
const spare = 3

// Next is the next batch of the series. While the one before it runs it is
// looked for, in a transaction of its own: its keys are locked, and recorded as
// done where they are new. To others they are in progress from then on. There
// is a look from 2 to 1,000 calls, if the pool has connections to spare, and it
// is dropped after a second, and where the batch before has to be run again:
// that comes first. Without one, Run does all.
func (q *Series) Next(ctx context.Context, calls []semel.Call) *Next {
	n := &Next{q: q, calls: calls}
	q.mu.Lock()
	if n.before = q.last; n.before != nil {
		n.before.behind = n
	}
	q.last = n
	q.mu.Unlock()
	if _, inside := q.a.s.inside(ctx); inside || len(calls) < 2 || len(calls) > maxTogether || q.a.wary.Load() > 0 {
		return n
	}
	if last := len(q.free) - 1; last >= 0 {
		n.room, q.free = q.free[last], q.free[:last]
	}
	if n.y = q.a.prepare(calls, &n.room); n.y != nil {
		n.looking = true
		go n.look(ctx)
	}
	return n
}

// Run is [Atomic.RunWhole] of the batch. It costs another run of fn if that
// sets an Outcome or an Err.
func (n *Next) Run(ctx context.Context, fn func(ctx context.Context, fresh []*Fresh) error) []Ended {
	defer n.Drop()
	return n.q.a.runWhole(ctx, n, n.calls, fn)
}

// Drop ends the batch: a look is rolled back. Harmless when repeated.
func (n *Next) Drop() {
	q := n.q
	q.mu.Lock()
	n.unlook()
	n.stage, n.y = ended, nil
	if q.last == n {
		q.last = n.before
	}
	if n.behind != nil {
		n.behind.before = nil
	}
	n.before, n.behind = nil, nil
	if n.room.visitors != nil {
		n.room.clear()
		q.free, n.room = append(q.free, n.room), room{}
	}
	q.told.Broadcast()
	q.mu.Unlock()
}

// unlook drops the look, also one on its way. The caller holds mu.
func (n *Next) unlook() {
	n.off = true
	n.q.told.Broadcast()
	for n.looking {
		n.q.told.Wait()
	}
	if n.t != nil {
		n.drop.Stop()
		n.t.end()
		n.t = nil
	}
}

// look looks for the keys as soon as the batch before has its own: else that
// might find them in progress.
func (n *Next) look(ctx context.Context) {
	q := n.q
	q.mu.Lock()
	defer q.mu.Unlock()
	for !n.off && n.before != nil && n.before.stage != hasKeys {
		q.told.Wait()
	}
	var t *ownTx
	if !n.off {
		q.mu.Unlock()
		ctx, cancel := context.WithTimeout(ctx, lookFor)
		t = n.y.lookAhead(ctx)
		cancel()
		q.mu.Lock()
	}
	if t != nil && n.off {
		t.end()
		t = nil
	}
	if n.looking = false; t != nil {
		n.t = t
		n.drop = time.AfterFunc(min(lookFor, q.a.s.opt.MaxIdleTx/2), func() {
			q.mu.Lock()
			defer q.mu.Unlock()
			n.unlook()
		})
	}
	q.told.Broadcast()
}

// begun is what was begun ahead, if it is still good: once, for the first try.
func (n *Next) begun(ctx context.Context, careful bool) (*ownTx, *inbox) {
	if n == nil {
		return nil, nil
	}
	q := n.q
	q.mu.Lock()
	n.before = nil
	q.told.Broadcast()
	for n.looking {
		q.told.Wait()
	}
	t, y := n.t, n.y
	if t != nil {
		n.drop.Stop()
	}
	n.off, n.t, n.y = true, nil, nil
	q.mu.Unlock()
	if t == nil {
		return nil, nil
	}
	if careful || y.lookBusy(ctx) != nil {
		t.end()
		return nil, nil
	}
	n.hasKeys()
	return t, y
}

// hasKeys is when the one behind may be looked for.
func (n *Next) hasKeys() {
	if n == nil {
		return
	}
	n.q.mu.Lock()
	defer n.q.mu.Unlock()
	if n.stage == toRun {
		n.stage = hasKeys
		n.q.told.Broadcast()
	}
}

// again comes before a batch is run again. It has no key any more, so the one
// behind must have none, either: a message of that would overtake it.
func (n *Next) again() {
	if n == nil {
		return
	}
	n.q.mu.Lock()
	defer n.q.mu.Unlock()
	n.stage = runsAgain
	if n.behind != nil {
		n.behind.unlook()
	}
}
