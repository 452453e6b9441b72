package saga

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
)

// MaxStats is the largest count of Stats, so that a count costs little however many sagas
// there are.
const MaxStats = 1000

// Stats are counts for an alert. A count that is MaxStats may be larger.
type Stats struct {
	// Stuck is how many sagas wait for an operator.
	Stuck int
	// Due is how many sagas a worker should take up now. A stuck saga is due each time
	// that a worker should look at it.
	Due int
	// OldestDue is how long the first of them has been due, by the store's clock. It grows
	// if no worker runs, or if the workers cannot keep up. Zero: none is due.
	OldestDue time.Duration
}

// ReadStats counts the sagas of a definition in a store. It reads the records in doubt and
// the timers that are due, by their indexes, and no others. In a store that also keeps
// other calls, ReadStats reads those in doubt, too. Any process may call it, also one that
// does not have the definition. With the error of a record or a timer that cannot be read,
// which wraps store.ErrCorrupt, it returns the counts of the others.
func ReadStats(ctx context.Context, st store.Store, name string) (s Stats, err error) {
	operation := Key(name, "", "").Operation
	lister, canList := store.As[store.Lister](st)
	timers, hasTimers := store.As[store.Timers](st)
	if !canList || !hasTimers {
		return s, &semel.Error{Reason: semel.ErrInvalid, Operation: operation, Cause: fmt.Errorf("saga: the store cannot list records or keeps no timers, so it keeps no sagas")}
	}
	unavailable := func(err error) error {
		return &semel.Error{Reason: semel.ErrUnavailable, Operation: operation, Cause: err}
	}
	var unreadable error // the first
	for _, err := range lister.List(ctx, store.Filter{Operation: operation, States: []store.State{store.Unknown}, Limit: MaxStats}) {
		switch {
		case errors.Is(err, store.ErrCorrupt):
			unreadable = cmp.Or(unreadable, err)
		case err != nil:
			return Stats{}, unavailable(err)
		default:
			s.Stuck++
		}
	}
	due, now, err := timers.DueTimers(ctx, operation, 0, MaxStats)
	if errors.Is(err, store.ErrCorrupt) {
		unreadable, err = cmp.Or(unreadable, err), nil
	}
	if err != nil {
		return Stats{}, unavailable(err)
	}
	s.Due = len(due)
	if len(due) > 0 {
		s.OldestDue = max(0, now.Sub(due[0].Due))
	}
	if unreadable != nil {
		err = &semel.Error{Reason: store.ErrCorrupt, Operation: operation, Cause: unreadable}
	}
	return s, err
}
