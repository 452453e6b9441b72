package sim

import (
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/memstore"
	"github.com/semel-go/semel/test/linear"
)

// result is what a seed came to.
type result struct {
	seed  uint64
	hash  uint64
	tally tally
	bad   []string

	hist   *history      // if it was asked for
	judged linear.Result // of hist
}

// settings change the run of a seed.
type settings struct {
	tell  func(line string)                      // gets each event
	store func(now func() time.Time) store.Store // nil: the memory store
	lax   bool                                   // judge only by answers and effects
	tune  func(p *plan)                          // changes the seed's plan
	wrong func(w *world)                         // changes the world before it begins
	see   func(w *world, r *result)              // sees the world at the end
}

func memory(now func() time.Time) store.Store { return memstore.New(&memstore.Options{Now: now}) }

// play plays one seed in a bubble of its own.
func play(t *testing.T, seed uint64, s *settings) (res result) {
	defer func() {
		if p := recover(); p != nil { // a dead-lock, or a goroutine that is left
			res.bad = append(res.bad, fmt.Sprint("panic: ", p))
		}
	}()
	res.seed = seed
	synctest.Test(t, func(*testing.T) {
		rng := rand.New(rand.NewPCG(seed, 0x5e3e1))
		p := draw(rng)
		if s.tune != nil {
			s.tune(&p)
		}
		st := s.store
		if st == nil {
			st = memory
		}
		w := newWorld(seed, p, rng, st)
		w.story.tell, w.truth.lax = s.tell, s.lax
		if s.tell != nil {
			s.tell(fmt.Sprintf("%+v", p))
		}
		if s.wrong != nil {
			s.wrong(w)
		}
		defer func() {
			if p := recover(); p != nil {
				res.bad = append(res.bad, fmt.Sprintf("panic: %v\n%s", p, debug.Stack()))
			}
		}()
		w.play()
		if s.see != nil {
			s.see(w, &res)
		}
		res.hash, res.bad, res.tally = w.story.hash, w.bad, w.tally
	})
	if res.hist != nil {
		res.judged = linear.Check(&res.hist.History, patience(s))
	}
	return res
}
