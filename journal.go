package semel

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/semel-go/semel/store"
)

// journal is what one run of a handler knows of the steps of its call. No goroutine holds mu
// while it waits for the store: another step of the call may hold the connection or file lock
// that the store needs, and may be waiting for mu.
type journal struct {
	x    *Execution // the run
	kind journalKind

	mu       sync.Mutex
	recorded stepSet            // in the store, and committed
	loaded   bool               // recorded has all that earlier attempts have recorded
	uses     map[string]stepUse // by this run
	ended    bool               // the run has ended, or lost its lease
}

// journalKind says what becomes of the steps of a run.
type journalKind uint8

const (
	stepsRecorded   journalKind = iota
	stepsInTx                   // they commit or roll back with the call, so nothing is recorded
	stepsUnrecorded             // the run has no record, or is a rerun
	stepsReadOnly               // the run is a reconciler's
)

// begin reserves the step's name for s. If the step is recorded, it returns that,
// and the step's function must not run.
func (j *journal) begin(ctx context.Context, s *runningStep) (*store.Step, error) {
	if err := j.mayBegin(ctx, s); err != nil {
		return nil, err
	}
	if err := j.reserve(s); err != nil {
		return nil, err
	}
	err := j.load(ctx, s)
	if err != nil {
		err = s.unavailable(ctx, err)
	} else {
		err = j.mayBegin(ctx, s) // reading may have taken long
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	var step *store.Step
	if err == nil {
		step, err = j.admit(s)
	}
	switch {
	case err != nil:
		j.use(s.name, s.before)
	case step != nil && s.seen.byName[s.name] != nil && s.before.state == stepUncommitted:
		j.use(s.name, stepUse{state: stepUncommitted}) // the transaction that sees it may have recorded it
	case step != nil:
		j.use(s.name, stepUse{state: stepUsed, outer: s.x.outer})
	}
	return step, err
}

// mayBegin returns an error if the run cannot begin a step now. It asks the clock, because
// in a process that was frozen the context ends some time after the process wakes.
func (j *journal) mayBegin(ctx context.Context, s *runningStep) error {
	j.mu.Lock()
	ended := j.ended
	j.mu.Unlock()
	switch r := j.x.renewal; {
	case ended:
		return s.x.failure(ErrLeaseLost, fmt.Errorf("step %q: the run of its call has ended", s.name))
	case ctx.Err() != nil && errors.Is(context.Cause(ctx), ErrLeaseLost):
		return s.x.failure(ErrLeaseLost, nil)
	case ctx.Err() != nil:
		return s.x.failure(ErrCanceled, context.Cause(ctx))
	case r != nil && !j.x.guard.heartbeat.holds(r):
		return s.x.failure(ErrLeaseLost, fmt.Errorf("step %q: the lease was not renewed in time", s.name))
	}
	return nil
}

// reserve takes the step's name, so that no other step of the run gets it.
func (j *journal) reserve(s *runningStep) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	switch u := j.uses[s.name]; {
	case u.state == stepRunning || u.state == stepUsed && u.outer == s.x.outer || s.tx == nil && j.recordedInTxOf(u, s):
		return s.usedTwice("")
	case j.kind == stepsInTx && j.recordedInTxOf(u, s):
		return s.usedTwice(", also after a rollback to a savepoint of your own")
	case u.state == stepInDoubt && s.x.policy == Park:
		return s.x.failure(ErrParked, fmt.Errorf("step %q failed in this run, and may have had its effect", s.name))
	default:
		s.before = u
	}
	j.use(s.name, stepUse{state: stepRunning})
	return nil
}

// recordedInTxOf reports whether a step is recorded in the transaction that s is in.
func (j *journal) recordedInTxOf(u stepUse, s *runningStep) bool {
	return u.state == stepUncommitted && u.x != nil && (j.kind == stepsInTx || u.x.outermostTxStep() == s.x.outermostTxStep())
}

// admit decides whether the step's function runs. It returns the step if it is recorded.
// The caller holds mu.
func (j *journal) admit(s *runningStep) (*store.Step, error) {
	if s.seen.byName[s.name] != nil && j.recordedInTxOf(s.before, s) { // otherwise a savepoint of the handler's was rolled back
		return nil, s.usedTwice("")
	}
	for _, known := range []*stepSet{&s.seen, &j.recorded} {
		if step := known.byName[s.name]; step != nil && s.before.state == stepUsed && !s.x.outer.isLaterRunOf(s.before.outer) {
			return nil, s.usedTwice("")
		} else if step != nil {
			return step, nil
		}
	}
	count, bytes, reserved := j.sizeWithout(s, countUncommitted)
	switch {
	case j.kind == stepsReadOnly:
		return nil, s.x.failure(ErrParked, fmt.Errorf("step %q is not recorded, and a reconciler starts none", s.name))
	case s.x.policy == Park && (s.before.state == stepMaybeRecorded || s.before.state == stepUncommitted && s.tx == nil):
		return nil, s.x.failure(ErrParked, fmt.Errorf("step %q ran in this run, and is not recorded", s.name))
	case j.kind == stepsRecorded && count >= store.MaxSteps:
		return nil, s.invalid("the call has %d steps already, and no more are allowed", store.MaxSteps)
	case j.kind == stepsRecorded && bytes+reserved+longestTombstone > store.MaxStepBytes:
		return nil, s.invalid("the results of the call's steps have, or may soon have, %d bytes; at most %d are allowed in all, so keep large results elsewhere, or run fewer steps at once", bytes+reserved, store.MaxStepBytes)
	}
	return nil, nil
}

// The last argument of sizeWithout: whether steps count whose transaction may be rolled back.
const countUncommitted, skipUncommitted = true, false

// sizeWithout counts the steps besides s that are recorded, run or, with countUncommitted, may
// be committed. bytes is the sum of their sizes without the results of those that run, which
// may need reserved bytes in addition. The caller holds mu.
func (j *journal) sizeWithout(s *runningStep, uncommitted bool) (count, bytes, reserved int) {
	count, bytes = len(j.recorded.byName), j.recorded.bytes
	for name, step := range s.seen.byName {
		if j.recorded.byName[name] == nil {
			count, bytes = count+1, bytes+step.Size()
		}
	}
	for name, u := range j.uses {
		switch {
		case name == s.name || s.seen.byName[name] != nil || j.recorded.byName[name] != nil:
		case u.state == stepRunning:
			least := (&store.Step{Name: name}).Size()
			count, bytes, reserved = count+1, bytes+least, reserved+longestTombstone-least
		case u.state == stepUncommitted && !uncommitted:
		case u.step != nil:
			count, bytes = count+1, bytes+u.step.Size()
		}
	}
	return count, bytes, reserved
}

// load reads the steps of the call, once. For a step in a transaction of its own it always
// reads there, which begins the transaction and checks the lease. Those steps belong to s
// alone, because the transaction may have recorded some of them, and may roll back.
func (j *journal) load(ctx context.Context, s *runningStep) error {
	from, known := j.x.guard.journal, &j.recorded
	switch {
	case j.kind == stepsUnrecorded:
		return nil
	case j.kind == stepsInTx:
		if from = j.x.txJournal; from == nil { // the record is new
			return nil
		}
	case s.tx != nil:
		from, known = s.tx.(store.Journal), &s.seen
	}
	if known == &j.recorded && j.isLoaded() && !s.before.needsRead() {
		return nil
	}
	steps, err := j.ask(ctx, s, from)
	j.mu.Lock()
	defer j.mu.Unlock()
	if err != nil {
		j.ended = j.ended || s.tx == nil && errors.Is(err, store.ErrLeaseLost) // a transaction may have an old snapshot
		return err
	}
	for i := range steps {
		known.add(&steps[i])
	}
	j.loaded = j.loaded || known == &j.recorded
	return nil
}

// ask reads the steps from a store or a transaction.
func (j *journal) ask(ctx context.Context, s *runningStep, from store.Journal) (steps []store.Step, err error) {
	read := func(ctx context.Context) (f store.Found, err error) {
		steps, err = from.Steps(ctx, j.x.lease)
		return f, err
	}
	if s.tx != nil { // a transaction ends with its first error, which says why: the read is not repeated
		_, err = read(ctx)
	} else {
		_, err = j.x.guard.ask(ctx, read)
	}
	for i := range steps {
		if cerr := checkDecrypted(&steps[i].Outcome); err == nil && cerr != nil {
			err = fmt.Errorf("step %q: %w", steps[i].Name, cerr)
		}
	}
	return steps, err
}

func (j *journal) isLoaded() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.loaded
}

// keepOrTombstone is the step, or its tombstone if the record has no room for its result. A step whose
// transaction may be rolled back does not count, so that it cannot cost another its result.
func (j *journal) keepOrTombstone(s *runningStep, step *store.Step) *store.Step {
	j.mu.Lock()
	defer j.mu.Unlock()
	_, bytes, reserved := j.sizeWithout(s, skipUncommitted)
	if bytes += step.Size(); j.kind == stepsRecorded && (bytes > j.maxResults() || bytes+reserved > store.MaxStepBytes) {
		step.Outcome = tombstone(step.Outcome)
	}
	return step
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
		j.recorded.add(s)
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
func (j *journal) end(s *runningStep, state stepState) {
	j.mu.Lock()
	defer j.mu.Unlock()
	use := stepUse{state: state, outer: s.x.outer}
	switch {
	case state == stepLost:
		j.ended = true
	case state == stepUncommitted:
		use.x, use.step = s.x, s.recorded
	case state == stepFree:
		use = s.before // an earlier use may still be in doubt
	case s.tx != nil:
		use.state = stepUncommitted
	}
	j.use(s.name, use)
	if s.tx != nil && state != stepUncommitted {
		j.undo(s.x)
	}
}

// undo notes that the steps in the step x are undone. The caller holds mu.
func (j *journal) undo(x *Execution) {
	for name, u := range j.uses {
		if u.state == stepUncommitted && u.x.isIn(x) {
			j.use(name, stepUse{state: stepUncommitted})
		}
	}
}

// close refuses steps that begin after the run of their call.
func (j *journal) close() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.ended = true
}
