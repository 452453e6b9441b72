package sim

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/test/internal/figure"
)

// control is a world with one broken part. Most seeds must show it by the answers
// of callers and the effects of handlers alone.
type control struct {
	what string
	settings
}

// on is a store of rows with a flaw.
func on(f flaw) func(now func() time.Time) store.Store {
	return func(now func() time.Time) store.Store {
		s := newRows(now)
		s.flaw = f
		return s
	}
}

// stored is a plan without transactions.
func stored(p *plan) {
	if p.policy == atomically {
		p.policy = allRetry
	}
}

// doubtful is a plan in which lapsed and parked calls meet many sweeps.
func doubtful(p *plan) {
	p.policy, p.rerun, p.unprotected, p.maxAttempts, p.keys = allPark, false, false, 0, 1
	p.sweep, p.crash, p.handler.plain, p.handler.long = 0.5, 0.05, 0.3, 8
}

// forgetful is a plan in which keys are swept and begin again, and the clock is
// set.
func forgetful(p *plan) {
	stored(p)
	p.sweep, p.jump, p.freeze, p.keys, p.retention, p.handler.deaf = 0.5, 0.1, 0.05, 1, 12*tick, 0.5
}

// slow is one where renewals are late.
func slow(p *plan) {
	stored(p)
	p.message.slow, p.message.renewal, p.handler.long, p.handler.deaf, p.keys, p.lease = 0.8, 0.5, 30, 1, 1, 24*(tick/4)+23
}

// leasedSteps is a plan with many steps, outside of transactions, and short lives.
func leasedSteps(p *plan) {
	stored(p)
	p.retention = 12 * tick
	stepping(p)
}

// tuneOf is the plan in which a flaw shows soon.
func tuneOf(f flaw) func(*plan) {
	switch f {
	case sweepLapsed, sweepUnknown:
		return doubtful
	case noFloor, settleUpserts:
		return forgetful
	case stepsOfAnyone, stepsOutlive, takeoverDropsSteps, stepLost:
		return leasedSteps
	case swapForgetsUntil, settleAnyone:
		return slow
	}
	return stored
}

func controls() (all []control) {
	// Several checks prevent the same failure. Without one of them, only the truth
	// of the store shows it.
	book := map[flaw]bool{swapForgetsUntil: true, renewAny: true, settleUpserts: true}
	for f := sound + 1; f < flaws; f++ {
		all = append(all, control{f.String(), settings{store: on(f), lax: !book[f], tune: tuneOf(f)}})
	}
	for what, f := range map[string]replicaFlaw{
		"a primary acknowledges before its standby has the change": acknowledgesEarly,
		"a plain read confirms what the standby does not have":     plainReadConfirms,
		"an undo that comes late removes a claim granted since":    undoesLate,
	} {
		s := failOverSettings(f)
		s.lax = true
		all = append(all, control{what, s})
	}
	park := func(p *plan) { p.policy, p.rerun, p.unprotected = allPark, false, false }
	return append(all,
		control{"Guards retry where Park is demanded", settings{lax: true, tune: park, wrong: func(w *world) { w.lenient = true }}},
		control{"a reconciler says no when it is not sure", settings{lax: true, tune: unsure, wrong: func(w *world) { w.book.gullible = true }}},
		control{"an effect is not undone with its transaction", settings{lax: true, tune: (*plan).atomic, wrong: func(w *world) { w.db.forgets = true }}},
		control{"two transactions at once", settings{lax: true, tune: (*plan).atomic, wrong: func(w *world) { w.db.shared = true }}},
	)
}

// unsure is one where parked calls are asked after while their effect is under
// way.
func unsure(p *plan) {
	doubtful(p)
	p.asks, p.freeze, p.message.slow, p.reconcile, p.operator = true, 0.1, 0.5, 0.3, 0.2
}

// A harness that cannot fail proves nothing.
func TestControl_BrokenParts_Seen(t *testing.T) {
	const most = 400 // seeds for each
	caught := int64(0)
	for _, c := range controls() {
		seed := uint64(0)
		var first result
		for seed = 1; seed <= most; seed++ {
			if first = play(t, seed, &c.settings); len(first.bad) > 0 && !strings.HasPrefix(first.bad[0], "panic") {
				break
			}
		}
		if seed > most {
			t.Errorf("%s: not seen in %d seeds", c.what, most)
			continue
		}
		caught++
		t.Logf("%s: seen by seed %d: %s", c.what, seed, first.bad[0])
	}
	figure.Report(t, figure.Figure{
		Claim: "a broken store, Guard, reconciler or transaction is seen by what callers and handlers see", Where: "simulator",
		Trials: int64(len(controls())), Failures: caught, Control: true,
	})
}

// The store that the controls break is sound when nothing in it is broken.
func TestControl_NothingBroken_NothingSeen(t *testing.T) {
	s := &settings{store: on(sound), tune: stored}
	each(t, 1, s, func(n uint64) bool { return n < 500 }, func(r *result) {
		if len(r.bad) > 0 {
			t.Errorf("seed %d: %s", r.seed, fmt.Sprint(r.bad))
		}
	})
}
