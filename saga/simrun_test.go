package saga_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/saga"
	"github.com/semel-go/semel/store"
)

// start makes the process's saga. The process works until it is killed or ctx ends.
func (w *simWorld) start(ctx context.Context, working *sync.WaitGroup) (*simProcess, *saga.Saga[string, string], error) {
	ctx, stop := context.WithCancel(ctx)
	p := &simProcess{Store: w.st, w: w, stop: stop}
	var steps []string
	for i := range simMostSteps {
		steps = append(steps, fmt.Sprint("s", i))
	}
	if w.chance("a process did not list a step", 30) {
		steps = steps[1:]
		time.AfterFunc(w.upTo(3*simLease), p.kill)
	}
	guard, err := semel.New(p, &semel.Options{Lease: simLease, StoreTimeout: simLease, SettleTimeout: 2 * simLease, Retention: 1000 * time.Hour})
	if err != nil {
		return nil, nil, err
	}
	s, err := saga.New(guard, saga.Definition[string, string]{
		Name: "sim", Steps: steps,
		Deadline: simDeadline, UndoAttempts: 1000, Backoff: func(int) time.Duration { return simLease / 2 },
		Run: func(ctx context.Context, r *saga.Run, id string) (string, error) {
			return w.run(ctx, r, simAtomic{p, guard, id})
		},
	})
	if err != nil {
		return nil, nil, err
	}
	working.Go(func() {
		defer stop()
		_ = s.Work(ctx, &saga.WorkOptions{Every: simLease / 5, Concurrency: 4})
	})
	return p, s, nil
}

// run is the definition: it follows the plan of the saga.
func (w *simWorld) run(ctx context.Context, r *saga.Run, atomic simAtomic) (string, error) {
	plan := newSimPlan(w.seed, atomic.id)
	for i := 0; i < len(plan.steps); {
		n := i + 1
		for n < len(plan.steps) && plan.steps[n].position == plan.steps[i].position {
			n++
		}
		g := r.Group(2)
		for j := i; j < n; j++ {
			g.Go(func() error { return w.step(ctx, r, atomic, &plan.steps[j], plan.refused == j) })
		}
		if err := g.Wait(); err != nil {
			return "", err
		}
		i = n
	}
	return "done " + atomic.id, nil
}

func (w *simWorld) step(ctx context.Context, r *saga.Run, atomic simAtomic, s *simStep, refused bool) error {
	id := atomic.id
	w.reached.Add(1)
	switch {
	case s.sleep:
		return saga.Sleep(ctx, r, s.name, simLease)
	case s.event:
		v, err := saga.Await[string](ctx, r, s.name, 0)
		if err == nil && v != "event of "+id {
			return fmt.Errorf("the event is %q", v)
		}
		return err
	}
	undo := func(_ context.Context, at saga.At, v string) error {
		if !at.InDoubt() && v != "did "+s.name {
			return fmt.Errorf("the compensation of %s got %q", s.name, v)
		}
		w.reached.Add(1)
		return w.act(atomic.p, func() error { return w.apply(s, refused, id, at, true) })
	}
	var v string
	var err error
	if s.inTx {
		v, err = saga.StepIn(ctx, r, atomic, s.name, func(ctx context.Context, _ saga.At) (string, error) {
			return "did " + s.name, w.act(atomic.p, func() error {
				if refused {
					return &semel.Failure{Code: "refused", Message: "refused"}
				}
				w.put(ctx, id, s.name)
				return nil
			})
		}, undo)
	} else {
		var options []saga.StepOption
		if s.parked {
			options = append(options, saga.Parked())
		}
		v, err = saga.Step(ctx, r, s.name, func(_ context.Context, at saga.At) (string, error) {
			return "did " + s.name, w.act(atomic.p, func() error { return w.apply(s, refused, id, at, false) })
		}, undo, options...)
	}
	if err == nil && v != "did "+s.name {
		return fmt.Errorf("the result of %s is %q", s.name, v)
	}
	return err
}

// operate decides about a stuck saga, as an operator does who has asked the other systems
// what happened, and told them to refuse everything older.
func (w *simWorld) operate(id string) {
	ctx := context.Background()
	f, err := w.st.Get(ctx, store.Key{Operation: "sim##saga", Value: id})
	if err != nil || f.Record.State != store.Unknown {
		return
	}
	steps, err := w.st.Steps(ctx, f.Record.Lease())
	if err != nil {
		return // it has changed since
	}
	has := map[string]bool{}
	for i := range steps {
		skipped, _, _ := strings.Cut(steps[i].Name, ":skip:")
		has[steps[i].Name], has[skipped] = true, true
	}
	if _, wrong, ok := strings.Cut(f.Record.LastError, `an operator's skip of "`); ok {
		wrong, _, _ = strings.Cut(wrong, `"`)
		has[wrong] = false
	}
	i := saga.Intervention{Why: "the operator has asked"}
	w.mu.Lock()
	w.fences[id] = max(w.fences[id], f.Record.Fence)
	for _, s := range newSimPlan(w.seed, id).steps {
		n := 1
		for has[fmt.Sprint(s.name, ":none:", n)] {
			n++
		}
		switch {
		case has[s.name] || !has[fmt.Sprint(s.name, ":begun:", n)]:
		case !slices.ContainsFunc(w.history[id], func(e simEvent) bool { return e.name == s.name && !e.undo }):
			i.NotHappened = append(i.NotHappened, s.name)
		case i.Done == "":
			i.Done, i.Result = s.name, []byte(`"did `+s.name+`"`)
			if w.rng.IntN(4) == 0 {
				i.Result = []byte("1") // of another type, so that the operator has to look again
				w.faults["an operator gave a wrong result"]++
			}
		}
	}
	if name := stuckCompensation(f.Record.LastError); name != "" && w.rng.IntN(2) == 0 {
		if !w.byHand[id+" "+name] {
			w.byHand[id+" "+name] = true
			w.history[id] = append(w.history[id], simEvent{name: name, undo: true, inDoubt: true})
		}
		i.Done = name + ":undo"
		w.faults["an operator undid a step by hand"]++
	}
	i.Back = w.rng.IntN(4) == 0 && !has["saga:back"]
	w.mu.Unlock()
	p := &simProcess{Store: w.st, w: w, stop: func() {}}
	if w.chance("an operator's process died in a decision", 3) {
		p.left.Store(1 + int64(w.upTo(6)))
	}
	_ = saga.Intervene(ctx, p, f.Record, i) // it may have changed since
}

// stuckCompensation is the step whose compensation an error names, if it does.
func stuckCompensation(text string) string {
	_, rest, ok := strings.Cut(text, `the compensation of step "`)
	name, _, _ := strings.Cut(rest, `"`)
	if !ok {
		return ""
	}
	return name
}
