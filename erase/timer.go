package erase

import (
	"context"
	"errors"

	"github.com/semel-go/semel/internal/protocol"
	"github.com/semel-go/semel/internal/retry"
	"github.com/semel-go/semel/store"
)

// mostTimers is how many timers of one operation Run looks at.
const mostTimers = 100_000

// dropFirst drops the timers of an operation before the first of its records is erased. The
// records show which operations have timers, so that an erasure that is killed in between
// finds them when it begins again.
func (e *eraser) dropFirst(ctx context.Context, k store.Key) error {
	if !protocol.IsSaga(k) || e.sagas[k.Operation] {
		return nil
	}
	e.sagas[k.Operation] = true
	return e.dropTimers(ctx, k.Operation)
}

// dropTimers drops the timers of one operation in the scope whose sagas have ended. The
// owner of a saga drops its timer, unless it dies just then. A saga that begins later has a
// timer of another version, so that no timer is dropped that is needed.
func (e *eraser) dropTimers(ctx context.Context, operation string) error {
	timers, ok := store.As[store.Timers](e.store)
	if !ok || e.options.CountOnly {
		return nil
	}
	var all []store.Timer
	err := retry.Ask(ctx, e.options.StoreTimeout, func(ctx context.Context) (err error) {
		all, _, err = timers.DueTimers(ctx, operation, 2*protocol.UnfinishedSagaRetention, mostTimers)
		return err
	})
	if errors.Is(err, store.ErrCorrupt) { // the others came with it
		e.unreadable, err = err, nil
	}
	if err != nil {
		return err
	}
	for _, t := range all {
		if t.Key.Tenant != e.scope.Tenant || e.scope.Key != "" && t.Key.Value != e.scope.Key {
			continue
		}
		f, err := e.get(ctx, t.Key)
		if err == nil && !f.Record.State.Terminal() {
			continue
		}
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return err
		}
		if err := e.change(ctx, func(ctx context.Context) error { return timers.DropTimer(ctx, t.Key, t.Version) }); err != nil {
			return err
		}
		e.report.Timers++
	}
	return nil
}
