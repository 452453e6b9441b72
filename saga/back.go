package saga

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/handlererr"
	"github.com/semel-go/semel/internal/history"
	"github.com/semel-go/semel/store"
)

// end decides how a run goes on after the definition has returned err, and runs the
// compensations if the saga has turned back. Nil: the saga has succeeded.
func (r *Run) end(ctx, forward context.Context, err error) error {
	turned, err := r.decide(ctx, forward, err)
	if err != nil || !turned {
		return err
	}
	return r.turnBack(ctx)
}

// decide is end without the compensations. It waits for the steps that the definition has
// left running, because until they end nobody knows whether they have to be undone.
func (r *Run) decide(ctx, forward context.Context, err error) (turned bool, _ error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for r.running > 0 {
		r.idle.Wait()
	}
	switch {
	case r.stuck != nil:
		return false, r.stuck
	case r.unread != nil:
		return false, &handlererr.Pause{Wait: r.rules.backoff(1), Attempt: r.attempts(), Err: r.unread}
	case err != nil && ctx.Err() != nil: // the lease is lost, or nearly
		return false, &handlererr.Pause{Wait: r.rules.backoff(1), Attempt: r.attempts(), Err: err}
	}
	if r.back == nil {
		failure, failed := errors.AsType[*semel.Failure](err)
		late := err != nil && errors.Is(context.Cause(forward), errDeadline)
		if r.unsure { // the claim of the next run waits for the transaction
			failed, late = false, false
		}
		switch {
		case r.pausing:
			return false, r.waits()
		case failed && !errors.Is(err, semel.ErrOutcomeNotStored):
			r.back = failure
		case late:
			if err := r.tooLate(); err != nil {
				return false, err
			}
		case err == nil:
			return false, r.skipped()
		case r.ending() != nil: // the attempt did not fail
			return false, &handlererr.Pause{Attempt: r.attempts(), Err: err}
		default:
			return false, r.again(err)
		}
	}
	if i := slices.IndexFunc(r.started, func(u *use) bool { return u.state == held }); i >= 0 {
		return false, &handlererr.Stuck{Err: fmt.Errorf("step %q may have happened, so that nothing is undone", r.started[i].name)}
	}
	return true, r.skipped()
}

// inRow is how many attempts in a row have failed if this one fails. After an operator's
// decision the record counts from 1 again, and soon from before again.
func (r *Run) inRow() int {
	n := r.x.Attempt()
	switch {
	case r.progress:
		return 1
	case n > r.before:
		return n - r.before
	}
	return n
}

// attempts is the number of failed attempts for the record if this one does not count.
func (r *Run) attempts() int { return r.before + max(0, r.inRow()-1) }

// waits is the error of a run that waits for a time or an event.
func (r *Run) waits() error {
	return &handlererr.Pause{Wait: r.untilDeadline(r.pause), Attempt: r.attempts()}
}

// skipped refuses the end of a run that has not reached a recorded step, because the
// step's effect would be neither a part of the result nor undone.
func (r *Run) skipped() error {
	for _, name := range slices.Sorted(maps.Keys(r.recorded)) {
		base, _, _ := strings.Cut(name, ":")
		if base != "saga" && r.uses[base] == nil && !strings.HasSuffix(name, eventPart) { // an event may come and not be awaited
			if r.skips[name] != nil {
				return wrongSkip(name, errors.New("names a step that this run did not reach"))
			}
			return &handlererr.Stuck{Err: fmt.Errorf("step %q is recorded, but this run did not reach it: was the definition changed, or does it depend on more than its input and its steps?", name)}
		}
	}
	return nil
}

// turnBack runs the compensations in the reverse order of the steps' start, and returns
// the failure of the saga after all have succeeded. It does not hold mu while it asks the
// store or runs a compensation.
func (r *Run) turnBack(ctx context.Context) error {
	if r.recorded[backStep] == nil {
		f, err := r.recordBack(ctx, r.back)
		switch {
		case errors.Is(err, semel.ErrInvalid) || errors.Is(err, store.ErrTooLarge):
			return &handlererr.Stuck{Err: fmt.Errorf("it cannot be recorded that the saga turns back: %w", err)}
		case err != nil:
			return r.interrupted(err)
		}
		r.mu.Lock()
		r.back, r.before = f, max(0, r.x.Attempt()-1)
		r.mu.Unlock()
	}
	r.mu.Lock()
	started := slices.Clone(r.started)
	r.mu.Unlock()
	for _, u := range slices.Backward(started) {
		if err := r.compensate(ctx, u); err != nil {
			return err
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.stuck != nil { // by a compensation that used a step
		return r.stuck
	}
	return r.back
}

// lockedAgain is again for a caller that does not hold mu.
func (r *Run) lockedAgain(err error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.again(err)
}

// compensate runs one compensation, or finds it recorded.
func (r *Run) compensate(ctx context.Context, u *use) error {
	r.mu.Lock()
	state := u.state
	r.mu.Unlock()
	if u.undo == nil || state == noEffect {
		return nil
	}
	gaveUp := false
	res, err := r.core.guard.Run(ctx, r.step(u.name+undoPart), func(ctx context.Context, _ *semel.Execution) (o store.Outcome, err error) {
		defer func() {
			if p := recover(); p != nil {
				err = fmt.Errorf("it panicked: %v", p)
			}
		}()
		err = handlererr.Readable(u.undo(ctx, At{x: r.x, step: u.name, undo: true, inDoubt: state == inDoubt}))
		if _, gaveUp = errors.AsType[*semel.Failure](err); gaveUp {
			err = errors.New(err.Error()) // it must not be recorded: an operator can let it run again
		}
		return o, err
	})
	if err == nil || res.Replayed && errors.Is(err, semel.ErrNotKept) {
		r.noteProgress(&res)
		return nil
	}
	err = fmt.Errorf(history.CompensationOf+"%q: %w", u.name, err)
	if gaveUp {
		return &handlererr.Stuck{Err: err}
	}
	return r.lockedAgain(err)
}
