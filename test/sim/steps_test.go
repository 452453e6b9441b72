package sim

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/driver"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/test/internal/figure"
)

const mostSteps = 8 // of a call

// stepOf splits the key of a step's run.
func stepOf(k store.Key) (parent store.Key, name string, ok bool) {
	parent = k
	parent.Operation, name, ok = strings.Cut(k.Operation, "#")
	return parent, name, ok
}

// recordedStep is a step that is recorded in a life: the first of its name.
type recordedStep struct {
	fence uint64
	body  string
}

// step runs a step of a handler, with an effect of its own, or gets its result.
func (r *run) step(ctx context.Context, x *semel.Execution, g *semel.Guard, name string) error {
	fn := func(ctx context.Context, x *semel.Execution) (store.Outcome, error) {
		s := r.c.newRun(ctx, x)
		s.parent, s.tx = r, r.tx
		defer s.done.Store(true)
		if _, err := s.p.ask(context.Background(), s.item(begins, func() reply { r.c.w.book.startStep(s, name); return reply{} })); err != nil {
			return store.Outcome{}, err
		}
		return s.doStep(ctx)
	}
	var res semel.Result
	var err error
	if r.tx != nil {
		res, err = driver.RunIn(ctx, g, r.tx, x.Step(name), fn)
	} else {
		res, err = g.Run(ctx, x.Step(name), fn)
	}
	if err != nil {
		return fmt.Errorf("%s: %s", name, err.Error()) // nothing of it is the call's own verdict
	}
	if res.Replayed && !r.free {
		it := r.item(begins, func() reply { r.c.w.book.stepReplayed(r, name, string(res.Body)); return reply{} })
		_, err = r.p.ask(context.Background(), it)
	}
	return err
}

// doStep is the doing of a step: an effect, and an end.
func (r *run) doStep(ctx context.Context) (store.Outcome, error) {
	h := &r.c.w.plan.handler
	if chance(r.rng, h.noEffect/5) {
		return store.Outcome{}, semel.NoEffect(errBoom)
	}
	if err := r.act(ctx); err != nil {
		return store.Outcome{}, err
	}
	switch {
	case chance(r.rng, h.plain/5):
		return store.Outcome{}, errBoom
	case chance(r.rng, h.panics/5):
		panic(thrown)
	case h.long > 0 && r.rng.IntN(3) == 0:
		if err := r.nap(ctx, r.rng.IntN(4), chance(r.rng, h.deaf)); err != nil {
			return store.Outcome{}, err
		}
	}
	return store.Outcome{Body: []byte(r.name())}, nil
}

// stepping is a plan with many steps, of calls that fail, lapse, are resolved and
// begin again.
func stepping(p *plan) {
	p.rerun, p.unprotected, p.maxAttempts, p.keys = false, false, 0, 1
	p.handler = habits{step: 0.8, steps: mostSteps, plain: 0.7, panics: 0.1, noEffect: 0.1, final: 0.02, deaf: p.handler.deaf, long: min(p.handler.long, 8)}
	p.calls, p.horizon, p.wait = 40, 120, 0
	if p.retention < forever || p.procs < 4 {
		p.retention = 12 * tick
	}
	if p.policy != atomically {
		p.crash, p.freeze, p.sweep = 0.03, 0.03, 0.2
	}
	if p.policy == allPark || p.policy == mixed {
		p.reconcile, p.operator, p.asks = 0.2, 0.2, true
	}
}

// Whatever becomes of a call, a step that its life has recorded does not run again,
// and under Park or in a transaction none has its effect twice.
func TestCampaign_Steps_NoneTwice(t *testing.T) {
	seeds, steps := uint64(300), int64(0)
	switch {
	case figure.Long():
		steps = 1_000_000
	case testing.Short():
		seeds = 100
	}
	var sum tally
	failed := 0
	each(t, 1, &settings{tune: stepping}, func(n uint64) bool { return (n < seeds || sum.steps < steps) && failed < 5 }, func(r *result) {
		sum.add(&r.tally)
		if len(r.bad) > 0 {
			failed++
			t.Errorf("seed %d:\n\t%s", r.seed, strings.Join(r.bad, "\n\t"))
		}
	})
	t.Logf("%d seeds, %d operations, %d runs, %d steps: %d recorded, %d replayed, %d in doubt that ran again; %d reconciled or resolved as not happened",
		sum.seeds, sum.ops, sum.runs, sum.steps, sum.place[stepRecorded], sum.place[stepReplayed], sum.place[stepInDoubt], sum.place[reconciledNo])
	figure.Report(t, figure.Figure{
		Claim: "simulated steps over crash, takeover, park, reconcile, retention and new lives: none runs again in a life that has recorded it, none twice under Park or in transactions",
		Where: "simulator", Trials: sum.steps, Failures: sum.twice, Seeds: fmt.Sprintf("1-%d", sum.seeds),
		Detail: fmt.Sprintf("%d recorded, %d replayed, %d in doubt that ran again under Retry", sum.place[stepRecorded], sum.place[stepReplayed], sum.place[stepInDoubt]),
	})
	for _, p := range []place{stepRecorded, stepReplayed, stepInDoubt, stepRefused, expiredRestarted, swept, reconciledNo, resolved, txCommitted, zombieRefused} {
		if sum.place[p] == 0 {
			t.Errorf("never reached: %s", placeNames[p])
		}
	}
}

// startStep is told of each step's function that begins.
func (l *ledger) startStep(r *run, name string) {
	w := l.w
	r.id, r.at = len(l.runs)+1, w.tick
	r.rng = rand.New(rand.NewPCG(w.seed, uint64(r.id)))
	l.runs = append(l.runs, r)
	w.tally.steps++
	w.note("step begins "+r.key.Operation+" "+r.key.Value, r.c.id, int64(r.id))
	if r.free {
		return
	}
	of, ok := w.truth.claims[claimID{r.parent.key, r.fence}]
	if !ok {
		w.fail("step %d of %v has fence %d, which no claim has", r.id, r.key, r.fence)
		return
	}
	r.life = life{r.key, of.created}
	if r.tx != nil {
		l.starts[r.life] = append(l.starts[r.life], r)
		return
	}
	// A process that is frozen before the first statement of its step may begin it
	// when its lease is over.
	if done, ok := w.truth.steps[of][name]; ok && r.fence >= done.fence {
		w.tally.twice++
		w.fail("step %d of %v begins with fence %d, after it was recorded with fence %d", r.id, r.key, r.fence, done.fence)
	}
	l.starts[r.life] = append(l.starts[r.life], r)
	if r.fence <= l.void[r.key] {
		return // its effect is refused
	}
	for _, e := range l.effects[r.life] {
		if e.policy == semel.Park || r.policy == semel.Park {
			w.tally.twice++
			w.fail("step %d of %v under %v begins after an effect under %v, that of run %d", r.id, r.key, r.policy, e.policy, e.id)
		}
		w.reach(stepInDoubt)
	}
}

// stepReplayed checks that a replayed step is the one that this life has recorded.
func (l *ledger) stepReplayed(r *run, name, body string) {
	w := l.w
	w.tally.steps++
	w.reach(stepReplayed)
	done, ok := w.truth.steps[w.truth.claims[claimID{r.key, r.fence}]][name]
	if !ok || done.body != body {
		w.tally.twice++
		w.fail("%s of %v is replayed as %q; recorded in this life is %q", name, r.key, body, done.body)
	}
}

// stepsInDoubt reports whether a step of a life has had its effect and is not
// recorded. A "no" of a reconciler must not let it run again.
func (l *ledger) stepsInDoubt(of life) bool {
	for step, all := range l.effects {
		parent, name, isStep := stepOf(step.key)
		if !isStep || parent != of.key || step.created != of.created || len(all) == 0 {
			continue
		}
		if _, done := l.w.truth.steps[of][name]; !done {
			return true
		}
	}
	return false
}

// recordStep compares what a store does with a step with the rules.
func (t *truth) recordStep(l store.Lease, s store.Step) reply {
	err := t.st.(store.Journal).RecordStep(background, l, s)
	r, there := t.now[l.Key]
	held := there && r.Lease() == l && r.State == store.Processing
	switch {
	case err == nil:
		t.judge(held, "%v: step %q was recorded without its lease", l.Key, s.Name)
		of := t.lifeOf(&r)
		if t.steps[of] == nil {
			t.steps[of] = map[string]recordedStep{}
		}
		if _, ok := t.steps[of][s.Name]; !ok && held {
			t.steps[of][s.Name] = recordedStep{l.Fence, string(s.Outcome.Body)}
			t.w.reach(stepRecorded)
		}
	case errors.Is(err, store.ErrLeaseLost):
		t.judge(!held, "%v: step %q was refused although its lease is held", l.Key, s.Name)
		t.w.reach(stepRefused)
	}
	return reply{err: err}
}

// readSteps checks that the steps of a record are those that its life has recorded.
func (t *truth) readSteps(l store.Lease) reply {
	steps, err := t.st.(store.Journal).Steps(background, l)
	if r, there := t.now[l.Key]; err == nil && there {
		done := t.steps[t.lifeOf(&r)]
		t.judge(len(done) == len(steps), "%v has %d steps, recorded are %d", l.Key, len(steps), len(done))
		for i := range steps {
			t.judge(done[steps[i].Name].body == string(steps[i].Outcome.Body), "%v has another %s than was recorded", l.Key, steps[i].Name)
		}
	}
	return reply{steps: steps, err: err}
}

// RecordStep implements store.Journal.
func (s *rows) RecordStep(_ context.Context, l store.Lease, step store.Step) error {
	r, ok := s.at[l.Key]
	if !ok || (r.Lease() != l || r.State != store.Processing) && s.flaw != stepsOfAnyone {
		return store.ErrLeaseLost
	}
	steps := s.steps[l.Key]
	if i := slices.IndexFunc(steps, func(o store.Step) bool { return o.Name == step.Name }); i >= 0 {
		return store.SameStep(&steps[i], &step)
	}
	if s.n++; s.flaw == stepLost && s.n%3 == 0 {
		return nil
	}
	s.steps[l.Key] = append(slices.Clone(steps), step)
	return nil
}

// Steps implements store.Journal.
func (s *rows) Steps(_ context.Context, l store.Lease) ([]store.Step, error) {
	r, ok := s.at[l.Key]
	if !ok || r.Lease() != l {
		return nil, store.ErrLeaseLost
	}
	return slices.Clone(s.steps[l.Key]), nil
}
