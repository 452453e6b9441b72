package sim

import (
	"context"
	"errors"
	"testing/synctest"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/sweep"
)

// process is one process of the application: a Guard, and the calls that run
// in it. It may freeze, and it may die; then another begins in its place.
type process struct {
	w      *world
	id     int
	guard  *semel.Guard
	fresh  *semel.Guard // for reads; nil: none
	ctx    context.Context
	cancel context.CancelFunc
	frozen int     // until this tick it does nothing
	dead   bool    // written by the scheduler under the world's mu
	asked  []*item // the messages that it waits for, and some that it has given up
	last   claimID // the last claim that it won
}

func (w *world) spawn() *process {
	w.begun++
	p := &process{w: w, id: w.begun}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	policy := semel.Policy(min(w.plan.policy, allPark))
	if w.plan.policy >= mixed {
		policy = semel.Policy(w.rng.IntN(2))
	}
	if w.lenient {
		policy = semel.Retry
	}
	o := w.plan.options(w, policy)
	if w.plan.rerun && policy == semel.Retry && !w.lenient && w.rng.IntN(2) == 0 {
		o := *o
		o.Rerun = true
		p.fresh = w.guard(p, &o)
	}
	if w.plan.unprotected && w.rng.IntN(2) == 0 {
		o.UnprotectedOnOutage = true
	}
	p.guard = w.guard(p, o)
	return p
}

func (w *world) guard(p *process, o *semel.Options) *semel.Guard {
	if o.Observe == nil { // otherwise each call that is parked would be logged
		o.Observe = func(context.Context, semel.Event) {}
	}
	g, err := semel.New(link{p}, o)
	if err != nil {
		panic(err)
	}
	return g
}

func (w *world) begin() {
	for range w.plan.procs {
		w.procs = append(w.procs, w.spawn())
	}
	for range w.plan.calls {
		c := &call{w: w, tries: w.rng.IntN(4), key: w.anyKey(), payload: w.rng.IntN(w.plan.payloads)}
		if w.rng.IntN(4) > 0 {
			c.payload = 0
		}
		c.reserve = w.odds(w.plan.reserve)
		c.read = w.plan.rerun && w.rng.IntN(3) == 0
		w.after(w.rng.IntN(w.plan.horizon), func() { w.call(c) })
	}
}

func (w *world) anyKey() store.Key {
	return store.Key{Operation: "pay", Tenant: "ann", Value: string(rune('a' + w.rng.IntN(w.plan.keys)))}
}

// faults are those that strike between two ticks.
func (w *world) faults() {
	m := &w.plan
	for i, p := range w.procs {
		if w.odds(m.crash) {
			if r, ok := w.truth.now[p.last.key]; ok && r.State == store.Processing && r.Fence == p.last.fence {
				w.reach(crashedInHand)
			}
			w.note("crash of process", 0, int64(p.id))
			w.bury(p)
			w.procs[i] = w.spawn()
			continue
		}
		if p.frozen <= w.tick && w.odds(m.freeze) {
			p.frozen = w.tick + 1 + w.rng.IntN(24)
			w.note("freeze of process", p.id, int64(p.frozen))
			if r, ok := w.truth.now[p.last.key]; ok && r.State == store.Processing && r.Fence == p.last.fence && time.Duration(p.frozen-w.tick)*tick > m.lease {
				w.reach(frozenPastLease)
			}
		}
	}
	if w.odds(m.jump) {
		w.jumps++
		ticks := w.rng.IntN(40) - 20
		// Never by whole ticks alone: no two moments of the store's clock may
		// be one. A few microseconds are shorter than any pause.
		w.skew += time.Duration(ticks)*tick + time.Duration(w.jumps)*7*time.Microsecond
		w.note("clock jumps", 0, int64(ticks))
		if ticks > 0 {
			w.reach(jumpedForward)
		} else if ticks < 0 {
			w.reach(jumpedBack)
		}
	}
	if w.down <= w.tick && w.odds(m.down) {
		w.down = w.tick + 1 + w.rng.IntN(16)
		w.note("outage", 0, int64(w.down))
	}
	if w.replica != nil {
		w.replica.strike(w)
	}
	if w.odds(m.sweep) {
		w.sweep()
	}
	if w.odds(m.operator) {
		w.operate(w.anyKey())
	}
	if p := w.procs[w.rng.IntN(len(w.procs))]; m.asks && w.odds(m.reconcile) && p.guard.OnDoubt() == semel.Park {
		w.job(p, func(ctx context.Context) { _, _ = p.guard.Reconcile(ctx, "", 1+w.plan.keys) })
	}
}

// bury ends a process: nothing of it moves any more, or reaches anybody.
func (w *world) bury(p *process) {
	w.mu.Lock()
	p.dead = true
	w.mu.Unlock()
	for _, it := range p.asked {
		w.answer(it, reply{err: errDead})
	}
	p.asked = nil
	p.cancel()
	for _, c := range w.calls {
		if c.p == p && !c.over {
			c.over = true
			w.open--
			w.again(c, errDead)
		}
	}
	kept := w.queue[:0]
	for _, e := range w.queue {
		if e.proc != p {
			kept = append(kept, e)
		}
	}
	w.queue = kept
	if w.db != nil && w.db.open != nil && w.db.open.p == p {
		w.db.end(w.db.open)
	}
	synctest.Wait()
}

// job runs something of a process that is no caller's request.
func (w *world) job(p *process, fn func(ctx context.Context)) {
	c := w.number(p)
	c.over, c.job = true, true
	w.push(&event{at: w.tick, proc: p, wakes: true, run: func() { go fn(context.WithValue(p.ctx, callKey{}, c)) }})
}

func (w *world) sweep() {
	p := w.procs[w.rng.IntN(len(w.procs))]
	batch := 1 + w.rng.IntN(500)
	if batch < 250 {
		batch = 500
	}
	w.job(p, func(ctx context.Context) {
		o := &sweep.Options{Batch: batch, Retention: w.plan.retention, Observe: w.observe}
		_, _ = sweep.Once(ctx, link{p}, o)
	})
}

// operate is an operator who looks at a parked call, asks the bank, and
// resolves it: perhaps too late.
func (w *world) operate(k store.Key) {
	p := w.procs[w.rng.IntN(len(w.procs))]
	fails, slow := w.rng.IntN(4) == 0, w.rng.IntN(4)
	w.job(p, func(ctx context.Context) {
		r, err := p.guard.Get(ctx, semel.Call{Operation: k.Operation, Tenant: k.Tenant, Key: k.Value})
		if err != nil || r.State != store.Unknown {
			return
		}
		v, err := w.asks(ctx, p, k, r.Fence, fails)
		if err != nil {
			return
		}
		if _, err := p.ask(ctx, &item{kind: naps, key: k, ticks: slow}); err != nil {
			return
		}
		err = p.guard.Resolve(ctx, r, v)
		w.mu.Lock()
		defer w.mu.Unlock()
		if err == nil {
			w.tally.place[resolved]++
		}
		if errors.Is(err, store.ErrChanged) {
			w.tally.place[resolveRefused]++
		}
	})
}
