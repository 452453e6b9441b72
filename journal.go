package semel

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/semel-go/semel/store"
)

// journal is what one run of a handler knows of the steps of its call.
type journal struct {
	x    *Execution // the run
	kind journalKind

	mu     sync.Mutex
	loaded bool
	steps  map[string]*store.Step // the steps in the store, if loaded
	bytes  int                    // of the steps
	uses   map[string]stepUse     // by this run
	ended  bool                   // the run has ended, or lost its lease
}

// journalKind says what becomes of the steps of a run.
type journalKind uint8

const (
	stepsRecorded   journalKind = iota
	stepsInTx                   // they commit or roll back with the call, so nothing is recorded
	stepsUnrecorded             // the run has no record, or is a rerun
	stepsReadOnly               // the run is a reconciler's
)

// stepUse is what a run has done with a step's name. The zero stepUse: nothing.
type stepUse uint8

const (
	stepFree    stepUse = iota
	stepRunning         // its function runs now
	stepUsed            // it is recorded
	stepInDoubt         // its function failed, and may have had its effect
	stepUnsure          // it may be recorded: look again
	stepLost            // the run has lost its lease
)

const (
	firstResend   = 10 * time.Millisecond
	longestResend = time.Second
)

var errNoJournal = errors.New("the store keeps no steps: it does not implement store.Journal, as memstore, sqlitestore, pgstore and redisstore do; make the step a call of its own instead, with a key of x.DownstreamKey")

// checkRunner refuses a Runner that cannot run the steps of this run.
func (j *journal) checkRunner(g *Guard, tx store.Tx) error {
	switch {
	case j == nil:
		return errors.New("the Execution was not made by Semel")
	case j.kind == stepsInTx && tx == nil:
		return errors.New("the call runs in a transaction, and so must its steps: run the step by the store's Atomic, with the handler's context; work that must outlive a rollback is a call of its own, with a key of x.DownstreamKey")
	case j.kind == stepsRecorded && tx != nil:
		if _, ok := tx.(store.Journal); !ok {
			return fmt.Errorf("its transaction: %w", errNoJournal)
		}
	case j.kind == stepsRecorded && g != j.x.guard:
		return errors.New("run it by the Guard that runs its call, or by a store's Atomic")
	case (j.kind == stepsRecorded || j.kind == stepsReadOnly) && g.journal == nil:
		return errNoJournal
	}
	return nil
}

// begin reserves the step's name for s. If the step is recorded, it returns that,
// and the step's function must not run.
func (j *journal) begin(ctx context.Context, s *runningStep) (*store.Step, error) {
	if err := ctx.Err(); err != nil {
		if cause := context.Cause(ctx); errors.Is(cause, ErrLeaseLost) {
			return nil, s.x.failure(ErrLeaseLost, nil)
		}
		return nil, s.x.failure(ErrCanceled, context.Cause(ctx))
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	invalid := func(format string, args ...any) error {
		return invalid(s.x.key.Operation, fmt.Errorf("step %q: "+format, append([]any{s.name}, args...)...))
	}
	use := j.uses[s.name]
	switch {
	case j.ended:
		return nil, s.x.failure(ErrLeaseLost, fmt.Errorf("step %q: the run of its call has ended", s.name))
	case use == stepRunning || use == stepUsed:
		return nil, invalid("this run has used the name already; give each step of a call a name of its own")
	case use == stepInDoubt && s.x.policy == Park && s.tx == nil:
		return nil, s.x.failure(ErrParked, fmt.Errorf("step %q failed in this run, and may have had its effect", s.name))
	case use == stepUnsure:
		j.loaded = false
	}
	if err := j.load(ctx, s); err != nil {
		return nil, s.unavailable(ctx, err)
	}
	if step := j.steps[s.name]; step != nil {
		j.use(s.name, stepUsed)
		return step, nil
	}
	switch {
	case j.kind == stepsReadOnly:
		return nil, s.x.failure(ErrParked, fmt.Errorf("step %q is not recorded, and a reconciler starts none", s.name))
	case use == stepUnsure && s.x.policy == Park && s.tx == nil:
		return nil, s.x.failure(ErrParked, fmt.Errorf("step %q ran in this run, and is not recorded", s.name))
	case j.kind == stepsRecorded && j.count() >= store.MaxSteps:
		return nil, invalid("the call has %d steps already, and no more are allowed", store.MaxSteps)
	case j.kind == stepsRecorded && j.bytes+j.running()*longestTombstone+longestTombstone > store.MaxStepBytes:
		return nil, invalid("the results of the call's steps have %d bytes; at most %d are allowed in all, so keep large results elsewhere", j.bytes, store.MaxStepBytes)
	}
	j.use(s.name, stepRunning)
	return nil, nil
}

// longestTombstone is the most bytes of a step whose result is not kept.
const longestTombstone = 2 << 10

func (j *journal) use(name string, u stepUse) {
	if j.uses == nil {
		j.uses = map[string]stepUse{}
	}
	j.uses[name] = u
}

// running is how many steps run now.
func (j *journal) running() (n int) {
	for _, u := range j.uses {
		if u == stepRunning {
			n++
		}
	}
	return n
}

// count is how many steps are recorded or run now.
func (j *journal) count() int { return len(j.steps) + j.running() }

// load reads the steps of the call, once. The caller holds mu. In a transaction it
// always reads there, which begins the transaction and checks the lease.
func (j *journal) load(ctx context.Context, s *runningStep) error {
	from := j.x.guard.journal
	switch {
	case j.kind == stepsUnrecorded:
		return nil
	case j.kind == stepsInTx:
		if from = j.x.txJournal; from == nil { // the record is new
			return nil
		}
	case s.tx != nil:
		from, j.loaded = s.tx.(store.Journal), false
	}
	if j.loaded {
		return nil
	}
	if s.tx != nil { // a transaction ends with its first error, which says why: the read is not repeated
		steps, err := from.Steps(ctx, j.x.lease)
		if err == nil {
			err = j.set(steps)
		}
		return err
	}

	var steps []store.Step
	_, err := j.x.guard.ask(ctx, func(ctx context.Context) (f store.Found, err error) {
		steps, err = from.Steps(ctx, j.x.lease)
		return f, err
	})
	if err != nil {
		j.ended = j.ended || errors.Is(err, store.ErrLeaseLost)
		return err
	}
	return j.set(steps)
}

// set notes the steps that were read. The caller holds mu.
func (j *journal) set(steps []store.Step) error {
	for i := range steps {
		if err := checkDecrypted(&steps[i].Outcome); err != nil {
			return fmt.Errorf("step %q: %w", steps[i].Name, err)
		}
	}
	j.steps, j.bytes, j.loaded = make(map[string]*store.Step, len(steps)), 0, true
	for i := range steps {
		j.add(&steps[i])
	}
	return nil
}

// add notes a step that is in the store. The caller holds mu.
func (j *journal) add(s *store.Step) {
	if j.steps == nil {
		j.steps = map[string]*store.Step{}
	}
	j.steps[s.Name] = s
	j.bytes += s.Size()
}

// fit is the step, or its tombstone if the record has no room for its result.
func (j *journal) fit(s *store.Step) *store.Step {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.kind == stepsRecorded && j.bytes+(j.running()-1)*longestTombstone+s.Size() > store.MaxStepBytes {
		s.Outcome = tombstone(s.Outcome)
	}
	return s
}

// record writes a step to the store.
func (j *journal) record(ctx context.Context, s *store.Step) error {
	if j.kind != stepsRecorded {
		return nil
	}
	err := j.x.guard.recordStep(ctx, j.x.lease, s)
	if err == nil {
		j.mu.Lock()
		defer j.mu.Unlock()
		j.add(s)
	}
	return err
}

// recordIn writes a step in a transaction.
func (j *journal) recordIn(ctx context.Context, tx store.Tx, s *store.Step) error {
	if j.kind != stepsRecorded {
		return nil
	}
	in := tx.(store.Journal)
	err := in.RecordStep(ctx, j.x.lease, *s)
	if errors.Is(err, store.ErrTooLarge) {
		s.Outcome = tombstone(s.Outcome)
		err = in.RecordStep(ctx, j.x.lease, *s)
	}
	return err
}

// end notes how a use of a step ended.
func (j *journal) end(s *runningStep, u stepUse) {
	j.mu.Lock()
	defer j.mu.Unlock()
	switch {
	case u == stepLost:
		j.ended = true
	case s.tx != nil && j.kind == stepsInTx && u == stepUnsure: // it commits or rolls back with its call
		u = stepUsed
	case s.tx != nil && u == stepInDoubt: // its writes are undone
		u = stepUnsure
	}
	j.use(s.name, u)
}

// close refuses steps that begin after the run of their call.
func (j *journal) close() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.ended = true
}
