package saga_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/saga"
	"github.com/semel-go/semel/store"
)

// simTotals is what the histories of a campaign were like.
type simTotals struct {
	steps  int64
	ends   map[store.State]int
	faults map[string]int
	wrong  []string
	failed int // histories with something wrong
}

// simulate runs one history: sagas in processes that die, freeze and reach the store by a
// bad network, while the store's clock jumps. Then the world is calm, and each saga has
// to end as its plan says.
func simulate(t *testing.T, seed uint64, freshKeys bool, totals *simTotals) {
	synctest.Test(t, func(t *testing.T) {
		w := newSimWorld(seed)
		w.freshKeys = freshKeys
		ctx, cancel := context.WithCancel(context.Background())
		var working, calling sync.WaitGroup
		var mu sync.Mutex
		var sagas [3]*saga.Saga[string, string]
		for i := range sagas {
			working.Go(func() {
				for ctx.Err() == nil { // a process, and after its death the next
					var one sync.WaitGroup
					p, s, err := w.start(ctx, &one)
					if err != nil {
						t.Error(err)
						return
					}
					mu.Lock()
					sagas[i] = s
					mu.Unlock()
					one.Wait()
					p.kill()
					time.Sleep(w.upTo(simLease))
				}
			})
		}
		synctest.Wait()
		some := func() *saga.Saga[string, string] {
			mu.Lock()
			defer mu.Unlock()
			return sagas[w.upTo(3)]
		}
		var ids []string
		for i := range 6 {
			id := fmt.Sprint("saga", i)
			ids = append(ids, id)
			calling.Go(func() {
				for some().Start(ctx, semel.Shared, id, id) != nil {
					time.Sleep(w.upTo(simLease))
				}
				for _, s := range newSimPlan(seed, id).steps {
					if !s.event {
						continue
					}
					for {
						limited, stop := context.WithTimeout(ctx, 5*simLease)
						err := some().Send(limited, semel.Shared, id, s.name, "event of "+id)
						stop()
						if err == nil || errors.Is(err, saga.ErrEnded) || errors.Is(err, semel.ErrParked) || errors.Is(err, store.ErrNotFound) || ctx.Err() != nil {
							break
						}
						time.Sleep(w.upTo(simLease))
					}
				}
			})
		}
		for range 20 {
			time.Sleep(simLease)
			for _, id := range ids[:len(ids)/2] {
				if w.chance("an operator looked", 4) {
					w.operate(id)
				}
			}
			if w.chance("the store's clock jumped", 10) {
				w.offset.Add(int64(w.upTo(4*simLease) - 2*simLease))
			}
		}
		w.calm.Store(true)
		calling.Wait()
		time.Sleep(2 * simDeadline)
		for range 3 { // a step after the one in doubt may be in doubt, too
			for _, id := range ids[:len(ids)/2] {
				w.operate(id)
			}
			time.Sleep(simDeadline)
		}
		cancel()
		working.Wait()
		time.Sleep(10 * simLease) // the last late requests
		w.mu.Lock()
		defer w.mu.Unlock()
		before := len(totals.wrong)
		for _, id := range ids {
			end, wrong := w.judge(id)
			totals.ends[end]++
			for _, text := range wrong {
				totals.wrong = append(totals.wrong, fmt.Sprintf("seed %d, %s: %s", seed, id, text))
			}
		}
		if len(totals.wrong) > before {
			totals.failed++
		}
		totals.steps += w.steps.Load()
		for what, n := range w.faults {
			totals.faults[what] += n
		}
	})
}

func simulateMany(t *testing.T, histories int, freshKeys bool) *simTotals {
	totals := &simTotals{ends: map[store.State]int{}, faults: map[string]int{}}
	for seed := range histories {
		simulate(t, uint64(seed), freshKeys, totals)
		if t.Failed() {
			break
		}
	}
	return totals
}

// Whatever dies, freezes, gets lost or comes twice: the eight rules hold.
func TestCampaign_SagasUnderFaults_RulesHold(t *testing.T) {
	histories := 200
	switch {
	case os.Getenv("SEMEL_EVIDENCE") == "1":
		histories = 20_000
	case testing.Short():
		histories = 40
	}
	totals := simulateMany(t, histories, false)
	for i, text := range totals.wrong {
		if i < 20 {
			t.Error(text)
		}
	}
	totals.report(t, histories, false)
	for _, what := range slices.Sorted(maps.Keys(totals.faults)) {
		t.Logf("%s: %d", what, totals.faults[what])
	}
	for _, end := range []store.State{store.Completed, store.Failed, store.Unknown} {
		if totals.ends[end] == 0 {
			t.Errorf("no saga ended as %v, so that the campaign shows nothing about it", end)
		}
	}
}

// The control: if each attempt sends a key of its own, the judge must notice.
func TestSagasUnderFaults_FreshKeys_AreFoundOut(t *testing.T) {
	t.Parallel()
	totals := simulateMany(t, 10, true)
	totals.report(t, 10, true)
	if len(totals.wrong) == 0 {
		t.Errorf("the judge found nothing wrong in %d calls", totals.steps)
	}
}

// report writes the figures for docs/evidence.md, as package figure does, which this
// module cannot import.
func (s *simTotals) report(t *testing.T, histories int, control bool) {
	t.Helper()
	b, err := json.Marshal(map[string]any{
		"claim": "the eight rules of sagas hold", "trials": histories, "failures": s.failed, "control": control,
		"detail": fmt.Sprintf("%d calls of other systems; sagas ended as %v", s.steps, s.ends),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("evidence: %s", b)
}
