package saga_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/saga"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/memstore"
)

// order is the input of the tests' saga.
type order struct {
	Item  string
	Cents int
}

// world is the systems that the steps of a saga call. They outlive every process.
type world struct {
	mu     sync.Mutex
	log    []string            // effects and compensations, in their order
	keys   map[string][]string // the keys that came with each
	before func(name string) error
	after  func(name string) error
}

// act has the effect of a step or a compensation.
func (w *world) act(name, key string) error {
	if w.before != nil {
		if err := w.before(name); err != nil {
			return err
		}
	}
	w.mu.Lock()
	w.log = append(w.log, name)
	if w.keys == nil {
		w.keys = map[string][]string{}
	}
	w.keys[name] = append(w.keys[name], key)
	w.mu.Unlock()
	if w.after != nil {
		return w.after(name)
	}
	return nil
}

// done fails unless exactly these effects happened, in this order.
func (w *world) done(t *testing.T, want ...string) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	if !slices.Equal(w.log, want) {
		t.Errorf("the effects are %q, want %q", w.log, want)
	}
}

// once makes a function that gives its error the first time that a name comes.
func once(name string, err error) func(string) error {
	var given sync.Once
	return func(got string) (result error) {
		if got == name {
			given.Do(func() { result = err })
		}
		return result
	}
}

var (
	errBoom    = errors.New("connection reset")
	errRefused = &semel.Failure{Code: "refused", Message: "refused"}
)

// step makes a step of the world with a compensation.
func (w *world) step(ctx context.Context, r *saga.Run, name string, options ...saga.StepOption) (string, error) {
	return saga.Step(ctx, r, name, func(_ context.Context, at saga.At) (string, error) {
		return "result of " + name, w.act(name, at.Key())
	}, func(_ context.Context, at saga.At, v string) error {
		if want := "result of " + name; v != want && !at.InDoubt() {
			return fmt.Errorf("the compensation got %q, want %q", v, want)
		}
		undo := "undo " + name
		if at.InDoubt() {
			undo = "undo in doubt " + name
		}
		return w.act(undo, at.Key()+" for "+at.StepKey())
	}, options...)
}

// three is a saga of the steps hold, charge and book.
func (w *world) three() saga.Definition[order, string] {
	return saga.Definition[order, string]{
		Name:  "order",
		Steps: []string{"hold", "charge", "book"},
		Run: func(ctx context.Context, r *saga.Run, in order) (string, error) {
			for _, name := range []string{"hold", "charge", "book"} {
				if _, err := w.step(ctx, r, name); err != nil {
					return "", err
				}
			}
			return "booked " + in.Item, nil
		},
	}
}

var book = order{"book", 4200}

// process is the store as one process sees it. After kill it gives no more answers.
type process struct {
	store.Store
	journal store.Journal
	timers  store.Timers

	mu    sync.Mutex
	dead  bool
	stale bool           // it cannot renew its leases
	calls map[string]int // by method
}

var errDead = errors.New("the process is dead")

func newProcess(st *memstore.Store) *process {
	return &process{Store: st, journal: st, timers: st, calls: map[string]int{}}
}

func (p *process) kill() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.dead = true
}

// check counts a request, and refuses it if the process is dead.
func (p *process) check(method string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.calls[method]++
	if p.stale && method == "Renew" {
		return errDead
	}
	if p.dead {
		return errDead
	}
	return nil
}

func (p *process) Claim(ctx context.Context, q store.Proposal) (store.Found, error) {
	if err := p.check("Claim"); err != nil {
		return store.Found{}, err
	}
	return p.Store.Claim(ctx, q)
}

func (p *process) Swap(ctx context.Context, seen store.Seen, q store.Proposal) (store.Found, error) {
	if err := p.check("Swap"); err != nil {
		return store.Found{}, err
	}
	return p.Store.Swap(ctx, seen, q)
}

func (p *process) Renew(ctx context.Context, held []store.Lease, d time.Duration) ([]error, error) {
	if err := p.check("Renew"); err != nil {
		return nil, err
	}
	return p.Store.Renew(ctx, held, d)
}

func (p *process) Settle(ctx context.Context, l store.Lease, s store.Settlement) error {
	if err := p.check("Settle"); err != nil {
		return err
	}
	return p.Store.Settle(ctx, l, s)
}

func (p *process) RecordStep(ctx context.Context, l store.Lease, s store.Step) error {
	if err := p.check("RecordStep"); err != nil {
		return err
	}
	return p.journal.RecordStep(ctx, l, s)
}

func (p *process) Steps(ctx context.Context, l store.Lease) ([]store.Step, error) {
	if err := p.check("Steps"); err != nil {
		return nil, err
	}
	return p.journal.Steps(ctx, l)
}

func (p *process) SetTimer(ctx context.Context, k store.Key, seen, next store.Owner, wait time.Duration) (bool, error) {
	if err := p.check("SetTimer"); err != nil {
		return false, err
	}
	return p.timers.SetTimer(ctx, k, seen, next, wait)
}

func (p *process) DropTimer(ctx context.Context, k store.Key, seen store.Owner) error {
	if err := p.check("DropTimer"); err != nil {
		return err
	}
	return p.timers.DropTimer(ctx, k, seen)
}

func (p *process) DueTimers(ctx context.Context, operation string, within time.Duration, limit int) ([]store.Timer, time.Time, error) {
	if err := p.check("DueTimers"); err != nil {
		return nil, time.Time{}, err
	}
	return p.timers.DueTimers(ctx, operation, within, limit)
}

// newSaga makes a saga over a store.
func newSaga(t *testing.T, st store.Store, d saga.Definition[order, string]) *saga.Saga[order, string] {
	t.Helper()
	guard, err := semel.New(st, &semel.Options{Retention: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	s, err := saga.New(guard, d)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// work runs workers until the bubble is idle for d of virtual time, and stops them.
func work(t *testing.T, d time.Duration, sagas ...*saga.Saga[order, string]) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	for _, s := range sagas {
		all.Go(func() {
			if err := s.Work(ctx, nil); err != nil {
				t.Error(err)
			}
		})
	}
	time.Sleep(d)
	cancel()
	all.Wait()
}

// record is the record of a saga of the tests.
func record(t *testing.T, st store.Store, id string) store.Record {
	t.Helper()
	f, err := st.Get(context.Background(), store.Key{Operation: "order##saga", Tenant: "ann", Value: id})
	if err != nil {
		t.Fatal(err)
	}
	return f.Record
}

// timersOf is how many timers the tests' sagas have.
func timersOf(t *testing.T, st *memstore.Store) int {
	t.Helper()
	due, _, err := st.DueTimers(context.Background(), "order##saga", 1000*time.Hour, 100)
	if err != nil {
		t.Fatal(err)
	}
	return len(due)
}

// sleep lets the virtual time of a bubble go on.
func sleep(d time.Duration) { time.Sleep(d) }

// bubble runs a test under virtual time.
func bubble(t *testing.T, fn func(t *testing.T, st *memstore.Store, w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { fn(t, memstore.New(nil), &world{}) })
}

func contains(err error, text string) bool { return err != nil && strings.Contains(err.Error(), text) }
