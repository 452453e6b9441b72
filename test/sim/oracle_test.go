package sim

import (
	"errors"
	"strings"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
)

// answered compares the answer of a call with the outcome that was recorded first.
func (w *world) answered(c *call) {
	e := &c.end
	f, final := errors.AsType[*semel.Failure](e.err)
	_, reasoned := errors.AsType[*semel.Error](e.err)
	switch {
	case e.left:
		w.settledAfter(c)
	case c.reserve && e.err == nil && e.ticket.Result == nil:
		w.ticketed(c)
	case c.reserve && e.err == nil:
		w.reach(ticketDone)
		w.replayed(c, func(o *store.Outcome) bool { return string(o.Body) == string(e.ticket.Result.Body) })
	case e.err == nil && e.res.Replayed:
		if c.busy {
			w.reach(waiterWoken)
		}
		w.replayed(c, func(o *store.Outcome) bool { return !o.Gone && string(o.Body) == string(e.res.Body) })
	case e.err == nil:
		w.executed(c, store.Completed, func(o *store.Outcome) bool { return o.Gone || string(o.Body) == string(e.res.Body) })
	case final && !reasoned:
		same := func(o *store.Outcome) bool { return strings.Contains(string(o.Body), `"`+f.Code+`"`) }
		if c.run != nil {
			w.executed(c, store.Failed, same)
		} else {
			w.replayed(c, same)
		}
	case errors.Is(e.err, semel.ErrNotKept):
		w.reach(notKept)
		w.replayed(c, func(o *store.Outcome) bool { return o.Gone })
	case errors.Is(e.err, semel.ErrMismatch):
		w.mismatched(c)
	case errors.Is(e.err, semel.ErrExpired):
		w.reach(tokenExpired)
	case errors.Is(e.err, semel.ErrReleased):
		w.reach(waiterFailed)
	case errors.Is(e.err, semel.ErrInvalid), errors.Is(e.err, semel.ErrUnverifiable), errors.Is(e.err, store.ErrCorrupt):
		w.fail("call %d: %v", c.id, e.err)
	}
}

// executed is for who ran the handler: the outcome is of that run, and first.
func (w *world) executed(c *call, s store.State, same func(*store.Outcome) bool) {
	r := c.run
	switch {
	case r == nil:
		w.fail("call %d got %s, but ran nothing", c.id, c.answer())
	case r.free:
	default:
		first, ok := w.truth.first[r.life]
		if !ok || first.fence != r.fence || first.state != s || !same(&first.out) {
			w.fail("call %d got %s of run %d, fence %d; recorded first is %+v", c.id, c.answer(), r.id, r.fence, first)
		}
		w.book.stands(&first, r.key)
		w.paid(c, r.life, r.fence)
		if time.Duration(w.tick-r.at)*tick > w.plan.lease {
			w.reach(renewalSaved)
		}
	}
}

// replayed is for who got the outcome of another.
func (w *world) replayed(c *call, same func(*store.Outcome) bool) {
	l := w.truth.lifeOf(&c.seen)
	first, ok := w.truth.first[l]
	if !ok || c.seen.Key != c.key || !same(&first.out) {
		w.fail("call %d got %s; recorded first is %+v", c.id, c.answer(), first)
	}
	w.book.stands(&first, c.key)
	w.paid(c, l, c.seen.Fence)
}

// beginning is how a life began. A key that had no effect may begin anew within one
// microsecond, so that two lives have one name; then the fence tells them apart.
type beginning struct {
	payload int
	fence   uint64
}

// paid checks that an answer, by the record with this fence, belongs to a call with the
// same payload.
func (w *world) paid(c *call, l life, fence uint64) {
	w.tally.answers++
	if w.told == nil {
		w.told = map[life]bool{}
	}
	w.told[l] = true
	if p, ok := w.truth.asked[l]; ok && p.fence <= fence && p.payload != c.payload {
		w.fail("call %d with payload %d got %s, of a call with payload %d", c.id, c.payload, c.answer(), p.payload)
	}
}

func (w *world) mismatched(c *call) {
	if p, ok := w.truth.asked[w.truth.lifeOf(&c.seen)]; ok && p.fence <= c.seen.Fence && p.payload == c.payload {
		w.fail("call %d with payload %d was told of a mismatch with %d", c.id, c.payload, p.payload)
	}
	if c.seen.State.Terminal() {
		w.reach(mismatchDone)
	} else {
		w.reach(mismatchInFlight)
	}
}

// ticketed checks that a reservation has one token.
func (w *world) ticketed(c *call) {
	t, l := c.end.ticket, w.truth.lifeOf(&c.seen)
	if t.Fresh {
		w.reach(ticketFresh)
	} else {
		w.reach(ticketSame)
	}
	if w.tokens == nil {
		w.tokens = map[life]string{}
	}
	if old, ok := w.tokens[l]; ok && old != t.Token {
		w.fail("call %d got another token for the same reservation of %v", c.id, c.key)
	}
	w.tokens[l] = t.Token
}

// settledAfter looks at what a panic or Goexit has left.
func (w *world) settledAfter(c *call) {
	r := c.run
	if r == nil {
		return
	}
	now, ok := w.truth.now[r.key]
	if !ok || now.Fence != r.fence || now.State == store.Processing {
		return
	}
	if c.end.panicked != nil {
		w.reach(panicSettled)
	} else {
		w.reach(goexitSettled)
	}
}

// peace ends the faults.
func (w *world) peace() {
	w.calm, w.down = true, 0
	w.plan.calm()
	if w.replica != nil && w.replica.cut {
		w.replica.cut = false
		w.replica.replicate(w)
	}
	for _, p := range w.procs {
		p.frozen = 0
	}
	w.note("peace", 0, 0)
}

// ending is what happens once all calls have ended: a sweep, when nothing can
// be held any more, and a last call of each key. True: it is over.
func (w *world) ending() bool {
	switch {
	case len(w.queue) > 0:
		return false
	case w.quiet == 0:
		held := max(w.plan.lease, w.plan.settle)
		for _, r := range w.truth.now {
			held = max(held, r.Until.Sub(w.now()))
		}
		w.quiet = w.tick + int(held/tick) + 4
	case w.tick < w.quiet:
	case w.tick == w.quiet:
		w.sweep()
	case w.tick == w.quiet+2 && w.db == nil:
		for k, r := range w.truth.now {
			w.truth.judge(!r.Lapsed(w.now()), "%v is still %v, lapsed and swept", k, r.State)
		}
	case w.tick == w.quiet+3:
		for i := range w.plan.keys {
			w.call(&call{w: w, key: store.Key{Operation: "pay", Tenant: "ann", Value: string(rune('a' + i))}, probe: true})
		}
	}
	return w.tick > w.quiet+4 && w.quiet > 0
}
