package saga_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/saga"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/sweep"
)

const (
	simSagas     = 16 // of a history
	simProcesses = 3
)

// simulate runs one history: sagas in processes that die, freeze and reach the store by a
// bad network, while the store's clock jumps. Then the world is calm, and each saga has
// to end as its plan says. An operator looks after the first half of the sagas.
func simulate(t *testing.T, seed uint64, freshKeys bool, totals *simTotals) {
	synctest.Test(t, func(t *testing.T) {
		w := newSimWorld(seed)
		w.freshKeys = freshKeys
		ctx, cancel := context.WithCancel(context.Background())
		var working, calling sync.WaitGroup
		sagas := &simFleet{w: w}
		for i := range sagas.at {
			working.Go(func() { sagas.keep(ctx, t, i) })
		}
		synctest.Wait()
		var ids []string
		for i := range simSagas {
			id := fmt.Sprint("saga", i)
			ids = append(ids, id)
			calling.Go(func() { sagas.call(ctx, id) })
		}
		operated := ids[:len(ids)/2]
		for range 20 {
			time.Sleep(simLease)
			for _, id := range operated {
				if w.chance("an operator looked", 4) {
					w.operate(id)
				}
			}
			if w.chance("a sweep ran", 4) {
				if _, err := sweep.Once(ctx, w.st, nil); err != nil {
					t.Error(err)
				}
			}
			if w.chance("the store's clock jumped", 10) {
				w.offset.Add(int64(w.upTo(4*simLease) - 2*simLease))
			}
		}
		w.calm.Store(true)
		calling.Wait()
		// An operator's claim that came after its timer was due is noticed at the next look at
		// a stuck saga, ten minutes later.
		for start := time.Now(); w.unfinished(ids) && time.Since(start) < 10*time.Minute+3*simDeadline; time.Sleep(simLease) {
			for _, id := range operated {
				w.operate(id)
			}
		}
		time.Sleep(10 * simLease) // the last late requests
		cancel()
		working.Wait()
		w.mu.Lock()
		defer w.mu.Unlock()
		totals.add(w, ids)
	})
}

// unfinished reports whether a saga has not ended and is not stuck, or is stuck and an
// operator looks after it.
func (w *simWorld) unfinished(ids []string) bool {
	return slices.ContainsFunc(ids, func(id string) bool {
		f, err := w.st.Get(context.Background(), saga.Key("sim", semel.Shared, id))
		stuck := f.Record.State == store.Unknown && slices.Index(ids, id) >= len(ids)/2
		return err == nil && !f.Record.State.Terminal() && !stuck
	})
}

// simFleet is the processes, and how callers reach them.
type simFleet struct {
	w  *simWorld
	mu sync.Mutex
	at [simProcesses]*saga.Saga[string, string]
}

// keep starts a process, and after its death the next.
func (f *simFleet) keep(ctx context.Context, t *testing.T, i int) {
	for ctx.Err() == nil {
		var one sync.WaitGroup
		p, s, err := f.w.start(ctx, &one)
		if err != nil {
			t.Error(err)
			return
		}
		f.mu.Lock()
		f.at[i] = s
		f.mu.Unlock()
		one.Wait()
		p.kill()
		time.Sleep(f.w.upTo(simLease))
	}
}

func (f *simFleet) any() *saga.Saga[string, string] {
	i := int(f.w.upTo(simProcesses))
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.at[i]
}

// call starts a saga, and sends its events.
func (f *simFleet) call(ctx context.Context, id string) {
	for f.any().Start(ctx, semel.Shared, id, id) != nil {
		time.Sleep(f.w.upTo(simLease))
	}
	for _, s := range newSimPlan(f.w.seed, id).steps {
		for s.event && ctx.Err() == nil {
			limited, stop := context.WithTimeout(ctx, 5*simLease)
			err := f.any().Send(limited, semel.Shared, id, s.name, "event of "+id)
			stop()
			if err == nil || errors.Is(err, saga.ErrEnded) || errors.Is(err, semel.ErrParked) && f.w.calm.Load() || errors.Is(err, store.ErrNotFound) {
				break
			}
			time.Sleep(f.w.upTo(simLease))
		}
	}
}

// simTotals is what the histories of a campaign were like.
type simTotals struct {
	mu             sync.Mutex
	histories      int
	failed         int // histories with something wrong
	reached, calls int64
	ends           map[store.State]int
	faults         map[string]int
	wrong          []string
}

// add judges a history. The caller holds w.mu.
func (s *simTotals) add(w *simWorld, ids []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := len(s.wrong)
	for i, id := range ids {
		end, wrong := w.judge(id, i < len(ids)/2)
		s.ends[end]++
		for _, text := range wrong {
			s.wrong = append(s.wrong, fmt.Sprintf("seed %d, %s: %s", w.seed, id, text))
		}
	}
	if len(s.wrong) > before {
		s.failed++
	}
	s.histories++
	s.reached += w.reached.Load()
	s.calls += w.calls.Load()
	for what, n := range w.faults {
		s.faults[what] += n
	}
}

// more reports whether the campaign goes on: for some histories and steps at least, and up
// to ten times as many histories until each of the rare faults has happened. It gives up
// after five bad histories.
func (s *simTotals) more(least int, steps int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.failed < 5 && (s.histories < least || s.reached < steps || s.missing() != "" && s.histories < 10*least)
}

// rareFaults are those that a few histories may not have.
var rareFaults = []string{"a compensation gave up", "an operator undid a step by hand", "a process did not list a step", "the store's clock jumped"}

// missing is a rare fault that has not happened, or empty. The caller holds mu.
func (s *simTotals) missing() string {
	for _, what := range rareFaults {
		if s.faults[what] == 0 {
			return what
		}
	}
	return ""
}

// simulateMany runs histories: see more.
func simulateMany(t *testing.T, histories int, steps int64, freshKeys bool) *simTotals {
	totals := &simTotals{ends: map[store.State]int{}, faults: map[string]int{}}
	lanes := runtime.GOMAXPROCS(0)
	t.Run("histories", func(t *testing.T) { // ends when all lanes have
		for lane := range lanes {
			t.Run(fmt.Sprint(lane), func(t *testing.T) {
				t.Parallel()
				for seed := lane; totals.more(histories, steps) && !t.Failed(); seed += lanes {
					simulate(t, uint64(seed), freshKeys, totals)
				}
			})
		}
	})
	return totals
}

// Whatever dies, freezes, gets lost or comes twice: the eight rules hold.
func TestCampaign_SagasUnderFaults_RulesHold(t *testing.T) {
	histories, steps := 100, int64(0)
	switch {
	case os.Getenv("SEMEL_EVIDENCE") == "1":
		steps = 5_000_000
	case testing.Short():
		histories = 20
	}
	totals := simulateMany(t, histories, steps, false)
	for i, text := range totals.wrong {
		if i < 20 {
			t.Error(text)
		}
	}
	totals.report(t, false)
	for _, what := range slices.Sorted(maps.Keys(totals.faults)) {
		t.Logf("%s: %d", what, totals.faults[what])
	}
	for _, end := range []store.State{store.Completed, store.Failed, store.Unknown} {
		if totals.ends[end] == 0 {
			t.Errorf("no saga ended as %v, so that the campaign shows nothing about it", end)
		}
	}
	if what := totals.missing(); what != "" {
		t.Errorf("never: %s", what)
	}
}

// The control: if each attempt sends a key of its own, the judge must notice.
func TestSagasUnderFaults_FreshKeys_AreFoundOut(t *testing.T) {
	t.Parallel()
	totals := simulateMany(t, 10, 0, true)
	totals.report(t, true)
	if len(totals.wrong) == 0 {
		t.Errorf("the judge found nothing wrong in %d calls", totals.calls)
	}
}

// report writes the figures for docs/evidence.md, as package figure does, which this
// module cannot import.
func (s *simTotals) report(t *testing.T, control bool) {
	t.Helper()
	b, err := json.Marshal(map[string]any{
		"claim": "simulated steps of sagas: the eight rules hold", "where": "simulator", "trials": s.reached, "failures": len(s.wrong), "control": control,
		"detail": fmt.Sprintf("%d histories, %d calls of steps and compensations, the other steps were replayed; sagas ended as %v", s.histories, s.calls, s.ends),
		"seeds":  fmt.Sprintf("0-%d, not all of the last", s.histories),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("evidence: %s", b)
}
