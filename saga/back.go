package saga

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/effect"
	"github.com/semel-go/semel/internal/history"
	"github.com/semel-go/semel/store"
)

// end decides how a run goes on after the definition has returned err. Nil: the saga has
// succeeded.
func (r *Run) end(caller, ctx, forward context.Context, err error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.stuck != nil:
		return r.stuck
	case r.unread != nil:
		return &effect.Pause{Wait: r.rules.backoff(1), Attempt: r.attempts(), Err: r.unread}
	case err != nil && ctx.Err() != nil: // the lease is lost, or nearly
		return &effect.Pause{Wait: r.rules.backoff(1), Attempt: r.attempts(), Err: err}
	}
	turned := r.back != nil
	if !turned {
		failure, failed := errors.AsType[*semel.Failure](err)
		late := err != nil && errors.Is(context.Cause(forward), errDeadline)
		switch {
		case r.pausing:
			return r.waits()
		case failed && !errors.Is(err, semel.ErrOutcomeNotStored):
			r.back = failure
		case late:
			if err := r.tooLate(); err != nil {
				return err
			}
		case err == nil:
			return r.skipped()
		case caller.Err() != nil: // the attempt did not fail
			return &effect.Pause{Attempt: r.attempts(), Err: err}
		default:
			return r.again(err)
		}
	}
	if i := slices.IndexFunc(r.started, func(u *use) bool { return u.state == held }); i >= 0 {
		return &effect.Stuck{Err: fmt.Errorf("step %q may have happened, so that nothing is undone", r.started[i].name)}
	}
	if err := r.skipped(); err != nil {
		return err
	}
	return r.turnBack(ctx)
}

// attempts is the number of failed attempts if this one does not count.
func (r *Run) attempts() int {
	if r.progress {
		return 0
	}
	return max(0, r.x.Attempt()-1)
}

// waits is the error of a run that waits for a time or an event.
func (r *Run) waits() error {
	return &effect.Pause{Wait: r.untilDeadline(r.pause), Attempt: r.attempts()}
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
			return &effect.Stuck{Err: fmt.Errorf("step %q is recorded, but this run did not reach it: was the definition changed, or does it depend on more than its input and its steps?", name)}
		}
	}
	return nil
}

// turnBack runs the compensations in the reverse order of the steps' start, and returns
// the failure of the saga after all have succeeded.
func (r *Run) turnBack(ctx context.Context) error {
	if r.recorded[backStep] == nil {
		f, err := r.recordBack(ctx, r.back)
		if err != nil {
			return r.again(err)
		}
		r.back = f
	}
	for _, u := range slices.Backward(r.started) {
		if u.undo == nil || u.state == noEffect {
			continue
		}
		if err := r.compensate(ctx, u); err != nil {
			return err
		}
	}
	return r.back
}

// compensate runs one compensation, or finds it recorded.
func (r *Run) compensate(ctx context.Context, u *use) error {
	gaveUp := false
	res, err := r.core.guard.Run(ctx, r.step(u.name+undoPart), func(ctx context.Context, _ *semel.Execution) (o store.Outcome, err error) {
		defer func() {
			if p := recover(); p != nil {
				err = fmt.Errorf("it panicked: %v", p)
			}
		}()
		err = effect.Readable(u.undo(ctx, At{x: r.x, step: u.name, undo: true, inDoubt: u.state == inDoubt}))
		if _, gaveUp = errors.AsType[*semel.Failure](err); gaveUp {
			err = errors.New(err.Error()) // it must not be recorded: an operator can let it run again
		}
		return o, err
	})
	if err == nil {
		r.progress = r.progress || !res.Replayed
		return nil
	}
	err = fmt.Errorf(history.CompensationOf+"%q: %w", u.name, err)
	if gaveUp {
		return &effect.Stuck{Err: err}
	}
	return r.again(err)
}
