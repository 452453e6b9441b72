package sim

import (
	"errors"

	"github.com/semel-go/semel/store"
)

var (
	errLost   = errors.New("sim: the message or its reply was lost")
	errOutage = errors.New("sim: the store is down")
)

// send draws what becomes of a message to the store.
func (w *world) send(it *item) {
	m := &w.plan.message
	x := w.rng.Float64()
	hit := func(p float64) bool {
		x -= p
		return x < 0 && p > 0
	}
	few := func(n int) int { return w.rng.IntN(n) }
	switch {
	case w.down > w.tick:
		w.reach(outageRefused)
		w.back(it, few(2), reply{err: errOutage})
	case it.kind == renews && w.odds(m.renewal):
		w.back(it, few(2), reply{err: errLost})
	case hit(m.before):
		w.note("not sent: "+kindNames[it.kind], it.call(), int64(it.sent))
		w.back(it, few(2), reply{err: errLost})
	case hit(m.lost):
		w.reach(messageLost)
		w.arrive(it, few(2), func(reply) { w.back(it, few(2), reply{err: errLost}) })
	case hit(m.late):
		w.reach(messageLate)
		w.back(it, few(2), reply{err: errLost})
		w.arrive(it, 1+few(20), nil)
	case hit(m.twice):
		w.reach(messageTwice)
		first := few(2) == 0
		w.arrive(it, 0, func(r reply) {
			if first {
				w.back(it, 0, r)
			}
			w.arrive(it, few(10), func(r reply) {
				if !first {
					w.back(it, 0, r)
				}
			})
		})
	case hit(m.stall):
		w.reach(messageStalled)
		if few(2) == 0 {
			w.arrive(it, few(20), nil)
		}
		w.back(it, 10+few(30), reply{err: errLost})
	case hit(m.slow):
		w.arrive(it, few(4), func(r reply) { w.back(it, few(4), r) })
	default:
		w.arrive(it, 0, func(r reply) { w.back(it, 0, r) })
	}
}

// arrive applies a message at the store, some ticks later.
func (w *world) arrive(it *item, ticks int, then func(reply)) {
	w.after(ticks, func() {
		if w.down > w.tick {
			w.reach(outageRefused)
			w.back(it, 0, reply{err: errOutage})
			return
		}
		if w.db != nil && w.db.open != nil { // it waits for the transaction's end
			w.arrive(it, 1, then)
			return
		}
		late := it.answered || it.left.Load() || it.p.dead
		var r reply
		if w.replica != nil {
			r = w.applyReplicated(it)
		} else {
			r = it.apply()
		}
		r.op, r.ops = w.truth.hist.arrived(it)
		w.note(kindNames[it.kind]+" applied", it.call(), int64(it.sent)<<8|outcome(&r))
		if late && refused(it, &r) {
			w.reach(lateRefused)
		}
		if then != nil {
			then(r)
		}
	})
}

// back brings an answer to the sender, some ticks later.
func (w *world) back(it *item, ticks int, r reply) {
	w.push(&event{at: w.tick + ticks, proc: it.p, wakes: true, run: func() {
		if it.answered || it.left.Load() {
			return
		}
		w.note(kindNames[it.kind]+" answered", it.call(), int64(it.sent)<<8|outcome(&r))
		if c := it.c; c != nil && r.err == nil && it.key == c.key && (it.kind == claims || it.kind == swaps || it.kind == gets || it.kind == queries && r.found.Record.Key == c.key) {
			c.seen = r.found.Record
			c.busy = c.busy || c.seen.State == store.Processing && !r.found.Won
		}
		w.truth.hist.told(it, &r)
		w.answer(it, r)
	}})
}

// outcome is an answer as a small number, for the trace.
func outcome(r *reply) int64 {
	switch {
	case r.err != nil:
		return 1
	case r.found.Won:
		return 2
	}
	return 3 + int64(r.found.Record.State)
}

// refused reports whether the store refused a change.
func refused(it *item, r *reply) bool {
	switch it.kind {
	case settles, swaps:
		return r.err != nil || it.kind == swaps && !r.found.Won
	case claims:
		return r.err == nil && !r.found.Won
	}
	return false
}
