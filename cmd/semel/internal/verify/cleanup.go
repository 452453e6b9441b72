package verify

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/semel-go/semel/store"
)

const (
	// tidy is how long the removal may take.
	tidy = time.Minute
	// abandoned is how long a record of another run must not have changed
	// before it is removed, too: its semel verify was killed.
	abandoned = 30 * time.Minute
	rounds    = 5
)

// cleanup comes last, whatever happened. A store has no call that deletes: a
// record is made to expire at once, and a sweep removes it.
var cleanup = check{
	name:  "cleanup",
	claim: "Nothing of this run is left in the store.",
	run: func(ctx context.Context, p *probe) error {
		ctx, cancel := context.WithTimeoutCause(ctx, tidy, errTidy)
		defer cancel()
		removed := map[store.Key]bool{}
		for round := range rounds {
			keys, err := p.leftovers(ctx, round == 0)
			if err != nil {
				return err
			}
			if round == 0 {
				p.tried(len(keys)) // the search has found what killed runs have left, too
			}
			if len(keys) == 0 {
				break
			}
			err = each(ctx, len(keys), 32, func(i int) error { return p.expire(ctx, i, keys[i]) })
			if err != nil {
				return err
			}
			for _, k := range keys {
				removed[k] = true
			}
			if !pause(ctx, 2*time.Millisecond) {
				return ctx.Err()
			}
			if err := p.sweep(ctx, nil); err != nil {
				return err
			}
		}
		keys, err := p.leftovers(ctx, true)
		if err != nil {
			return err
		}
		p.tried(1)
		for _, k := range keys {
			p.broken("the record of %.80q (operation %q, tenant %q) cannot be removed", k.Value, k.Operation, k.Tenant)
		}
		p.info("%d records were removed", len(removed)-len(keys))
		if _, ok := store.As[store.Lister](p.target.Stores[0]); !ok {
			p.info("the store cannot list its records, so the run looked for each key that it used")
		}
		return nil
	},
}

var errTidy = errors.New("there was not enough time to remove all records; sweeps remove them after they expire, within minutes, and the next semel verify removes parked ones")

// leftovers returns the keys that still have a record. It gets each key that the run
// used. With search it also lists all records of the store, and so finds the
// records of killed runs.
func (p *probe) leftovers(ctx context.Context, search bool) ([]store.Key, error) {
	if l, ok := store.As[store.Lister](p.target.Stores[0]); ok && search {
		if err := p.search(ctx, l); err != nil {
			return nil, err
		}
	}
	p.made.mu.Lock()
	used := slices.Collect(maps.Keys(p.made.keys))
	p.made.mu.Unlock()
	there := make([]bool, len(used))
	err := each(ctx, len(used), 32, func(i int) error {
		_, err := p.store(i).Get(ctx, used[i])
		if there[i] = err == nil; errors.Is(err, store.ErrNotFound) {
			err = nil
		}
		return err
	})
	var keys []store.Key
	for i, k := range used {
		if there[i] {
			keys = append(keys, k)
		}
	}
	return keys, err
}

// search owns what a list shows, and this run may remove.
func (p *probe) search(ctx context.Context, l store.Lister) error {
	for f, err := range l.List(ctx, store.Filter{Operation: Operation}) {
		if errors.Is(err, store.ErrCorrupt) {
			continue // somebody's
		}
		if err != nil {
			return err
		}
		r := &f.Record
		mine := strings.HasPrefix(r.Key.Tenant, p.tenant)
		old := strings.HasPrefix(r.Key.Tenant, runPrefix) && f.Now.Sub(r.Updated) > abandoned
		if mine || old {
			p.own(r.Key)
		}
	}
	return nil
}

// expire ends a record now.
func (p *probe) expire(ctx context.Context, i int, k store.Key) error {
	for range rounds {
		f, err := p.store(i).Get(ctx, k)
		if errors.Is(err, store.ErrNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		if f.Record.Expired(f.Now) {
			return nil
		}
		end := p.proposal(k, store.Released)
		end.Lease, end.Keep, end.Error = 0, time.Microsecond, "ended by semel verify"
		f, err = p.store(i).Swap(ctx, f.Record.Seen(), end)
		if err == nil && f.Won || errors.Is(err, store.ErrNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
	}
	return nil // the caller reports the records that remain
}
