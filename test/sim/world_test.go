package sim

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing/synctest"
	"time"

	"github.com/semel-go/semel/store"
)

// world is one seed's simulation. Everything happens on the scheduler's goroutine,
// one event at a time, except the steps of Guards and handlers between two messages
// to it.
type world struct {
	seed    uint64
	rng     *rand.Rand // the scheduler's alone
	plan    plan
	tick    int
	skew    time.Duration // of the store's clock
	down    int           // the store is out until this tick
	calm    bool          // the faults are over
	queue   []*event
	procs   []*process
	calls   []*call
	begun   int // processes, ever
	jumps   int // of the store's clock
	open    int // calls that have not ended
	quiet   int // the tick of the last sweep; 0: not yet
	tokens  map[life]string
	truth   truth
	book    ledger
	db      *database     // of an atomic seed
	replica *replica      // nil: the store has no standby
	told    map[life]bool // outcomes that a caller was told
	story   story
	lenient bool // a control: Guards retry, whatever the plan says
	bad     []string

	mu    sync.Mutex // guards what follows
	box   []*item    // the goroutines' messages to the scheduler
	tally tally
}

// event is what the scheduler has to do at a tick.
type event struct {
	at    int
	proc  *process // held while it is frozen; nil: the world's
	first bool     // before all others
	run   func()
	wakes bool // some goroutine goes on: wait until it comes to rest
}

func newWorld(seed uint64, p plan, rng *rand.Rand, st func(now func() time.Time) store.Store) *world {
	w := &world{seed: seed, rng: rng, plan: p}
	if p.policy == atomically {
		w.db = &database{w: w, rows: newRows(w.now)}
		w.truth.init(w, w.db.rows)
	} else {
		w.truth.init(w, st(w.now))
	}
	w.book.init(w)
	w.tally.seeds = 1
	return w
}

// now is the store's clock.
func (w *world) now() time.Time { return time.Now().Add(w.skew) }

func (w *world) push(e *event) { w.queue = append(w.queue, e) }

// after plans a change of the world's own.
func (w *world) after(ticks int, run func()) { w.push(&event{at: w.tick + ticks, run: run}) }

func (w *world) odds(p float64) bool { return p > 0 && w.rng.Float64() < p }

func (w *world) fail(format string, args ...any) {
	w.bad = append(w.bad, fmt.Sprintf("tick %d: ", w.tick)+fmt.Sprintf(format, args...))
	w.note("VIOLATION", 0, 0)
}

// play runs all of it: in a bubble.
func (w *world) play() {
	w.begin()
	for end := w.plan.horizon; ; {
		w.turn()
		switch {
		case w.tick < end:
			w.faults()
		case !w.calm:
			w.peace()
		case w.open == 0 && w.ending():
			w.finish()
			return
		case w.tick > end+1000:
			for _, c := range w.calls {
				if !c.over {
					w.fail("call %d never ended", c.id)
				}
			}
			w.finish()
			return
		}
		time.Sleep(tick)
		w.tick++
		synctest.Wait()
	}
}

// turn does all that is due.
func (w *world) turn() {
	for {
		w.collect()
		e := w.pick()
		if e == nil {
			return
		}
		e.run()
		if e.wakes {
			synctest.Wait()
		}
	}
}

// pick takes one of the events that are due: any.
func (w *world) pick() *event {
	var due []int
	var stack [64]int
	due = stack[:0]
	for i, e := range w.queue {
		if e.at > w.tick || e.proc != nil && e.proc.frozen > w.tick {
			continue
		}
		if e.first {
			due = append(due[:0], i)
			break
		}
		due = append(due, i)
	}
	if len(due) == 0 {
		return nil
	}
	i := due[0]
	if len(due) > 1 {
		i = due[w.rng.IntN(len(due))]
	}
	e := w.queue[i]
	last := len(w.queue) - 1
	w.queue[i] = w.queue[last]
	w.queue = w.queue[:last]
	return e
}

// collect takes what the goroutines have asked for since, in an order that
// does not depend on which of them ran first.
func (w *world) collect() {
	w.mu.Lock()
	in := w.box
	w.box = nil
	w.mu.Unlock()
	if len(in) > 1 {
		slices.SortStableFunc(in, (*item).compare)
	}
	for _, it := range in {
		w.accept(it)
	}
}

// finish lets all goroutines come to their end.
func (w *world) finish() {
	for _, p := range w.procs {
		w.bury(p)
	}
	synctest.Wait()
	w.truth.end()
	w.tally.played[w.plan.policy] = w.tally.ops
	time.Sleep(w.plan.settle + 4*tick) // until calls that were given up have ended in the background
	synctest.Wait()
}

// story is the trace: a hash of it always, its text on demand.
type story struct {
	hash uint64
	tell func(line string)
}

// note adds a line. The numbers are of the simulation's own making: nothing
// that is random in Semel itself, such as an owner, may go in.
func (w *world) note(what string, call int, n int64) {
	h := w.story.hash
	for i := range len(what) {
		h = (h ^ uint64(what[i])) * 0x100000001b3
	}
	h = (h ^ uint64(w.tick)) * 0x100000001b3
	h = (h ^ uint64(call)) * 0x100000001b3
	h = (h ^ uint64(n)) * 0x9e3779b97f4a7c15
	w.story.hash = h ^ h>>29
	if w.story.tell != nil {
		w.story.tell(fmt.Sprintf("%4d  call %-3d %s %d", w.tick, call, what, n))
	}
}
