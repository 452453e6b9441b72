package saga

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/bridge"
	"github.com/semel-go/semel/internal/handlererr"
	"github.com/semel-go/semel/internal/history"
	"github.com/semel-go/semel/store"
)

// The steps that Semel records besides those of a definition. Names of steps have no
// ':'.
const (
	inputStep = "saga:input"
	backStep  = history.SagaBack // its result is the failure
	undoPart  = history.SagaUndo
	begunPart = history.SagaBegun
	nonePart  = history.SagaNone
)

// Run is one run of a saga's definition. Safe for concurrent use.
type Run struct {
	core   *core
	rules  *rules
	x      *semel.Execution
	driver executionMethods
	ending func() error // not nil: the caller's context has ended, and no step starts

	mu       sync.Mutex
	recorded map[string]*store.Step // when the run began; skipped ones by what is skipped
	skips    map[string]*store.Step // of recorded: what operators have skipped
	uses     map[string]*use        // by name
	started  []*use                 // in the order of their start
	back     *semel.Failure         // the saga has turned back, so that no step starts
	before   int                    // the attempts before it turned back, which do not count for UndoAttempts
	pausing  bool                   // the run ends: it waits for a time or an event
	pause    time.Duration          // how long
	stuck    error                  // the run ends: only an operator can say how it goes on
	unread   error                  // why a recorded step could not be read, so that the run shows nothing
	unsure   bool                   // a transaction may still commit, so that nothing is undone in this run
	progress bool                   // the run has recorded something
	running  int                    // the steps that have begun and not ended
	idle     sync.Cond              // running is 0
}

// use is one step of a Run.
type use struct {
	name  string
	marks int  // the steps that it can record besides its end
	none  int  // the attempts of a Parked step without effect, if that of this run is one
	event bool // it is an Await
	state useState
	undo  func(ctx context.Context, at At) error // nil: nothing to undo
}

// useState is what is known of a step's effect.
type useState uint8

const (
	inDoubt useState = iota // it may have happened
	done
	noEffect // it has not happened
	held     // it may have happened, and nothing may be undone before that is known
)

func methods(x *semel.Execution) executionMethods { return bridge.Execution(x).(executionMethods) }

func newRun(c *core, rules *rules, x *semel.Execution) *Run {
	r := &Run{core: c, rules: rules, x: x, driver: methods(x), uses: map[string]*use{}}
	r.idle.L = &r.mu
	return r
}

// ID is the id of the saga.
func (r *Run) ID() string { return r.x.Key() }

// Tenant is the tenant of the saga; empty if it is semel.Shared.
func (r *Run) Tenant() string { return r.x.Tenant() }

// load reads what is recorded of the saga.
func (r *Run) load(ctx context.Context) (err error) {
	r.recorded, err = r.driver.Steps(ctx)
	if err != nil {
		return err
	}
	r.skips = history.Skips(r.recorded)
	for name := range r.recorded {
		if strings.Contains(name, history.SagaSkip) || strings.Contains(name, history.SagaUnskip) {
			delete(r.recorded, name)
		}
	}
	maps.Copy(r.recorded, r.skips)
	return nil
}

// run is the handler of a saga's call. After the end of caller no step starts, and after
// drain it cancels steps; it does not end compensations. in is nil in a worker.
func (s *Saga[In, Out]) run(caller, ctx context.Context, drain time.Duration, x *semel.Execution, in *In) (store.Outcome, error) {
	r := newRun(&s.core, &s.rules, x)
	r.ending = caller.Err
	if err := r.load(ctx); err != nil {
		return store.Outcome{}, r.interrupted(err)
	}
	input, err := s.input(ctx, r, in)
	if err == nil {
		err = r.check()
	}
	if err == nil {
		err = r.begin(ctx)
	}
	if err != nil {
		return store.Outcome{}, r.interrupted(err)
	}
	forward, cancel := r.forward(caller, ctx, drain)
	defer cancel()
	out, err := s.call(forward, r, input)
	if err = r.end(ctx, forward, err); err != nil {
		return store.Outcome{}, err
	}
	o, err := r.driver.Encode(out)
	if err != nil { // the work is done; the callers get ErrNotKept
		return store.Outcome{Gone: true}, nil
	}
	return o, nil
}

// call calls the definition. A panic is an error, so that a saga which panics does not
// end the process of a worker.
func (s *Saga[In, Out]) call(ctx context.Context, r *Run, in In) (out Out, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("saga: the definition panicked: %v\n%s", p, debug.Stack())
		}
	}()
	out, err = s.definition.Run(ctx, r, in)
	return out, handlererr.Readable(err)
}

// check refuses a saga whose record has a step that the definition does not list.
func (r *Run) check() error {
	for _, name := range slices.Sorted(maps.Keys(r.recorded)) {
		base, _, _ := strings.Cut(name, ":")
		switch {
		case base == "saga" || r.rules.lists(base):
		case r.skips[name] != nil:
			return wrongSkip(name, errors.New("names no step of the definition"))
		default:
			return &handlererr.Stuck{Err: fmt.Errorf("step %q is recorded, but not in Steps of the definition: did a deploy drop or rename it?", name)}
		}
	}
	return nil
}

// begin finds out whether the saga has turned back, or must.
func (r *Run) begin(ctx context.Context) error {
	if turned := r.recorded[backStep]; turned != nil {
		f, err := r.recordBack(ctx, nil)
		if err != nil {
			return err
		}
		r.back, r.before = f, max(0, turned.Attempt-1) // an operator's has none
	}
	if name, most := r.limit(); most > 0 && r.inRow() > most {
		return &handlererr.Stuck{Err: fmt.Errorf("%s (%d) is used up; the process of the last attempt died, froze or lost its connection", name, most)}
	}
	if r.back == nil && r.rules.deadline > 0 && r.left() <= 0 {
		return r.tooLate()
	}
	return nil
}

// interrupted is the error of a run that ends before it has called the definition.
func (r *Run) interrupted(err error) error {
	if _, ok := errors.AsType[*handlererr.Stuck](err); ok {
		return err
	}
	if _, ok := errors.AsType[*handlererr.Pause](err); ok {
		return err
	}
	return &handlererr.Pause{Wait: r.rules.backoff(1), Attempt: max(0, r.x.Attempt()-1), Err: err}
}

// again is the error of a run after which the saga goes on later, or is stuck after too
// many attempts.
func (r *Run) again(err error) error {
	n := r.inRow()
	name, most := r.limit()
	if most > 0 && n >= most {
		return &handlererr.Stuck{Err: fmt.Errorf("%s (%d) is used up; the last attempt: %s%w", name, most, r.unfinished(), err)}
	}
	wait := max(r.rules.backoff(n), r.spare())
	return &handlererr.Pause{Wait: r.untilDeadline(wait), Attempt: r.before + n, Err: err}
}

// limit is how many attempts in a row may fail, and the name of that limit in a Definition.
func (r *Run) limit() (name string, most int) {
	if r.back != nil {
		return "UndoAttempts", r.rules.undoAttempts
	}
	return "MaxAttempts", r.rules.maxAttempts
}

// unfinished names the steps that have started and not ended, so that an operator knows
// which one to skip. Empty: the saga has turned back, or there are none.
func (r *Run) unfinished() string {
	var names []string
	for _, u := range r.started {
		if r.back == nil && u.state != done {
			names = append(names, fmt.Sprintf("step %q", u.name))
		}
	}
	if len(names) == 0 {
		return ""
	}
	return strings.Join(names, " and ") + " did not end: "
}

// noteProgress notes that the run may have recorded a step.
func (r *Run) noteProgress(res *semel.Result) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.progress = r.progress || !res.Replayed
}

// recordBack records that the saga has turned back, and returns the recorded failure.
func (r *Run) recordBack(ctx context.Context, f *semel.Failure) (*semel.Failure, error) {
	res, err := r.core.guard.Run(ctx, r.x.Step(backStep), func(context.Context, *semel.Execution) (store.Outcome, error) {
		body, err := json.Marshal(f)
		if len(body) > min(maxInput, r.core.driver.Options().MaxOutcome) {
			body, err = json.Marshal(&semel.Failure{Code: f.Code, Message: "the failure was too large to keep"})
		}
		return store.Outcome{Body: body}, err
	})
	switch {
	case errors.Is(err, semel.ErrNotKept): // it is recorded, without the failure
		return &semel.Failure{Code: "failure_not_kept", Message: "the failure was too large to keep"}, nil
	case err != nil:
		return nil, err
	}
	r.noteProgress(&res)
	f = &semel.Failure{}
	if err := json.Unmarshal(res.Body, f); err != nil {
		return nil, &handlererr.Stuck{Err: fmt.Errorf("the failure of the saga cannot be read: %w", err)}
	}
	return f, nil
}
