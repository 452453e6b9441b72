package storm

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/storetest"
	"github.com/semel-go/semel/test/internal/figure"
)

// SEMEL_TEST_STORM=7,20 runs the storms of 20 seeds from 7 on.
func TestStorm_OneOutcomePerKey(t *testing.T) {
	first, n := 1, 2
	if figure.Long() {
		n = 40
	}
	if text := os.Getenv("SEMEL_TEST_STORM"); text != "" {
		if _, err := fmt.Sscanf(text, "%d,%d", &first, &n); err != nil {
			t.Fatalf("SEMEL_TEST_STORM is %q; want the first seed and the number of seeds, such as 7,20: %v", text, err)
		}
	}
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			if k.slow && !figure.Long() {
				t.Skip("the server of this store is a slow emulator; SEMEL_EVIDENCE=1 runs its storms on a machine that does nothing else")
			}
			n := n
			if k.slow {
				n = min(n, 4)
			}
			failed, runs := int64(0), int64(0)
			for seed := first; seed < first+n; seed++ {
				t.Run(fmt.Sprint(seed), func(t *testing.T) {
					s := newStorm(t, uint64(seed), k.open) //nolint:gosec // it is a seed
					defer s.end()
					for _, wrong := range s.blow() {
						t.Error(wrong)
					}
					if runs += s.runs.Load(); t.Failed() {
						failed++
					}
					t.Log(s.tale())
				})
			}
			figure.Report(t, figure.Figure{
				Claim: "in a storm each key has one outcome, and under park one effect", Where: k.name, Trials: int64(n), Failures: failed,
				Detail: fmt.Sprintf("%d runs of handlers", runs), Seeds: fmt.Sprintf("%d-%d", first, first+n-1),
			})
		})
	}
}

// Durations and numbers of a storm. Leases are short, so that some are lost.
const (
	lease       = 60 * time.Millisecond
	reservation = 150 * time.Millisecond
	settling    = 150 * time.Millisecond
	brief       = 40 * time.Millisecond // how long brief keys are kept
	stormKeys   = 60
	stormWindow = 6 // how many keys are called at a time
	callsEach   = 12
	callers     = 12
	processes   = 3
	tooLong     = time.Minute // a storm that takes longer is stuck
)

// classes are by whose rules a key is called.
var classes = []string{"retry", "park", "mixed", "park", "few", "brief"}

// storm is one seed's world.
type storm struct {
	book
	bank
	seed  uint64
	procs []*process
	end   func() // of the store
	calm  atomic.Bool
	runs  atomic.Int64
	hasty bool // the storm ends at the first broken rule
	rash  bool // a control: Guards do not park

	rmu  sync.Mutex
	rand *rand.Rand

	amu     sync.Mutex
	answers map[string]map[string]int // the answers that callers got, by key
	met     map[string]int            // counts of events, for the log
	tokens  []token
}

// process is Guards that share a connection to the store.
type process struct {
	s      *storm
	st     store.Store
	faults []*storetest.Fault
	down   atomic.Int64 // the store does not answer until then
	stale  atomic.Int64 // it does not renew until then

	retry, park, few, fresh, brief *semel.Guard
}

func newStorm(t testing.TB, seed uint64, open opener) *storm {
	s := &storm{seed: seed, rand: rand.New(rand.NewPCG(seed, 1)), answers: map[string]map[string]int{}, met: map[string]int{}}
	s.book.init()
	s.bank.init(s)
	openProcess, end := open(t)
	for range processes {
		s.procs = append(s.procs, s.newProcess(t, openProcess))
	}
	s.end = end
	return s
}

// blow runs the storm, and then calls each key once without faults. It returns the
// broken rules.
func (s *storm) blow() []string {
	keys := make([]string, stormKeys)
	for i := range keys {
		keys[i] = fmt.Sprintf("%s-%d", classes[i%len(classes)], i)
	}

	var calls atomic.Int64
	var all, weather sync.WaitGroup
	over := make(chan struct{})
	for i, what := range []func(*rand.Rand, string){s.trouble, s.sweep, s.operate, s.redeem} {
		r := rand.New(rand.NewPCG(s.seed, uint64(100+i)))
		weather.Go(func() {
			for {
				select {
				case <-over:
					return
				case <-time.After(time.Duration(r.IntN(20)) * time.Millisecond):
					what(r, keys[min(int(calls.Load())/callsEach, stormKeys-1)])
				}
			}
		})
	}
	for i := range callers {
		r := rand.New(rand.NewPCG(s.seed, uint64(200+i)))
		all.Go(func() {
			for {
				at := int(calls.Add(1)) / callsEach
				if at >= stormKeys || s.hasty && s.broken() {
					return
				}
				s.call(r, keys[max(0, at-r.IntN(stormWindow))])
			}
		})
	}
	s.within(&all, "the calls")
	close(over)
	s.within(&weather, "sweepers, operators and bearers of tokens")
	if s.hasty && s.broken() {
		return s.verdicts()
	}
	s.calm.Store(true)
	for _, p := range s.procs {
		for _, f := range p.faults {
			f.Deliver(context.Background())
		}
	}
	for i, key := range keys {
		all.Go(func() { s.last(s.procs[i%processes], key) })
	}
	s.within(&all, "the last calls")
	s.judge(keys)
	if !s.hasty { // in a hasty storm others run at the same time
		s.left()
	}
	return s.verdicts()
}

func (s *storm) tale() string {
	s.amu.Lock()
	defer s.amu.Unlock()
	return fmt.Sprintf("%d runs; met %v", s.runs.Load(), s.met)
}

// within waits until all have ended, and panics after tooLong.
func (s *storm) within(all *sync.WaitGroup, what string) {
	done := make(chan struct{})
	go func() {
		all.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(tooLong):
		panic("stuck: " + what) // the panic prints the goroutines
	}
}

// oneIn is true once in n times.
func (s *storm) oneIn(n int) bool { return s.upTo(n) == 0 }

func (s *storm) upTo(n int) int {
	s.rmu.Lock()
	defer s.rmu.Unlock()
	return s.rand.IntN(n)
}

// lag waits: mostly not at all, sometimes shortly, and seldom until a lease lapses.
func (s *storm) lag() {
	if s.calm.Load() {
		return
	}
	switch n := s.upTo(400); {
	case n == 0:
		<-time.After(lease + lease/2)
	case n < 60:
		<-time.After(time.Duration(n) * 50 * time.Microsecond)
	}
}

func (s *storm) meets(what string) {
	s.amu.Lock()
	defer s.amu.Unlock()
	s.met[what]++
}
