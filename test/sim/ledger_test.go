package sim

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
)

// run is one start of a handler.
type run struct {
	id      int
	c       *call
	p       *process
	key     store.Key
	life    life
	fence   uint64
	attempt int
	policy  semel.Policy
	ctx     context.Context
	at      int // tick
	rng     *rand.Rand
	free    bool // without a record, or a rerun: nothing is promised of its effects
	again   bool // a rerun
	done    atomic.Bool
	spared  bool // it said that it had no effect
	effects int
	tx      *tx  // nil: outside of one
	parent  *run // of a step; nil: the run is of a call
}

// ledger is the world outside: where the money moves. It keeps what no store
// can: how often an effect really happened.
type ledger struct {
	w        *world
	runs     []*run
	effects  map[life][]*run
	starts   map[life][]*run
	by       map[claimID]*run     // of a claim: the last
	void     map[store.Key]uint64 // effects up to this fence are refused: a reconciler has said that they did not happen
	gullible bool                 // a control: an effect may happen after a "no"
	reset    map[store.Key]bool   // an operator gave attempts back
}

func (l *ledger) init(w *world) {
	*l = ledger{w: w, effects: map[life][]*run{}, starts: map[life][]*run{}, by: map[claimID]*run{}, void: map[store.Key]uint64{}, reset: map[store.Key]bool{}}
}

// start is told of each handler that begins, before it does anything.
func (l *ledger) start(r *run) {
	w := l.w
	r.id, r.at = len(l.runs)+1, w.tick
	r.rng = rand.New(rand.NewPCG(w.seed, uint64(r.id)))
	l.runs = append(l.runs, r)
	w.tally.runs++
	w.note("begins "+r.key.Operation+" "+r.key.Value, r.c.id, int64(r.id))
	for _, o := range l.runs[:len(l.runs)-1] {
		if o.key == r.key && o.c.ended > 0 && r.c.began > o.c.ended && r.fence <= o.fence && r.tx == nil && !r.free && !o.free {
			w.fail("run %d of %v has fence %d, after run %d had ended with fence %d", r.id, r.key, r.fence, o.id, o.fence)
		}
	}
	switch {
	case r.again:
		w.reach(reran)
		l.alone(r)
		return
	case r.free:
		return
	}
	var ok bool
	if r.life, ok = w.truth.claims[claimID{r.key, r.fence}]; !ok {
		w.fail("run %d of %v has fence %d, which no claim has", r.id, r.key, r.fence)
		return
	}
	l.by[claimID{r.key, r.fence}] = r
	if r.tx != nil { // only the fence, attempt and effect of a committed transaction count
		l.starts[r.life] = append(l.starts[r.life], r)
		return
	}
	if w.replica != nil && w.told[r.life] {
		w.fail("run %d of %v begins after a caller was told its outcome", r.id, r.key)
	}
	before := l.starts[r.life]
	l.starts[r.life] = append(before, r)
	for _, b := range before {
		if b.fence >= r.fence && w.jumps == 0 {
			w.fail("run %d of %v has fence %d after %d", r.id, r.key, r.fence, b.fence)
		}
	}
	if _, ok := w.truth.first[r.life]; ok && w.jumps == 0 {
		w.fail("run %d of %v begins after its outcome was recorded", r.id, r.key)
	}
	// A clock that was set forward ends a lease before its owner can know. Park
	// keeps its promise then because a reconciler's "no" is final.
	refused := w.jumps > 0 && r.fence <= l.void[r.key]
	for _, e := range l.effects[r.life] {
		if !refused && (e.policy == semel.Park || r.policy == semel.Park) {
			w.fail("run %d of %v under %v begins after an effect under %v, that of run %d", r.id, r.key, r.policy, e.policy, e.id)
		}
	}
	if most := w.plan.maxAttempts; most > 0 {
		n := 0
		for _, b := range l.starts[r.life] {
			if !b.spared {
				n++
			}
		}
		if (n > most || r.attempt > most) && !l.reset[r.key] {
			w.fail("run %d of %v is attempt %d, start %d; at most %d are allowed", r.id, r.key, r.attempt, n, most)
		}
	}
	l.alone(r)
}

// alone checks that no other run holds its lease, as far as it can know.
func (l *ledger) alone(r *run) {
	for _, o := range l.runs[:len(l.runs)-1] {
		if o.key == r.key && o.life == r.life && !o.done.Load() && !o.p.dead && l.w.jumps == 0 && o.again == r.again && !o.free && o.ctx.Err() == nil {
			l.w.fail("run %d of %v begins while run %d still holds its lease", r.id, r.key, o.id)
		}
	}
}

// effect makes r's effect, unless a reconciler was there before.
func (l *ledger) effect(r *run) bool {
	w := l.w
	if r.fence <= l.void[r.key] && !r.free && r.tx == nil {
		w.reach(effectVoided)
		w.note("effect voided", r.c.id, int64(r.id))
		return false
	}
	r.effects++
	w.tally.effects++
	w.tally.paid[w.plan.policy]++
	w.note("EFFECT "+r.key.Operation+" "+r.key.Value, r.c.id, int64(r.id))
	if r.free {
		return true
	}
	all := append(l.effects[r.life], r)
	l.effects[r.life] = all
	if rec, ok := w.truth.now[r.key]; ok && rec.Fence > r.fence {
		w.reach(zombieEffect)
	}
	if len(all) == 1 {
		return true
	}
	w.tally.doubles[w.plan.policy]++
	switch starts := len(l.starts[r.life]); {
	case w.plan.policy == allPark:
		w.fail("effect %d of %v under Park: runs %s", len(all), r.key, ids(all))
	case w.plan.policy == atomically:
		w.fail("effect %d of %v in transactions: runs %s", len(all), r.key, ids(all))
	case len(all) > starts:
		w.fail("%d effects of %v in %d starts", len(all), r.key, starts)
	}
	w.reach(doubledEffect)
	return true
}

// stands compares a recorded outcome with the effects: a success has an effect, and
// a failure in a transaction has none.
func (l *ledger) stands(f *recorded, k store.Key) {
	r := l.by[claimID{k, f.fence}]
	switch {
	case r == nil: // by a reconciler, or by somebody who found no attempt left
	case f.state == store.Completed && r.effects == 0:
		l.w.fail("%v has the outcome of run %d, which had no effect", k, r.id)
	case f.state == store.Failed && r.tx != nil && r.effects > 0:
		l.w.fail("%v has the failure of run %d, whose effect was not undone", k, r.id)
	}
}

func ids(rs []*run) string {
	var s []string
	for _, r := range rs {
		s = append(s, fmt.Sprint(r.id))
	}
	return strings.Join(s, ", ")
}

// happened answers a reconciler. After a "no" the effect never happens, nor that of
// a step which is not recorded. doubt: such a step has had its effect.
func (l *ledger) happened(k store.Key, fence uint64) (r *run, doubt bool) {
	of, ok := l.w.truth.claims[claimID{k, fence}]
	if all := l.effects[of]; ok && len(all) > 0 {
		return all[0], false
	}
	if !l.gullible {
		l.void[k] = max(l.void[k], fence)
		for i := range mostSteps {
			step := k
			step.Operation += fmt.Sprint("#step", i)
			l.void[step] = max(l.void[step], fence)
		}
	}
	return nil, !l.gullible && l.stepsInDoubt(of)
}
