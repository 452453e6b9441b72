package sim

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/test/internal/figure"
	"github.com/semel-go/semel/test/linear"
)

// history records the messages to the store and their answers, for package linear.
// Each arrival of a message is an operation. If no answer comes back, the
// operation's result is unknown.
type history struct {
	linear.History
	calls map[*item]int64 // when a message was sent
}

func (h *history) sent(it *item) {
	if h != nil {
		h.calls[it] = h.Tick()
	}
}

// arrived adds the operations that a message is, one for each key, and numbers
// them.
func (h *history) arrived(it *item) (first, n int) {
	if h == nil {
		return 0, 0
	}
	at := h.Tick()
	for _, in := range it.inputs {
		first = h.Call(it.p.id, h.calls[it], &in)
		h.Arrive(first, at)
		n++
	}
	return first - n + 1, n
}

// told says what the operations of an arrival have answered.
func (h *history) told(it *item, r *reply) {
	if h == nil || r.ops == 0 || it.kind == lists {
		return
	}
	at := h.Tick()
	for i := range r.ops {
		a := &linear.Answer{Found: r.found, Err: r.err, Now: r.swept.Now}
		if it.kind == renews && r.err == nil {
			a.Err = r.errs[i]
		}
		for _, l := range r.swept.Lapsed {
			if it.kind == sweeps && l.Key == it.inputs[i].Key {
				a.Lapsed, a.Found.Record = true, l
			}
		}
		if a.Err == nil || errors.Is(a.Err, store.ErrNotFound) || errors.Is(a.Err, store.ErrLeaseLost) {
			h.Return(r.op+i, at, a)
		}
	}
}

// keysEver are all that a sweep may touch.
func (t *truth) keysEver() (keys []store.Key) {
	for i := range t.w.plan.keys {
		for _, op := range []string{"pay", "pay#fee", "pay##rerun"} {
			keys = append(keys, store.Key{Operation: op, Tenant: "ann", Value: string(rune('a' + i))})
		}
	}
	return keys
}

// judge checks the history of each seed of a run.
func judge(t *testing.T, n uint64, s settings) (ops, illegal, unknown int) {
	s.wrong = func(w *world) { w.truth.hist = &history{calls: map[*item]int64{}} }
	s.see = func(w *world, r *result) { r.hist = w.truth.hist }
	each(t, 1, &s, func(i uint64) bool { return i < n && illegal == 0 }, func(r *result) {
		if r.hist == nil {
			return
		}
		ops += r.hist.Len()
		switch r.judged {
		case linear.Illegal:
			illegal++
			t.Logf("seed %d: not linearizable", r.seed)
		case linear.Unknown:
			unknown++
		}
	})
	return ops, illegal, unknown
}

func TestSimulatedHistories_Linearizable(t *testing.T) {
	n := uint64(300)
	if figure.Long() {
		n = 20_000
	}
	ops, illegal, unknown := judge(t, n, settings{tune: stored})
	figure.Report(t, figure.Figure{
		Claim: "simulated histories of the memory store under faults are linearizable", Where: "simulator", Trials: int64(n), Failures: int64(illegal + unknown),
		Detail: fmt.Sprintf("%d operations", ops), Seeds: fmt.Sprintf("1-%d", n),
	})
	if illegal+unknown > 0 {
		t.Errorf("%d histories are not linearizable, %d could not be judged", illegal, unknown)
	}
}

func TestSimulatedHistories_BrokenStore_NotLinearizable(t *testing.T) {
	var broken []flaw
	for f := sound + 1; f < flaws; f++ {
		switch f {
		case clockAhead, renewNothing, noFloor: // the record is right all the same, or wrong for another key only
		case stepsOfAnyone, stepsOutlive, takeoverDropsSteps, stepLost: // steps are not in the histories
		default:
			broken = append(broken, f)
		}
	}
	caught := int64(0)
	for _, f := range broken {
		_, illegal, slow := judge(t, 300, settings{store: on(f), lax: true, tune: tuneOf(f)})
		t.Logf("%s: %d, %d took too long", f, illegal, slow)
		if illegal > 0 {
			caught++
		} else {
			t.Errorf("%s: not seen in 300 seeds", f)
		}
	}
	figure.Report(t, figure.Figure{
		Claim: "a broken store has a simulated history that is not linearizable", Where: "simulator", Trials: int64(len(broken)), Failures: caught, Control: true,
	})
}

// patience is how long one history is judged. To find none of all orders right
// may take very long, so a control looks at another history instead.
func patience(s *settings) time.Duration {
	if s.store != nil {
		return 250 * time.Millisecond
	}
	return time.Minute
}
