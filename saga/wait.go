package saga

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/handlererr"
	"github.com/semel-go/semel/internal/retry"
	"github.com/semel-go/semel/store"
)

// The steps that Sleep and Await record.
const (
	eventPart = ":event" // the event of the step before it has come
	untilPart = ":until" // until when Await waits
	overPart  = ":over"  // the sleep of the step before it is over
)

// ErrEnded says that a saga cannot take an event: it has ended, or does not wait for the
// event any more.
var ErrEnded = errors.New("saga: has ended, or does not wait for this event any more")

// Sleep lets the saga go on after d, which counts from the first time that the saga
// reaches this point. Meanwhile no process is busy with it. If Sleep returns an error,
// Run must return it.
func Sleep(ctx context.Context, r *Run, name string, d time.Duration) error {
	u := &use{name: name, state: noEffect, marks: 1}
	if err := r.reach(u, false, new(int)); err != nil {
		return err
	}
	if r.recorded[name+overPart] != nil {
		r.setState(u, done)
		return nil
	}
	left, err := r.timeLeft(ctx, name, d)
	switch {
	case err != nil:
		return err
	case left > 0 || r.back != nil:
		return r.waitFor(left)
	}
	// Recorded, so that a clock that is set back does not hide a later step.
	if err = r.mark(ctx, name+overPart); err == nil {
		r.setState(u, done)
	}
	return err
}

// timeLeft is the time until d after the step was first made.
func (r *Run) timeLeft(ctx context.Context, name string, d time.Duration) (time.Duration, error) {
	res, err := r.core.guard.Run(ctx, r.step(name), func(context.Context, *semel.Execution) (store.Outcome, error) {
		return store.Outcome{Body: strconv.AppendInt(nil, store.Micros(r.driver.Now().Add(d)), 10)}, nil
	})
	if err != nil {
		return 0, r.ifRecorded(name, err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.progress = r.progress || !res.Replayed
	micros, err := strconv.ParseInt(string(res.Body), 10, 64)
	switch {
	case r.skips[name] != nil:
		return 0, r.stick(wrongSkip(name, errors.New("is of a sleep, which cannot be skipped")))
	case err != nil:
		return 0, r.stick(fmt.Errorf("step %q is recorded, but not by a sleep: did a deploy change what it is?", name))
	}
	return store.Time(micros).Sub(r.driver.Now()), nil
}

// ifRecorded notes an error of a step that is recorded.
func (r *Run) ifRecorded(name string, err error) error {
	switch {
	case r.recorded[name] == nil:
		return err
	case !errors.Is(err, semel.ErrNotKept):
		return r.cannotRead(err)
	case r.back != nil: // no run went on from here
		return errTurnedBack
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	step, _, _ := strings.Cut(name, ":")
	return r.stick(fmt.Errorf("step %q: the record had no room for its event or its time", step))
}

// waitFor ends the run. The saga goes on after d at the latest.
func (r *Run) waitFor(d time.Duration) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.back != nil { // no run went on from here
		return errTurnedBack
	}
	if !r.pausing || d < r.pause {
		r.pausing, r.pause = true, d
	}
	return errPaused
}

// Await waits for an event that Send delivers to this saga, and returns its value.
// Meanwhile no process is busy with the saga. After within, if that is not zero, Await
// ends with a *semel.Failure of CodeNoEvent, and a later event is refused. If Await
// returns another error, Run must return it.
func Await[T any](ctx context.Context, r *Run, name string, within time.Duration) (v T, err error) {
	u := &use{name: name, state: noEffect, marks: 1, event: true}
	if err := r.reach(u, false, new(int)); err != nil && (!errors.Is(err, errTurnedBack) || r.recorded[name+eventPart] == nil) {
		return v, err
	}
	if r.recorded[name] == nil && r.recorded[name+eventPart] != nil {
		return await[T](ctx, r, u, name+eventPart, nil)
	}
	left := time.Duration(0)
	if r.recorded[name] == nil {
		if left = patience; within > 0 {
			if left, err = r.timeLeft(ctx, name+untilPart, within); err != nil {
				return v, err
			}
		}
	}
	if left > 0 {
		return v, r.waitFor(left)
	}
	return await[T](ctx, r, u, name, &semel.Failure{Code: CodeNoEvent, Message: fmt.Sprintf("the event %q did not come within %v", name, within)})
}

// await returns a recorded event, or records that it did not come.
func await[T any](ctx context.Context, r *Run, u *use, step string, missing *semel.Failure) (v T, err error) {
	res, err := r.core.guard.Run(ctx, r.step(step), func(context.Context, *semel.Execution) (store.Outcome, error) {
		return store.Outcome{}, missing
	})
	_, missed := errors.AsType[*semel.Failure](err)
	if err != nil && !missed {
		return v, r.ifRecorded(step, err)
	}
	if err == nil {
		err = res.Decode(&v)
	}
	if err == nil || missed {
		r.setState(u, done)
	}
	if err != nil && !missed && res.Replayed {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.skips[step] != nil {
			return v, r.stick(wrongSkip(step, fmt.Errorf("has a result that the event of step %q cannot have: %w", step, innermost(err))))
		}
		return v, r.stick(fmt.Errorf("the event of step %q cannot be read: %w", step, err))
	}
	return v, err
}

// Send delivers an event to a saga that awaits it, or will. v becomes the value that
// Await returns. Each event of a saga counts once: the first value stays, and another
// Send of the event is no error. While a run of the saga goes on, Send waits until it
// ends, also by an error, or ctx does.
//
// store.ErrNotFound: no such saga has started. ErrEnded: the event came too late.
// ErrInvalid: v is larger than an input may be, or does not fit into the record, or cannot
// be encoded. semel.ErrParked: the saga is stuck, and the event is not recorded; send it again
// after an operator has decided.
func (s *Saga[In, Out]) Send(ctx context.Context, tenant, id, event string, v any) error {
	fail := func(reason, cause error) error {
		return &semel.Error{Reason: reason, Operation: s.name, Cause: cause}
	}
	if err := checkStep(event); err != nil || !s.rules.lists(event) {
		return fail(semel.ErrInvalid, errors.Join(fmt.Errorf("event %q: must be one of Steps of the definition", event), err))
	}
	f, err := s.get(ctx, s.key(tenant, id))
	if errors.Is(err, store.ErrNotFound) {
		return fail(store.ErrNotFound, nil)
	} else if err != nil {
		return fail(semel.ErrUnavailable, err)
	}
	call := semel.Call{Operation: s.name, Tenant: tenant, Key: id, Payload: semel.NoPayload(), Wait: patience}
	kept := false
	var r *Run
	canCount := func(ctx context.Context, x *semel.Execution) error {
		r = newRun(&s.core, &s.rules, x)
		if err := r.load(ctx); err != nil {
			return r.interrupted(err)
		}
		switch {
		case r.recorded[inputStep] == nil:
			return &handlererr.Pause{NothingRecorded: true, Err: fail(store.ErrNotFound, nil)}
		case r.recorded[event] != nil || r.recorded[backStep] != nil && r.recorded[event+eventPart] == nil:
			return &handlererr.Pause{NoAttempt: true, Attempt: r.attempts(), Err: fail(ErrEnded, nil)}
		case r.recorded[event+eventPart] != nil: // so that a saga that waits for its next attempt goes on waiting
			kept = true
			return &handlererr.Pause{NoAttempt: true, Attempt: r.attempts()}
		}
		return nil
	}
	record := func(ctx context.Context, x *semel.Execution) (store.Outcome, error) {
		_, err := s.guard.Run(ctx, x.Step(event+eventPart), func(context.Context, *semel.Execution) (store.Outcome, error) {
			o, err := r.driver.Encode(v)
			if err == nil {
				err = r.checkSize("event", len(o.Body))
			}
			if err != nil {
				err = fail(semel.ErrInvalid, err)
			}
			return o, err
		})
		kept = err == nil
		return store.Outcome{}, &handlererr.Pause{NoAttempt: true, Attempt: r.attempts(), Err: err}
	}
	for again := true; again; {
		_, err = s.visit(ctx, call, f.Record.Created, store.Owner{}, canCount, record)
		_, claimed := errors.AsType[*handlererr.Pause](err)
		// The run that Send has waited for may have failed.
		again = !claimed && (errors.Is(err, semel.ErrReleased) || errors.Is(err, semel.ErrInProgress) && retry.Pause(ctx, look))
	}
	if kept {
		s.nudgeWorker()
		return nil
	}
	if pause, ok := errors.AsType[*handlererr.Pause](err); ok {
		return pause.Err
	}
	if _, failed := errors.AsType[*semel.Failure](err); failed || err == nil {
		err = fail(ErrEnded, nil)
	}
	return err
}
