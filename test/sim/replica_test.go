package sim

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/test/internal/figure"
)

// replica is a store with a synchronous standby. While the replication is cut, the
// primary applies what it is sent, and acknowledges nothing until the standby has all of
// it. A fail-over takes back what the standby does not have.
type replica struct {
	*rows          // of the primary
	standby *rows  // what a fail-over keeps
	saved   *truth // the truth about standby
	cut     bool
	flaw    replicaFlaw

	cuts, failOvers, lost int64 // lost: fail-overs that took something back
}

type replicaFlaw uint8

const (
	waitsForStandby replicaFlaw = iota
	acknowledgesEarly
	plainReadConfirms
	undoesLate
)

// replicated makes a store of this kind, of which attach tells the world.
func replicated(f replicaFlaw) func(now func() time.Time) store.Store {
	return func(now func() time.Time) store.Store {
		r := &replica{rows: newRows(now), flaw: f}
		r.standby = r.copy()
		return r
	}
}

func attach(w *world) {
	w.replica = w.truth.st.(*replica)
	w.replica.replicate(w)
}

// replicate brings all that the primary has to the standby.
func (r *replica) replicate(w *world) {
	r.standby, r.saved = r.rows.copy(), w.truth.copy()
}

// copy is what the truth says of the records now.
func (t *truth) copy() *truth {
	return &truth{now: maps.Clone(t.now), first: maps.Clone(t.first), freed: maps.Clone(t.freed), steps: deepCopy(t.steps)}
}

func deepCopy(steps map[life]map[string]recordedStep) map[life]map[string]recordedStep {
	c := map[life]map[string]recordedStep{}
	for l, recorded := range steps {
		c[l] = maps.Clone(recorded)
	}
	return c
}

// ahead reports whether the primary has something that the standby does not have.
func (r *replica) ahead() bool { return differ(r.rows, r.standby) }

func differ(a, b *rows) bool {
	if !maps.EqualFunc(a.at, b.at, func(x, y store.Record) bool { return same(&x, &y) }) {
		return true
	}
	for k := range a.at {
		if len(a.steps[k]) != len(b.steps[k]) {
			return true
		}
	}
	return false
}

// applyReplicated applies a message, and decides whether the primary answers it.
func (w *world) applyReplicated(it *item) reply {
	p := w.replica
	before := p.rows.copy()
	r := it.apply()
	if !p.cut {
		p.replicate(w)
		return r
	}
	wrote := differ(p.rows, before)
	switch {
	case !p.ahead(), p.flaw == acknowledgesEarly, p.flaw == plainReadConfirms && !wrote:
		return r
	}
	if owned, ok := p.at[it.key]; ok && p.flaw == undoesLate && it.kind == claims && r.found.Won {
		w.after(1+w.rng.IntN(12), func() {
			if now, ok := p.at[it.key]; ok && now.Owner == owned.Owner && now.State == store.Processing {
				w.note("claim undone "+it.key.Value, it.call(), 0)
				delete(p.at, it.key)
				delete(w.truth.now, it.key)
			}
		})
	}
	w.note("not acknowledged: "+kindNames[it.kind], it.call(), int64(it.sent))
	return reply{err: errLost}
}

// strike cuts the replication, mends it, or fails over.
func (r *replica) strike(w *world) {
	switch {
	case !r.cut && w.odds(0.1):
		r.cut = true
		r.cuts++
		w.note("replication is cut", 0, 0)
	case r.cut && w.odds(0.1):
		r.cut = false
		r.replicate(w)
		w.note("replication goes on", 0, 0)
	case r.cut && w.odds(0.1):
		r.failOver(w)
	}
}

func (r *replica) failOver(w *world) {
	r.failOvers++
	if r.ahead() {
		r.lost++
	}
	w.note("fail-over", 0, r.failOvers)
	*r.rows = *r.standby.copy()
	back := r.saved.copy()
	w.truth.now, w.truth.first, w.truth.freed, w.truth.steps = back.now, back.first, back.freed, back.steps
	r.cut = false
}

// failingOver is a plan with calls, messages and handlers that fail, on one life of each
// key.
func failingOver(p *plan) {
	stored(p)
	p.retention, p.sweep, p.jump, p.operator, p.reconcile, p.asks = forever, 0.1, 0, 0, 0, false
	p.rerun, p.unprotected, p.reserve, p.keys, p.handler.deaf = false, false, 0, 1+p.keys%2, 0
	p.calls, p.horizon = 30, 90
	p.message.lost, p.message.late, p.message.twice, p.message.slow = max(p.message.lost, 0.05), max(p.message.late, 0.1), max(p.message.twice, 0.1), 0.2
}

func failOverSettings(f replicaFlaw) settings {
	return settings{store: replicated(f), tune: failingOver, wrong: attach}
}

// Calls and messages fail, the replication is cut, and the standby takes over without
// what it does not have: no outcome that a caller was told is lost, under Park no effect
// happens twice, and nothing that comes late changes a later claim.
func TestCampaign_StandbyTakesOver_AcknowledgedStays(t *testing.T) {
	seeds := uint64(1000)
	switch {
	case figure.Long():
		seeds = 50_000
	case testing.Short():
		seeds = 150
	}
	var sum tally
	failed := int64(0)
	s := failOverSettings(waitsForStandby)
	s.see = func(w *world, _ *result) {
		w.tally.cuts, w.tally.failOvers, w.tally.losses = w.replica.cuts, w.replica.failOvers, w.replica.lost
	}
	each(t, 1, &s, func(n uint64) bool { return n < seeds && failed < 5 }, func(r *result) {
		sum.add(&r.tally)
		if len(r.bad) > 0 {
			failed++
			t.Errorf("seed %d:\n\t%s", r.seed, strings.Join(r.bad, "\n\t"))
		}
	})
	if sum.losses == 0 || sum.answers == 0 {
		t.Errorf("%d fail-overs lost something, %d answers: nothing is proved", sum.losses, sum.answers)
	}
	figure.Report(t, figure.Figure{
		Claim: "simulated fail-overs to a standby while the replication is cut: no outcome that a caller was told is lost, and under Park no second effect",
		Where: "simulator", Trials: sum.failOvers, Failures: failed, Seeds: fmt.Sprintf("1-%d", seeds),
		Detail: fmt.Sprintf("%d operations, %d cuts; %d fail-overs took writes back that were not acknowledged", sum.ops, sum.cuts, sum.losses),
	})
}
