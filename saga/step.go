package saga

import (
	"context"
	"errors"
	"fmt"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/handlererr"
	"github.com/semel-go/semel/store"
)

// Codes of the failures that Semel makes.
const (
	// CodeDeadline is the code of a saga that turned back at its deadline.
	CodeDeadline = "deadline_exceeded"
	// CodeNoEvent is the code with which Await ends if the event did not come in time.
	CodeNoEvent = "event_missing"
)

var (
	errPaused     = errors.New("saga: the run ends here; the saga goes on later")
	errTurnedBack = errors.New("saga: the saga has turned back, so that no step starts")
	errNoReturn   = errors.New("saga: its function panicked, or called runtime.Goexit")
)

// At tells the function of a step, or of a compensation, where it is.
type At struct {
	x       *semel.Execution
	step    string
	undo    bool
	inDoubt bool
}

// Key is the idempotency key to send to the other system. It is the same in every
// attempt. A compensation has another key than its step.
func (a At) Key() string {
	if a.undo {
		return a.x.DownstreamKey(a.step + undoPart)
	}
	return a.StepKey()
}

// StepKey is the Key that the step had. A compensation names by it what is to be undone.
func (a At) StepKey() string { return a.x.DownstreamKey(a.step) }

// InDoubt is true in a compensation if it is not known whether the step happened. The
// value of the step is the zero value then, and the compensation must also succeed if
// there is nothing to undo.
func (a At) InDoubt() bool { return a.inDoubt }

// Fence is the fencing token of the run. It grows with each claim of the saga, so that
// another system can refuse a process that was frozen.
func (a At) Fence() uint64 { return a.x.Fence() }

// StepOption changes a step.
type StepOption func(*stepOptions)

type stepOptions struct{ parked bool }

// Parked is for a step that must not be repeated after doubt: the other system does not
// recognise At.Key. If the process dies during the step, or the step returns an error
// that leaves open whether it happened, the saga is parked until an operator says what
// happened; nothing is undone before. That also holds if a later version has removed Parked.
// It costs one more write.
//
// Each attempt that had no effect (semel.NoEffect) stays in the record, which has room for about
// 440. So after 100 of them a worker's pause before the next is at least a twentieth of the time
// since the first, up to 24 h. A Do of the saga does not wait for the pause.
func Parked() StepOption { return func(o *stepOptions) { o.parked = true } }

// Step makes a step: do has the effect, and undo, which may be nil, undoes it if the
// saga turns back. When do has returned a result or a *semel.Failure, that is recorded,
// and a later attempt gets it without running do.
//
//   - A *semel.Failure (semel.Final) says that the step failed for good and has had no
//     effect. If Run returns it, the saga turns back.
//   - semel.NoEffect says that nothing happened. The step runs again in the next attempt.
//   - Any other error leaves open whether the step happened. It runs again in the next
//     attempt, with the same At.Key.
//
// The name is one of Definition.Steps, and each run uses it once. A compensation that needs
// the result of another step takes it from a variable of Run, which sets it in each attempt:
// to use the step again would leave the saga stuck.
func Step[T any](ctx context.Context, r *Run, name string, do func(ctx context.Context, at At) (T, error), undo func(ctx context.Context, at At, v T) error, options ...StepOption) (T, error) {
	return StepIn(ctx, r, r.core.guard, name, do, undo, options...)
}

// StepIn is Step in a transaction of a store's Atomic, such as sqlitestore.NewAtomic or
// pgstore.NewAtomic, over the database of the saga's store. do gets the transaction by
// the package's TxFrom. The writes of do and the record of the step commit together, so
// that the step has its effect exactly once. Keep do short: the lease of the saga is not
// renewed until the commit. undo does not run in a transaction.
func StepIn[T any](ctx context.Context, r *Run, atomic semel.Runner, name string, do func(ctx context.Context, at At) (T, error), undo func(ctx context.Context, at At, v T) error, options ...StepOption) (v T, err error) {
	if do == nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		return v, r.stick(fmt.Errorf("step %q: its function is nil", name))
	}
	var o stepOptions
	for _, option := range options {
		option(&o)
	}
	u := &use{name: name}
	if o.parked {
		u.marks = 2
	}
	if undo != nil {
		u.undo = func(ctx context.Context, at At) error { return undo(ctx, at, v) }
	}
	r.countRunning(1)
	defer r.countRunning(-1)
	if err := r.start(ctx, u, o.parked); err != nil {
		return v, err
	}
	if r.recorded[name] != nil { // nothing runs, so that there is no transaction
		atomic = r.core.guard
	}
	called, none, ended := false, false, false
	defer func() {
		if !ended && r.recorded[name] == nil {
			_ = r.finish(ctx, u, o.parked, true, errNoReturn)
		}
	}()
	result, err := semel.Do(ctx, atomic, r.step(name), func(ctx context.Context, _ *semel.Execution) (T, error) {
		called, none = true, false
		v, err := do(ctx, At{x: r.x, step: name})
		none = handlererr.IsNoEffect(handlererr.Readable(err))
		return v, err
	})
	v, ended = result, true
	if none {
		return result, r.finishUndone(ctx, u, o.parked, err)
	}
	return result, r.finish(ctx, u, o.parked, called, err)
}

// countRunning counts the steps that run, for decide.
func (r *Run) countRunning(n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.running += n
	if r.running == 0 {
		r.idle.Broadcast()
	}
}

// start notes the start of a step. If it returns an error, the step must not run.
func (r *Run) start(ctx context.Context, u *use, parked bool) error {
	begun := 0
	if err := r.reach(u, parked, &begun); err != nil {
		return err
	}
	if !parked || r.recorded[u.name] != nil {
		return nil
	}
	err := r.mark(ctx, fmt.Sprintf("%s%s%d", u.name, begunPart, begun+1))
	if err != nil {
		r.setState(u, noEffect)
	}
	return err
}

// reach notes that the definition has reached a step.
func (r *Run) reach(u *use, parked bool, begun *int) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	invalid := checkStep(u.name) // Run can make a name that begins as one of Steps with "/*"
	switch {
	case r.stuck != nil:
		return r.stuck
	case r.pausing:
		return errPaused
	case invalid != nil && r.back != nil: // it has not begun in an earlier run either
		return errTurnedBack
	case invalid != nil:
		return r.stick(invalid)
	case !r.rules.lists(u.name):
		return r.stick(fmt.Errorf("step %q is not in Steps of the definition; add it", u.name))
	case r.uses[u.name] != nil:
		return r.stick(fmt.Errorf("step %q is used twice in one run; give each step a name of its own, and keep its result in a variable for compensations", u.name))
	}
	r.uses[u.name] = u
	r.started = append(r.started, u)
	if r.recorded[u.name] != nil {
		return nil
	}
	for r.recorded[fmt.Sprintf("%s%s%d", u.name, nonePart, *begun+1)] != nil {
		*begun++
	}
	if r.recorded[fmt.Sprintf("%s%s%d", u.name, begunPart, *begun+1)] != nil { // Parked then, whatever it is now
		u.state = held
		return r.stick(fmt.Errorf("step %q began in an earlier attempt, and may have happened", u.name))
	}
	if r.back == nil && r.ending() != nil { // also if Run ignores the error
		u.state, r.pausing, r.pause = noEffect, true, 0
		return errPaused
	}
	switch {
	case r.back == nil && u.event && r.recorded[u.name+eventPart] != nil: // it records nothing
		return nil
	case r.back == nil:
		return r.checkRoom(u)
	}
	if parked { // it has not begun
		u.state = noEffect
	}
	return errTurnedBack
}

// stick ends the run: only an operator can say how the saga goes on. The caller holds mu.
func (r *Run) stick(err error) error {
	if r.stuck == nil {
		r.stuck = &handlererr.Stuck{Err: err}
	}
	return r.stuck
}

func (r *Run) setState(u *use, s useState) {
	r.mu.Lock()
	defer r.mu.Unlock()
	u.state = s
}

// mark records a step without a result.
func (r *Run) mark(ctx context.Context, name string) error {
	_, err := r.core.guard.Run(ctx, r.x.Step(name), func(context.Context, *semel.Execution) (store.Outcome, error) {
		return store.Outcome{}, nil
	})
	return err
}

// finish notes how a step ended. called says whether its function may have had its
// effect. If it was called, an ErrInvalid or ErrMismatch is of another call that it made.
func (r *Run) finish(ctx context.Context, u *use, parked, called bool, err error) error {
	_, failed := errors.AsType[*semel.Failure](err)
	switch {
	case errors.Is(err, semel.ErrNotKept) || !called && (errors.Is(err, semel.ErrInvalid) || errors.Is(err, semel.ErrMismatch)):
		r.mu.Lock()
		defer r.mu.Unlock()
		u.state = held
		if r.skips[u.name] != nil {
			return r.stick(wrongSkip(u.name, fmt.Errorf("has a result that step %q cannot have: %w", u.name, innermost(err))))
		}
		return r.stick(fmt.Errorf("step %q: its result cannot be kept or read, or the step is invalid: %w", u.name, err))
	case err == nil:
		r.setState(u, done)
	case failed && !errors.Is(err, semel.ErrOutcomeNotStored):
		r.setState(u, noEffect)
	case r.recorded[u.name] != nil:
		return r.cannotRead(err)
	case !called:
		return r.finishUndone(ctx, u, parked, err)
	case parked:
		r.mu.Lock()
		defer r.mu.Unlock()
		u.state = held
		return r.stick(fmt.Errorf("step %q may have happened: %w", u.name, err))
	default: // in doubt
		r.mu.Lock()
		defer r.mu.Unlock()
		r.unsure = r.unsure || errors.Is(err, semel.ErrInDoubt)
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.progress = r.progress || r.recorded[u.name] == nil
	return err
}

// finishUndone notes that a step has not happened. A Failure in err is of another call, and
// must not turn the saga back.
func (r *Run) finishUndone(ctx context.Context, u *use, parked bool, err error) error {
	r.setState(u, noEffect)
	if parked {
		r.unmark(ctx, u)
	}
	if _, failed := errors.AsType[*semel.Failure](err); failed {
		return errors.New(err.Error())
	}
	return err
}

// cannotRead notes that the lease was lost, the caller has left, or the store did not
// answer, when a recorded step was to be read.
func (r *Run) cannotRead(err error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.unread = err
	return err
}
