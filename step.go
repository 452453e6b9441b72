package semel

import (
	"context"
	"errors"
	"fmt"

	"github.com/semel-go/semel/internal/handlererr"
	"github.com/semel-go/semel/internal/protocol"
	"github.com/semel-go/semel/store"
)

// stepCall is what a Call of Execution.Step refers to.
type stepCall struct {
	parent *Execution
	name   string // within the call: of a step in a step "outer#inner"
}

// runStep runs a step, or returns what the parent's record has of it. If tx is not nil, the
// step is recorded in it. The parameter run calls (*runningStep).run or runIn. If runStep took
// the Handler itself, each Guard.Run would allocate memory for it, also of a call that is no step.
func (g *Guard) runStep(ctx context.Context, tx store.Tx, call Call, run func(s *runningStep, handlerCtx context.Context) (Result, stepState, error)) (Result, error) {
	s, res, err := g.beginStep(ctx, &call, tx)
	if s == nil {
		return res, err
	}
	defer s.abandon(ctx)
	handlerCtx, cancel := s.x.handlerContext(ctx)
	defer cancel(nil)
	res, use, err := run(s, handlerCtx)
	s.end(use)
	return res, handlererr.HideNoEffect(err)
}

// runningStep is one use of a step in one run of its call.
type runningStep struct {
	guard       *Guard
	x           *Execution
	journal     *journal
	name        string
	fingerprint store.Fingerprint
	tx          store.Tx    // nil: outside of one
	before      stepUse     // the use of the name before this one
	seen        stepSet     // the recorded steps that its transaction sees
	recorded    *store.Step // in its transaction; nil: nothing
	ended       bool
}

// stepUse is what a run has done with a step's name. The zero stepUse: nothing.
type stepUse struct {
	state stepState
	// x is the run of a step that is stepUncommitted; nil: the transaction was rolled back, or
	// nobody knows.
	x *Execution
	// step is what a step that is stepUncommitted or stepUsed has recorded; nil: not known.
	step *store.Step
	// outer is the run of the step around one that is stepUsed; nil: none. If that step runs
	// again, it uses the same name, and gets what is recorded.
	outer *Execution
}

// use notes what the run has done with a step's name. The caller holds mu.
func (j *journal) use(name string, u stepUse) {
	if j.uses == nil {
		j.uses = map[string]stepUse{}
	}
	j.uses[name] = u
}

type stepState uint8

const (
	stepFree          stepState = iota
	stepRunning                 // its function runs now, or is about to
	stepUsed                    // it is recorded
	stepInDoubt                 // outside of a transaction its function failed, and may have had its effect
	stepMaybeRecorded           // outside of a transaction it ran, and may be recorded: look again
	stepUncommitted             // it is recorded if a transaction has committed: look again
	stepLost                    // the run has lost its lease
)

// stepSet is recorded steps.
type stepSet struct {
	byName map[string]*store.Step
	bytes  int // the sum of their sizes
}

func (s *stepSet) add(step *store.Step) {
	if s.byName == nil {
		s.byName = map[string]*store.Step{}
	}
	if s.byName[step.Name] == nil {
		s.byName[step.Name] = step
		s.bytes += step.Size()
	}
}

// needsRead reports whether only the store knows if the step is recorded.
func (u stepUse) needsRead() bool {
	return u.state == stepMaybeRecorded || u.state == stepUncommitted || u.state == stepUsed
}

// beginStep makes the step ready to run. It returns nil if the step's function must
// not run: the step ends with the result and the error.
func (g *Guard) beginStep(ctx context.Context, call *Call, tx store.Tx) (*runningStep, Result, error) {
	parent, name := call.step.parent, call.step.name
	s := &runningStep{guard: g, x: parent.child(ctx, g, name), journal: parent.journal, name: name, fingerprint: g.fingerprint(&call.Payload), tx: tx}
	s.x.inTx = tx != nil
	if err := s.journal.checkRunner(g, tx); err != nil {
		return nil, Result{}, s.invalid("%w", err)
	}
	recorded, err := s.journal.begin(ctx, s)
	if err != nil {
		return nil, Result{}, s.refuse(ctx, err)
	}
	if recorded != nil {
		res, err := s.replay(ctx, recorded, call)
		return nil, res, err
	}
	return s, Result{}, nil
}

var errNoJournal = errors.New("the store keeps no steps: it does not implement store.Journal, as memstore, sqlitestore, pgstore, redisstore and dynamostore do; make the step a call of its own instead, with a key of x.DownstreamKey")

// checkRunner refuses a Runner that cannot run the steps of this run.
func (j *journal) checkRunner(g *Guard, tx store.Tx) error {
	switch {
	case j == nil:
		return errors.New("the Execution was not made by Semel")
	case j.kind == stepsInTx && tx == nil:
		return errors.New("the call runs in a transaction, and so must its steps: run the step by the store's Atomic, with the handler's context; work that must outlive a rollback is a call of its own, with a key of x.DownstreamKey")
	case tx != nil && (j.kind == stepsRecorded || j.kind == stepsReadOnly):
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

func (s *runningStep) end(state stepState) {
	s.ended = true
	s.journal.end(s, state)
}

// abandon ends a step whose function panicked or called runtime.Goexit.
func (s *runningStep) abandon(ctx context.Context) {
	if !s.ended {
		s.end(stepInDoubt)
		s.guard.observeEnd(ctx, s.x, EventReleased, errPanicked)
	}
}

// run runs the step's function and records how it ended, in one write.
func (s *runningStep) run(ctx, handlerCtx context.Context, fn Handler) (Result, stepState, error) {
	o, err := fn(handlerCtx, s.x)
	err = handlerError(err)
	step, kind, err := s.outcome(o, err)
	if step == nil {
		s.guard.observeEnd(ctx, s.x, kind, err)
		if handlererr.IsNoEffect(err) {
			return Result{}, stepFree, err
		}
		return Result{}, stepInDoubt, err
	}
	res, use := Result{Outcome: o, codecs: s.guard.options.Codecs}, stepUsed
	if step.Failed {
		res = Result{}
	}
	switch recordErr := s.journal.record(ctx, step); {
	case errors.Is(recordErr, store.ErrLeaseLost):
		res, use, kind, err = Result{}, stepLost, EventNotStored, s.x.failure(ErrLeaseLost, textOnly(err))
	case recordErr != nil:
		use, kind, err = stepMaybeRecorded, EventNotStored, s.x.failure(ErrOutcomeNotStored, errors.Join(recordErr, err))
	}
	s.guard.observeEnd(ctx, s.x, kind, err)
	return res, use, err
}

// outcome is the step to record, or nil if nothing of it is kept.
func (s *runningStep) outcome(o store.Outcome, err error) (step *store.Step, kind string, _ error) {
	step = &store.Step{Name: s.name, Fingerprint: s.fingerprint, Attempt: s.x.attempt}
	if err == nil {
		step.Outcome = s.guard.limit(o)
		return s.journal.keepOrTombstone(s, step), EventExecuted, nil
	}
	f, ok := errors.AsType[*Failure](err)
	if !ok || f == nil || handlererr.IsNoEffect(err) {
		return nil, EventReleased, err
	}
	f = f.validUTF8()
	step.Outcome, step.Failed = s.guard.failed(f).Outcome, true
	return s.journal.keepOrTombstone(s, step), EventFailed, f
}

// replay returns what is recorded.
func (s *runningStep) replay(ctx context.Context, recorded *store.Step, call *Call) (Result, error) {
	if err := s.compare(recorded, call); err != nil {
		return Result{}, s.refuse(ctx, err)
	}
	if recorded.Failed {
		err := failureOf(recorded.Outcome)
		if errors.Is(err, store.ErrCorrupt) {
			return Result{}, s.refuse(ctx, s.x.failure(store.ErrCorrupt, err))
		}
		s.observeReplay(ctx, err)
		return Result{Replayed: true}, err
	}
	res := Result{Outcome: recorded.Outcome, Replayed: true, codecs: s.guard.options.Codecs}
	s.observeReplay(ctx, nil)
	if recorded.Outcome.Gone {
		return res, s.x.failure(ErrNotKept, fmt.Errorf("step %q", s.name))
	}
	return res, nil
}

// observeReplay reports that a recorded step ended without a run.
func (s *runningStep) observeReplay(ctx context.Context, err error) {
	s.guard.observe(ctx, Event{Kind: EventReplayed, EndsCall: true, Policy: s.x.policy, Attempt: s.x.attempt, Err: err}, s.x.key)
}

// compare refuses a recorded step that had another payload.
func (s *runningStep) compare(recorded *store.Step, call *Call) error {
	mine := s.fingerprint
	if recorded.Fingerprint.KeyID != mine.KeyID {
		if secret, ok := s.guard.secret(recorded.Fingerprint.KeyID); ok {
			mine = call.Payload.fingerprint(secret)
		}
	}
	switch {
	case !recorded.Fingerprint.Comparable(mine):
		return s.x.failure(ErrUnverifiable, s.guard.unverifiable(fmt.Sprintf("step %q", s.name), recorded.Fingerprint))
	case !recorded.Fingerprint.Equal(mine):
		return s.x.failure(ErrMismatch, fmt.Errorf("step %q is recorded with another payload; a new payload needs a new name", s.name))
	}
	return nil
}

// refuse ends a step whose function does not run.
func (s *runningStep) refuse(ctx context.Context, err error) error {
	s.guard.observe(ctx, Event{Kind: EventRefused, EndsCall: true, Policy: s.x.policy, Attempt: s.x.attempt, Err: err}, s.x.key)
	return err
}

func (s *runningStep) unavailable(ctx context.Context, cause error) error {
	switch {
	case ctx.Err() != nil:
		return s.x.failure(ErrCanceled, cause)
	case errors.Is(cause, store.ErrLeaseLost):
		return s.x.failure(ErrLeaseLost, cause)
	case errors.Is(cause, store.ErrCorrupt):
		return s.x.failure(store.ErrCorrupt, cause)
	case errors.Is(cause, store.ErrChanged):
		return s.x.failure(store.ErrChanged, cause)
	}
	return s.x.failure(ErrUnavailable, cause)
}

func (s *runningStep) invalid(format string, args ...any) error {
	return invalid(s.x.key.Operation, fmt.Errorf("step %q: "+format, append([]any{s.name}, args...)...))
}

func (s *runningStep) usedTwice(also string) error {
	return s.invalid("this run has used the name already; give each use of a step a name of its own%s", also)
}

// recordStep sends a step until the store answers or SettleTimeout has passed, as
// Guard.settle does.
func (g *Guard) recordStep(ctx context.Context, l store.Lease, s *store.Step) error {
	ctx, cancel := g.settleContext(ctx)
	defer cancel()
	return g.sendUntil(ctx, &s.Outcome, func(ctx context.Context) error { return g.journal.RecordStep(ctx, l, *s) })
}

// longestTombstone is the most bytes of a step whose result is not kept.
const longestTombstone = 2 << 10

// maxResults is the size of the record's steps beyond which no result is kept.
func (j *journal) maxResults() int {
	if protocol.IsSaga(j.x.lease.Key) {
		return store.MaxStepBytes - protocol.SagaReserveBytes
	}
	return store.MaxStepBytes
}
