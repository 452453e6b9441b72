package shardstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/semel-go/semel/store"
)

// abilities returns a chain of stores for store.As: one for each optional
// interface that the shards together implement. Nil: none.
func (s *Store) abilities() (can store.Store) {
	if listers, all := each[store.Lister](s); all {
		can = lister{s, can, listers}
	}
	if journals, all := each[store.Journal](s); all {
		can = journal{s, can, journals}
	}
	if all, ok := each[store.Timers](s); ok {
		can = timers{s, can, all}
	}
	if erasers, all := each[store.Eraser](s); all {
		can = eraser{s, can, erasers}
	}
	if confirmers, _ := each[store.Confirmer](s); confirmers != nil {
		can = confirmer{s, can, confirmers}
	}
	if scrubbers, _ := each[store.Scrubber](s); scrubbers != nil {
		can = scrubber{s, can, scrubbers}
	}
	if receivers, all := each[store.Receiver](s); all {
		can = receiver{s, can, receivers}
	}
	if waiters, _ := each[store.Waiter](s); waiters != nil {
		can = waiter{s, can, waiters}
	}
	if migrators, _ := each[store.Migrator](s); migrators != nil {
		can = migrator{s, can, migrators}
	}
	listers, all := each[store.Lister](s)
	if checkers, _ := each[store.Checker](s); checkers != nil || all {
		can = checker{s, can, checkers, listers}
	}
	return can
}

// each returns the T of each shard, nil for a shard that is none, and whether all
// are one. Nil: no shard is.
func each[T any](s *Store) (ts []T, all bool) {
	got, n := make([]T, len(s.shards)), 0
	for i := range s.shards {
		t, ok := store.As[T](s.shards[i].st)
		if ok {
			got[i] = t
			n++
		}
	}
	if n == 0 {
		return nil, false
	}
	return got, n == len(got)
}

// lister lists all shards. If one shard has no List, the store has none, because
// the shard's records would seem absent.
type lister struct {
	*Store
	rest    store.Store
	listers []store.Lister
}

func (l lister) Unwrap() store.Store { return l.rest }

// List lists one shard after the other. Each has half of the time that ctx has left. List
// yields the error of an unreadable record in its place, and the errors of shards that fail
// at the end, after the records of the others.
func (l lister) List(ctx context.Context, f store.Filter) iter.Seq2[store.Found, error] {
	return func(yield func(store.Found, error) bool) {
		var errs []error
		given := 0
		for i := range l.listers {
			g := f
			if f.Limit > 0 {
				if g.Limit = f.Limit - given; g.Limit <= 0 {
					break
				}
			}
			err := l.list(ctx, i, g, func(found store.Found, err error) bool {
				if err == nil {
					given++
				}
				return yield(found, err)
			})
			if errors.Is(err, errStopped) {
				return
			}
			errs = append(errs, l.shards[i].wrap(err))
		}
		if err := errors.Join(errs...); err != nil {
			yield(store.Found{}, err)
		}
	}
}

var errStopped = errors.New("the caller wants no more records")

// list lists one shard, and returns the error with which its list ends, or errStopped.
func (l lister) list(ctx context.Context, i int, f store.Filter, yield func(store.Found, error) bool) error {
	ctx, cancel := store.PartContext(ctx)
	defer cancel()
	for found, err := range l.listers[i].List(ctx, f) {
		if err != nil && !errors.Is(err, store.ErrCorrupt) { // after ErrCorrupt the shard's list continues
			return err
		}
		if !yield(found, l.shards[i].wrap(err)) {
			return errStopped
		}
	}
	return nil
}

// receiver receives a record in the key's shard.
type receiver struct {
	*Store
	rest      store.Store
	receivers []store.Receiver
}

func (r receiver) Unwrap() store.Store { return r.rest }

// Receive implements store.Receiver.
func (r receiver) Receive(ctx context.Context, record store.Record, steps []store.Step) (store.Found, error) {
	i := r.shardOf(record.Key)
	f, err := r.receivers[i].Receive(ctx, record, steps)
	return f, r.shards[i].wrap(err)
}

// waiter waits on the key's shard. Callers of a shard without Wait poll.
type waiter struct {
	*Store
	rest    store.Store
	waiters []store.Waiter
}

func (w waiter) Unwrap() store.Store { return w.rest }

// Wait implements store.Waiter.
func (w waiter) Wait(ctx context.Context, seen store.Seen) error {
	i := w.shardOf(seen.Key)
	if w.waiters[i] == nil {
		return errors.ErrUnsupported
	}
	return w.shards[i].wrap(w.waiters[i].Wait(ctx, seen))
}

// migrator migrates the schema of each shard that has one.
type migrator struct {
	*Store
	rest      store.Store
	migrators []store.Migrator
}

func (m migrator) Unwrap() store.Store { return m.rest }

// Migrate implements store.Migrator. It migrates all shards concurrently.
func (m migrator) Migrate(ctx context.Context) error {
	return m.onEach(ctx, func(i int) error {
		if m.migrators[i] == nil {
			return nil
		}
		return m.migrators[i].Migrate(ctx)
	})
}

// checker checks each shard, and that its records are on the right shard.
type checker struct {
	*Store
	rest     store.Store
	checkers []store.Checker // nil: no shard is one
	listers  []store.Lister
}

func (c checker) Unwrap() store.Store { return c.rest }

// sample is how many records of a shard Check reads.
const sample = 1000

// Check implements store.Checker. It checks all shards concurrently.
func (c checker) Check(ctx context.Context) error {
	return c.onEach(ctx, func(i int) error {
		var errs []error
		if c.checkers != nil && c.checkers[i] != nil {
			errs = append(errs, c.checkers[i].Check(ctx))
		}
		if c.listers != nil && c.listers[i] != nil {
			errs = append(errs, c.strays(ctx, i))
		}
		return errors.Join(errs...)
	})
}

// strays returns an error if the shard holds records of keys of other shards.
func (c checker) strays(ctx context.Context, i int) error {
	seen, stray := 0, 0
	var unreadable error // the first one
	for f, err := range c.listers[i].List(ctx, store.Filter{Limit: sample}) {
		switch {
		case errors.Is(err, store.ErrCorrupt):
			unreadable = cmp.Or(unreadable, err)
			continue
		case err != nil:
			return err
		}
		if f.Record.Expired(f.Now) {
			continue
		}
		if seen++; c.shardOf(f.Record.Key) != i {
			stray++
		}
	}
	if stray > 0 {
		return errors.Join(fmt.Errorf("%d of %d records have keys of other shards: the set of shards was changed, or differs between processes; these keys are not protected", stray, seen), unreadable)
	}
	return unreadable
}
