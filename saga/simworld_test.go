package saga_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/saga"
	"github.com/semel-go/semel/store/memstore"
)

const (
	simLease     = time.Second
	simDeadline  = 60 * simLease
	simMostSteps = 10
)

// simPlan is what one saga does. All processes derive the same plan from its id.
type simPlan struct {
	steps   []simStep
	refused int // index of the step that fails for good; -1: none
}

type simStep struct {
	name     string
	position int // steps of a group have the same
	parked   bool
	sleep    bool
	event    bool
	inTx     bool // it puts a message into the outbox in a transaction
	givesUp  bool // its compensation gives up once
}

func newSimPlan(seed uint64, id string) *simPlan {
	rng := rand.New(rand.NewPCG(seed, hash(id)))
	p := &simPlan{refused: -1}
	n := 2 + rng.IntN(simMostSteps-1)
	for i := range n {
		s := simStep{name: fmt.Sprint("s", i), position: i}
		switch rng.IntN(12) {
		case 0:
			s.sleep = true
		case 1:
			s.event = true
		case 2, 3:
			s.parked = true
		case 4, 5, 6:
			s.inTx = true
		}
		s.givesUp = rng.IntN(20) == 0
		if i > 0 && rng.IntN(4) == 0 {
			s.position = p.steps[i-1].position
		}
		p.steps = append(p.steps, s)
	}
	if i := rng.IntN(2 * n); i < n && !p.steps[i].sleep && !p.steps[i].event {
		p.refused = i
	}
	return p
}

func hash(s string) (h uint64) {
	for _, b := range []byte(s) {
		h = h*1099511628211 + uint64(b)
	}
	return h
}

// simWorld has the store, the other systems, and what happened there.
type simWorld struct {
	seed      uint64
	st        *memstore.Store
	offset    atomic.Int64 // of the store's clock
	calm      atomic.Bool  // no more faults
	freshKeys bool         // the control: each attempt has a key of its own
	reached   atomic.Int64 // steps and compensations that began or were replayed
	calls     atomic.Int64 // of their functions

	mu      sync.Mutex
	rng     *rand.Rand
	fences  map[string]uint64     // the highest that came, by saga
	applied map[string]int        // by key
	history map[string][]simEvent // by saga
	gaveUp  map[string]bool       // compensations, by saga and step
	byHand  map[string]bool       // compensations that an operator has done
	faults  map[string]int

	deciding map[string]bool     // sagas about which an operator's decision has begun and not ended
	early    map[string][]string // effects that were applied meanwhile, by saga
}

// simEvent is an effect, or a compensation, that was applied.
type simEvent struct {
	name    string
	undo    bool
	inDoubt bool
}

func newSimWorld(seed uint64) *simWorld {
	w := &simWorld{
		seed: seed, rng: rand.New(rand.NewPCG(seed, 1)), fences: map[string]uint64{}, applied: map[string]int{},
		history: map[string][]simEvent{}, faults: map[string]int{}, gaveUp: map[string]bool{}, byHand: map[string]bool{},
		deciding: map[string]bool{}, early: map[string][]string{},
	}
	w.st = memstore.New(&memstore.Options{Now: func() time.Time { return time.Now().Add(time.Duration(w.offset.Load())) }})
	return w
}

// chance is true once in n times, unless the world is calm.
func (w *simWorld) chance(what string, n int) bool {
	if w.calm.Load() {
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.rng.IntN(n) != 0 {
		return false
	}
	w.faults[what]++
	return true
}

func (w *simWorld) upTo(d time.Duration) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return time.Duration(w.rng.Int64N(int64(d)))
}

var errStale = errors.New("the other system knows a higher fencing token")

// act is a call of another system by a step or a compensation, which apply takes.
func (w *simWorld) act(p *simProcess, apply func() error) error {
	w.calls.Add(1)
	if w.chance("process frozen before an effect", 25) {
		sleep(w.upTo(3 * simLease))
	}
	if w.chance("process died before an effect", 25) {
		p.kill()
	}
	if p.dead.Load() {
		return semel.NoEffect(errDead)
	}
	if w.chance("an effect failed before", 12) {
		return semel.NoEffect(errBoom)
	}
	if err := apply(); err != nil {
		return err
	}
	if w.chance("process died after an effect", 15) {
		p.kill()
		return errDead
	}
	if w.chance("process frozen after an effect", 25) {
		sleep(w.upTo(3 * simLease))
	}
	if w.chance("the reply of an effect was lost", 12) {
		return errBoom
	}
	return nil
}

func (w *simWorld) apply(s *simStep, refused bool, id string, at saga.At, undo bool) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if at.Fence() < w.fences[id] {
		return semel.NoEffect(errStale)
	}
	w.fences[id] = at.Fence()
	name := id + " " + s.name
	switch {
	case refused && !undo:
		return &semel.Failure{Code: "refused", Message: "refused"}
	case undo && w.byHand[name]:
		return nil
	case undo && s.givesUp && !w.gaveUp[name]:
		w.gaveUp[name] = true
		w.faults["a compensation gave up"]++
		return &semel.Failure{Code: "unable", Message: "it cannot be undone now"}
	}
	key := at.Key()
	if w.freshKeys {
		key = fmt.Sprint(key, w.rng.Uint64())
	}
	w.applied[key]++
	if w.applied[key] > 1 && (undo || !s.parked) {
		return nil // the other system knows the key
	}
	w.happens(id, simEvent{s.name, undo, at.InDoubt()})
	return nil
}

// happens notes an effect. The world is locked.
func (w *simWorld) happens(id string, e simEvent) {
	w.history[id] = append(w.history[id], e)
	if w.deciding[id] {
		w.early[id] = append(w.early[id], e.name)
	}
}

// decides notes that an operator's decision has begun or ended.
func (w *simWorld) decides(id string, begun bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.deciding[id] = begun
}
