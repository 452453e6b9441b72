package moved

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/semel-go/semel/internal/protocol"
	"github.com/semel-go/semel/store"
)

// mover moves single records from one store to another.
type mover struct {
	from     store.Store
	journal  store.Journal // of from; nil: it keeps no steps
	to       store.Store
	receiver store.Receiver // of to
	timers   store.Timers   // of to; nil: it keeps none
}

func newMover(to, from store.Store) (*mover, error) {
	if to == nil || from == nil {
		return nil, errors.New("moved: a store is nil; give the new store and the old one")
	}
	m := &mover{from: from, to: to}
	var ok bool
	if m.receiver, ok = store.As[store.Receiver](to); !ok {
		return nil, errors.New("moved: the new store cannot receive records; it must implement store.Receiver, as sqlitestore, pgstore, redisstore, dynamostore and memstore do")
	}
	m.journal, _ = store.As[store.Journal](from)
	m.timers, _ = store.As[store.Timers](to)
	return m, nil
}

// errChanged says that the record has changed since it was read.
var errChanged = errors.New("the record has changed")

// inNewStore returns the new store's record of r.Key if it is the same version as r or a
// later one. move sets a saga's timer before it stores the record, so a saga that is found
// here has one.
func (m *mover) inNewStore(ctx context.Context, r *store.Record) (f store.Found, ok bool, err error) {
	f, err = m.to.Get(ctx, r.Key)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return store.Found{}, false, nil
	case err != nil:
		return f, false, fmt.Errorf("moved: read the new store: %w", err)
	case r.Later(&f.Record):
		return store.Found{}, false, nil
	}
	return f, true, nil
}

// move stores a record, as it was read from the old store, in the new store. tombstone is
// true if the new store cannot keep its outcome, and has a tombstone instead. move sets the
// timer of a saga first, so that no process which dies in between leaves a saga without one.
func (m *mover) move(ctx context.Context, r *store.Record) (f store.Found, tombstone bool, err error) {
	steps, err := m.steps(ctx, r)
	if err != nil {
		return f, false, err
	}
	if protocol.IsSaga(r.Key) && !r.State.Terminal() {
		if err := m.setTimer(ctx, r.Key); err != nil {
			return f, false, err
		}
	}
	f, err = m.receiver.Receive(ctx, *r, steps)
	if errors.Is(err, store.ErrTooLarge) && r.State.Terminal() && !r.Outcome.Gone {
		small := *r
		small.Outcome = store.Outcome{Code: r.Outcome.Code, Codec: r.Outcome.Codec, Gone: true}
		f, err = m.receiver.Receive(ctx, small, steps)
		tombstone = err == nil && f.Won
	}
	if err != nil {
		return f, false, fmt.Errorf("moved: the new store does not take the record %s: %w", r.Key.Short(), err)
	}
	return f, tombstone, nil
}

// steps are the steps of a record of the old store.
func (m *mover) steps(ctx context.Context, r *store.Record) ([]store.Step, error) {
	if m.journal == nil {
		return nil, nil
	}
	steps, err := m.journal.Steps(ctx, r.Lease())
	switch {
	case errors.Is(err, store.ErrLeaseLost):
		return nil, errChanged
	case err != nil:
		return nil, fmt.Errorf("moved: read the steps in the old store: %w", err)
	case len(steps) == 0:
		return nil, nil
	}
	if _, ok := store.As[store.Journal](m.to); !ok {
		return nil, fmt.Errorf("moved: the record %s has %d steps, and the new store keeps no steps; choose a store that does", r.Key.Short(), len(steps))
	}
	return steps, nil
}

// timerWait delays the timer that move sets, so that a worker which read the saga just now,
// and so moved it, and failed, does not try again at once.
const timerWait = time.Second

// setTimer makes a worker look at a saga whose record is about to come.
func (m *mover) setTimer(ctx context.Context, k store.Key) error {
	if m.timers == nil {
		return fmt.Errorf("moved: the record %s is of a saga, and the new store keeps no timers; choose a store that does", k.Short())
	}
	var version store.Owner
	_, _ = rand.Read(version[:]) // it never fails
	if _, err := m.timers.SetTimer(ctx, k, store.Owner{}, version, timerWait); err != nil {
		return fmt.Errorf("moved: set the timer of a saga in the new store: %w", err)
	}
	return nil
}
