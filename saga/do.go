package saga

import (
	"context"
	"errors"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/handlererr"
	"github.com/semel-go/semel/internal/retry"
	"github.com/semel-go/semel/store"
)

const (
	// patience is how long a caller waits for a run in another process. Its context
	// ends the wait earlier.
	patience = 100 * 365 * 24 * time.Hour
	// look is how often Do looks whether a saga that waits has gone on elsewhere.
	look = time.Second
)

// Do runs the saga with this id to its end, here, and returns its result. A duplicate
// gets the kept result, or waits for the run in another process. Sleeps and awaited
// events are waited for.
//
// The error is the *semel.Failure with which the saga turned back, after all
// compensations have run; semel.ErrParked if the saga is stuck until an operator decides;
// or another error, after which the saga has not ended: a worker goes on with it, and so
// does the same call. ErrMismatch: the id was used with another input.
func (s *Saga[In, Out]) Do(ctx context.Context, tenant, id string, in In) (out Out, err error) {
	call := semel.Call{Operation: s.name, Tenant: tenant, Key: id, Payload: semel.JSON(in), Wait: patience}
	for {
		var fence uint64
		res, err := s.visit(ctx, call, time.Time{}, store.Owner{}, nil, func(run context.Context, x *semel.Execution) (store.Outcome, error) {
			fence = x.Fence()
			return s.run(ctx, run, 0, x, &in)
		})
		pause, paused := errors.AsType[*handlererr.Pause](err)
		switch {
		case err == nil:
			err = res.Decode(&out)
			if err != nil {
				err = &semel.Error{Reason: semel.ErrNotKept, Operation: s.name, Cause: err}
			}
			return out, err
		case paused && pause.Err == nil:
			if err := s.waitUntil(ctx, s.key(tenant, id), fence, pause.Wait); err != nil {
				return out, err
			}
		case paused:
			return out, handlererr.HideNoEffect(pause.Err) // NoEffect in it speaks of one step
		case errors.Is(err, semel.ErrInProgress) || errors.Is(err, semel.ErrReleased):
			if !retry.Pause(ctx, look) {
				return out, &semel.Error{Reason: semel.ErrCanceled, Operation: s.name, Cause: context.Cause(ctx)}
			}
		default:
			return out, err
		}
	}
}

// waitUntil returns when a saga is due or somebody else has claimed it.
func (c *core) waitUntil(ctx context.Context, k store.Key, fence uint64, wait time.Duration) error {
	for left := wait; ; left -= look {
		timer := time.NewTimer(min(max(left, 0), look))
		select {
		case <-ctx.Done():
			timer.Stop()
			return &semel.Error{Reason: semel.ErrCanceled, Operation: c.name, Cause: context.Cause(ctx)}
		case <-timer.C:
		}
		f, err := c.get(ctx, k)
		if left <= look || err == nil && f.Record.Fence != fence || errors.Is(err, store.ErrNotFound) {
			return nil
		}
	}
}

// Start keeps the saga and its input, and returns at once: a worker runs it (Work). A
// duplicate of a saga that was started, or has ended, is no error. ErrMismatch: the id
// was used with another input. ErrInProgress: another Start of it has not kept the input
// yet; start it again, after RetryAfter of the *semel.Error if its process has died.
func (s *Saga[In, Out]) Start(ctx context.Context, tenant, id string, in In) error {
	call := semel.Call{Operation: s.name, Tenant: tenant, Key: id, Payload: semel.JSON(in)}
	var r *Run
	var unread error
	unchanged := func(x *semel.Execution) error {
		return &handlererr.Pause{NoAttempt: true, Attempt: max(0, x.Attempt()-1)}
	}
	isStarted := func(ctx context.Context, x *semel.Execution) error {
		r = newRun(&s.core, &s.rules, x)
		if unread = r.load(ctx); unread == nil && r.recorded[inputStep] != nil {
			return unchanged(x) // so that a saga that waits for its next attempt goes on waiting
		}
		return nil
	}
	_, err := s.visit(ctx, call, time.Time{}, store.Owner{}, isStarted, func(ctx context.Context, x *semel.Execution) (store.Outcome, error) {
		if unread != nil {
			return store.Outcome{}, r.interrupted(unread)
		}
		if _, err := s.input(ctx, r, &in); err != nil {
			return store.Outcome{}, r.interrupted(err)
		}
		return store.Outcome{}, unchanged(x)
	})
	if pause, ok := errors.AsType[*handlererr.Pause](err); ok {
		err = pause.Err
	}
	_, failed := errors.AsType[*semel.Failure](err)
	switch {
	case failed || errors.Is(err, semel.ErrParked) || errors.Is(err, semel.ErrNotKept):
		return nil
	case errors.Is(err, semel.ErrInProgress):
		if begun, readErr := s.begun(ctx, s.key(tenant, id)); readErr != nil || !begun {
			return errors.Join(err, readErr)
		}
		return nil
	}
	s.nudgeWorker()
	return err
}

// begun reports whether the input of a saga is kept.
func (c *core) begun(ctx context.Context, k store.Key) (bool, error) {
	f, err := c.get(ctx, k)
	if err != nil {
		return false, err
	}
	journal, _ := store.As[store.Journal](c.store)
	var steps []store.Step
	err = retry.Ask(ctx, storeTimeout, func(ctx context.Context) (err error) {
		steps, err = journal.Steps(ctx, f.Record.Lease())
		return err
	})
	if errors.Is(err, store.ErrLeaseLost) {
		return false, nil // it has changed hands: ask again
	}
	for i := range steps {
		if steps[i].Name == inputStep {
			return true, nil
		}
	}
	return false, err
}

// get reads the record of a saga. An expired record counts as absent.
func (c *core) get(ctx context.Context, k store.Key) (f store.Found, err error) {
	err = retry.Ask(ctx, storeTimeout, func(ctx context.Context) (err error) {
		f, err = c.store.Get(ctx, k)
		return err
	})
	if err == nil && f.Record.Expired(f.Now) {
		err = store.ErrNotFound
	}
	return f, err
}

// maxInput is the most bytes of an input or an event. They count for store.MaxStepBytes.
const maxInput = 256 << 10

// input returns the input of the saga: the recorded one or, if there is none, in, after
// it has been recorded. If both are missing, the saga was never acknowledged.
func (s *Saga[In, Out]) input(ctx context.Context, r *Run, in *In) (v In, err error) {
	if r.recorded[inputStep] == nil && in == nil {
		return v, &handlererr.Pause{NothingRecorded: true}
	}
	res, err := s.guard.Run(ctx, r.x.Step(inputStep), func(context.Context, *semel.Execution) (store.Outcome, error) {
		o, err := r.driver.Encode(in)
		if err == nil {
			err = r.checkSize("input", len(o.Body))
		}
		return o, err
	})
	if err == nil {
		err = res.Decode(&v)
	}
	if err != nil && r.recorded[inputStep] == nil && !errors.Is(err, semel.ErrOutcomeNotStored) {
		return v, &handlererr.Pause{NothingRecorded: true, Err: err}
	}
	if errors.Is(err, semel.ErrNotKept) || err != nil && res.Replayed {
		return v, &handlererr.Stuck{Err: errors.Join(errors.New("the input of the saga cannot be read"), err)}
	}
	return v, err
}
