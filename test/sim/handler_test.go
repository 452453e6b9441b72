package sim

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/driver"
	"github.com/semel-go/semel/store"
)

const thrown = "sim: the handler panics"

var errBoom = errors.New("boom")

// handler is what a call runs: in a transaction, if t is not nil.
func (c *call) handler(g *semel.Guard, t *tx) semel.Handler {
	return func(ctx context.Context, x *semel.Execution) (store.Outcome, error) {
		r := c.newRun(ctx, x)
		r.tx = t
		defer r.done.Store(true)
		if _, err := r.p.ask(context.Background(), r.item(begins, func() reply { c.w.book.start(r); return reply{} })); err != nil {
			return store.Outcome{}, err
		}
		if !c.job && (r.again || r.key == c.key) {
			c.run = r
		}
		if r.again {
			err := r.nap(ctx, r.rng.IntN(4), false)
			return store.Outcome{Body: []byte("read")}, err
		}
		return r.work(ctx, x, g)
	}
}

func (c *call) newRun(ctx context.Context, x *semel.Execution) *run {
	r := &run{c: c, p: c.p, key: c.key, fence: x.Fence(), attempt: x.Attempt(), policy: x.Policy(), ctx: ctx}
	r.key.Operation = x.Operation()
	r.again = strings.HasSuffix(r.key.Operation, "##rerun")
	r.free = r.again || r.fence == 0
	if x.Key() != c.key.Value {
		panic(fmt.Sprintf("the handler of %v got the key %q", c.key, x.Key()))
	}
	return r
}

func (r *run) item(k kind, apply func() reply) *item {
	return &item{kind: k, c: r.c, key: r.key, fence: r.fence, apply: apply, parent: r.parent}
}

// work is a handler's doing: a pause, an effect, a pause, an end.
func (r *run) work(ctx context.Context, x *semel.Execution, g *semel.Guard) (store.Outcome, error) {
	h, rng := &r.c.w.plan.handler, r.rng
	deaf := chance(rng, h.deaf)
	pause := func() error {
		if h.long == 0 || rng.IntN(2) == 0 {
			return nil
		}
		return r.nap(ctx, rng.IntN(1+h.long), deaf)
	}
	if err := pause(); err != nil {
		return store.Outcome{}, err
	}
	if chance(rng, h.noEffect) {
		r.spared = true
		return store.Outcome{}, semel.NoEffect(errBoom)
	}
	for i := range h.steps {
		if !chance(rng, h.step) {
			continue
		}
		if err := r.step(ctx, x, g, fmt.Sprint("step", i)); err != nil {
			return store.Outcome{}, err
		}
	}
	if err := r.act(ctx); err != nil {
		return store.Outcome{}, err
	}
	if err := pause(); err != nil {
		return store.Outcome{}, err
	}
	return r.conclude(ctx, x)
}

func (r *run) conclude(ctx context.Context, x *semel.Execution) (store.Outcome, error) {
	h, rng := &r.c.w.plan.handler, r.rng
	o := store.Outcome{Body: []byte(r.name())}
	if chance(rng, h.big) {
		o.Body = append(o.Body, strings.Repeat(".", 2<<10)...)
	}
	switch {
	case chance(rng, h.plain):
		return store.Outcome{}, errBoom
	case chance(rng, h.final):
		return store.Outcome{}, &semel.Failure{Code: r.name()}
	case chance(rng, h.panics):
		panic(thrown)
	case chance(rng, h.goexit):
		runtime.Goexit()
	case chance(rng, h.complete):
		if err := driver.Complete(ctx, x, o); err != nil && !errors.Is(err, errors.ErrUnsupported) {
			return store.Outcome{}, err
		}
		r.c.w.saw(completedEarly)
		if err := r.nap(ctx, rng.IntN(4), true); err != nil {
			return store.Outcome{}, err
		}
	}
	return o, nil
}

func (r *run) name() string { return fmt.Sprintf("run-%d", r.id) }

// nap pauses for some ticks. A handler that is not deaf stops when its context
// ends, but not while its process is frozen.
func (r *run) nap(ctx context.Context, ticks int, deaf bool) error {
	it := r.item(naps, nil)
	it.ticks = ticks
	if deaf {
		ctx = context.Background()
	}
	_, err := r.p.ask(ctx, it)
	if err == nil || ctx.Err() == nil {
		return err
	}
	if _, dead := r.p.ask(context.Background(), r.item(naps, nil)); dead != nil {
		return dead
	}
	return fmt.Errorf("stopped: %w", err)
}

// act sends the effect. Once it is sent it may arrive, whatever becomes of the
// sender.
func (r *run) act(ctx context.Context) error {
	if r.tx != nil {
		return r.tx.pay(ctx, r)
	}
	_, err := r.p.ask(ctx, r.item(acts, func() reply {
		if !r.c.w.book.effect(r) {
			return reply{err: errors.New("refused: a reconciler was told that it did not happen")}
		}
		return reply{}
	}))
	return err
}

// act brings what was sent to the ledger there, and the answer back.
func (w *world) act(it *item) {
	there, back := 0, 0
	if w.odds(w.plan.message.slow) {
		there, back = w.rng.IntN(40), w.rng.IntN(4)
	}
	lost := w.odds(w.plan.message.lost)
	w.after(there, func() {
		r := it.apply()
		if lost {
			r.err = errLost
		}
		w.push(&event{at: w.tick + back, proc: it.p, wakes: true, run: func() { w.answer(it, r) }})
	})
}

func chance(rng *rand.Rand, p float64) bool { return p > 0 && rng.Float64() < p }
