package saga

import (
	"context"
	"encoding/binary"
	"errors"
	"strings"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/handlererr"
	"github.com/semel-go/semel/internal/protocol"
	"github.com/semel-go/semel/internal/retry"
	"github.com/semel-go/semel/store"
)

// stuckLook is how often a worker looks at a saga that is stuck. An operator's command
// makes the saga due at once; semel inspect resolve does not know of timers.
const stuckLook = 10 * time.Minute

// visit claims the saga of a call, runs fn under the claim, and keeps the saga's timer:
//
//   - The timer is set before anything of the saga is recorded. If the process dies before
//     that, a sweep sets it, so that a worker frees the id.
//   - It is due when the lease of the run can have expired, at the latest.
//   - It is dropped only after the saga has ended.
//
// A saga that an operator's interrupted decision leaves stuck keeps the timer that it has. So
// does one for which look, which may be nil, returns an error: look changes nothing, and visit
// ends with that error.
//
// So a saga that has begun and not ended is always found. A timer that is early costs a
// look at the record. If the caller has set the timer already, version is its version.
func (c *core) visit(ctx context.Context, call semel.Call, created time.Time, version store.Owner, look func(context.Context, *semel.Execution) error, fn semel.Handler) (semel.Result, error) {
	key := c.key(call.Tenant, call.Key)
	claimed, looked, began := false, false, time.Now()
	var fence uint64
	res, err := c.driver.RunSaga(ctx, call, created, func(ctx context.Context, x *semel.Execution) (store.Outcome, error) {
		if methods(x).Interrupted() {
			return store.Outcome{}, c.undecided(ctx, key)
		}
		if look != nil {
			if err := look(ctx, x); err != nil {
				looked, fence = true, x.Fence()
				return store.Outcome{}, err
			}
		}
		if version == (store.Owner{}) {
			next, err := c.makeTimer(ctx, key)
			if err != nil {
				return store.Outcome{}, &handlererr.Pause{Attempt: x.Attempt() - 1, NothingRecorded: methods(x).Fresh(), Err: &semel.Error{Reason: semel.ErrUnavailable, Operation: c.name, Cause: err}}
			}
			version = next
		}
		claimed, fence = true, x.Fence()
		return fn(ctx, x)
	})
	if looked { // a worker that has found the saga due meanwhile waits for the end of the lease
		_, _ = c.setTimer(context.WithoutCancel(ctx), key, watched(fence), protocol.NewOwner(), 0)
	}
	if claimed {
		wasDue := time.Since(began) >= c.lease/2 // it may have been
		c.keepTimer(context.WithoutCancel(ctx), key, version, watched(fence), wasDue, err)
	}
	return res, err
}

// watched is the version that a worker gives the timer of a saga which it has found running,
// with that fencing token. The run knows this version, so that it can move or drop the timer. An
// event, an operator or a later run has given the timer another version since.
func watched(fence uint64) (version store.Owner) {
	binary.BigEndian.PutUint64(version[copy(version[:], "semelrun"):], fence)
	return version
}

// undecided is the end of a run that has taken over an operator's claim. The saga is stuck as
// before, because nobody knows what of the decision is recorded.
func (c *core) undecided(ctx context.Context, k store.Key) error {
	const text = "an operator's decision was interrupted, so decide again; before it: "
	before := "the record cannot be read"
	if f, err := c.get(ctx, k); err == nil {
		before = strings.TrimPrefix(f.Record.LastError, text)
	}
	return &handlererr.Stuck{Err: errors.New(text + before)}
}

// keepTimer changes the timer after a run that ended with err. If a worker has found the timer
// meanwhile, it has the version found. That needs no long run, because a sweep that comes late
// makes the timer due at once. If no version fits, the timer is early, and a worker changes it.
//
// The timer of a saga that has ended may be left to a worker, so the version found is dropped only
// if the timer was due. The timer of a run that is stuck stays: the store may not have that yet, so
// a worker looks at the record first.
func (c *core) keepTimer(ctx context.Context, k store.Key, version, found store.Owner, wasDue bool, err error) {
	pause, paused := errors.AsType[*handlererr.Pause](err)
	_, failed := errors.AsType[*semel.Failure](err)
	switch {
	case errors.Is(err, semel.ErrOutcomeNotStored) || errors.Is(err, semel.ErrLeaseLost):
	case paused && !pause.NothingRecorded:
		if set, err := c.setTimer(ctx, k, version, protocol.NewOwner(), pause.Wait); !set && (err == nil || wasDue) {
			_, _ = c.setTimer(ctx, k, found, protocol.NewOwner(), pause.Wait)
		}
	case err == nil || failed || paused:
		_ = c.dropTimer(ctx, k, version)
		if wasDue {
			_ = c.dropTimer(ctx, k, found)
		}
	}
}

// storeTimeout is how long a request to the store may take, with its repetitions.
const storeTimeout = 5 * time.Second

// makeTimer makes the timer of a saga, whatever timer there is. Each request has a version
// of its own: if one arrives late and takes the place of a later timer, it has a version
// that no other request names, so that no late change of that version follows it.
func (c *core) makeTimer(ctx context.Context, k store.Key) (version store.Owner, err error) {
	err = retry.Ask(ctx, storeTimeout, func(ctx context.Context) (err error) {
		version = protocol.NewOwner()
		_, err = c.timers.SetTimer(ctx, k, store.Owner{}, version, c.lease)
		return err
	})
	return version, err
}

// setTimer sends the change until the store answers, or storeTimeout is over.
func (c *core) setTimer(ctx context.Context, k store.Key, seen, next store.Owner, wait time.Duration) (set bool, err error) {
	err = retry.Ask(ctx, storeTimeout, func(ctx context.Context) (err error) {
		set, err = c.timers.SetTimer(ctx, k, seen, next, wait)
		return err
	})
	return set, err
}

func (c *core) dropTimer(ctx context.Context, k store.Key, seen store.Owner) error {
	return retry.Ask(ctx, storeTimeout, func(ctx context.Context) error { return c.timers.DropTimer(ctx, k, seen) })
}

func (c *core) nudgeWorker() {
	select {
	case c.nudge <- struct{}{}:
	default:
	}
}
