package shardstore

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/semel-go/semel/store"
)

// abilities is a chain of stores for store.As to go along: one for each thing
// that the shards together can do. Nil: nothing.
func (s *Store) abilities() (can store.Store) {
	if listers, all := each[store.Lister](s); all {
		can = lister{s, can, listers}
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

// each gives, for each shard, the T that it is, and whether all are; nil if
// none is.
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

// lister searches all shards: if one cannot be searched, none can, for what is
// not shown would read as not there.
type lister struct {
	*Store
	rest    store.Store
	listers []store.Lister
}

func (l lister) Unwrap() store.Store { return l.rest }

// List gives what every shard gives, one after the other, and that a record
// cannot be read where it is met. The errors of the shards that fail come at
// the end, after all records of the others.
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
			for fd, err := range l.listers[i].List(ctx, g) {
				if errors.Is(err, store.ErrCorrupt) { // the shard goes on behind it
					if !yield(store.Found{}, l.shards[i].says(err)) {
						return
					}
					continue
				}
				if err != nil {
					errs = append(errs, l.shards[i].says(err))
					break
				}
				if !yield(fd, nil) {
					return
				}
				given++
			}
		}
		if errs != nil {
			yield(store.Found{}, errors.Join(errs...))
		}
	}
}

// waiter waits where the key is. Shards that cannot tell let their callers
// poll.
type waiter struct {
	*Store
	rest    store.Store
	waiters []store.Waiter
}

func (w waiter) Unwrap() store.Store { return w.rest }

// Wait implements store.Waiter.
func (w waiter) Wait(ctx context.Context, seen store.Seen) error {
	i := w.of(seen.Key)
	if w.waiters[i] == nil {
		return errors.ErrUnsupported
	}
	return w.shards[i].says(w.waiters[i].Wait(ctx, seen))
}

// migrator brings the schema of each shard that has one up to date.
type migrator struct {
	*Store
	rest      store.Store
	migrators []store.Migrator
}

func (m migrator) Unwrap() store.Store { return m.rest }

// Migrate implements store.Migrator. A shard that fails does not keep the
// others from it.
func (m migrator) Migrate(ctx context.Context) error {
	var errs []error
	for i, one := range m.migrators {
		if one != nil {
			errs = append(errs, m.shards[i].says(one.Migrate(ctx)))
		}
	}
	return errors.Join(errs...)
}

// checker asks each shard, and looks whether its records are its own.
type checker struct {
	*Store
	rest     store.Store
	checkers []store.Checker // nil: no shard is one
	listers  []store.Lister
}

func (c checker) Unwrap() store.Store { return c.rest }

// sample is how many records of a shard Check looks at.
const sample = 1000

// Check implements store.Checker.
func (c checker) Check(ctx context.Context) error {
	var errs []error
	for i := range c.shards {
		if c.checkers != nil && c.checkers[i] != nil {
			errs = append(errs, c.shards[i].says(c.checkers[i].Check(ctx)))
		}
		if c.listers != nil && c.listers[i] != nil {
			errs = append(errs, c.shards[i].says(c.strays(ctx, i)))
		}
	}
	return errors.Join(errs...)
}

// strays is an error if the shard holds records of others' keys.
func (c checker) strays(ctx context.Context, i int) error {
	seen, stray := 0, 0
	for f, err := range c.listers[i].List(ctx, store.Filter{Limit: sample}) {
		if err != nil {
			return err
		}
		if f.Record.Expired(f.Now) {
			continue
		}
		if seen++; c.of(f.Record.Key) != i {
			stray++
		}
	}
	if stray > 0 {
		return fmt.Errorf("%d of %d records are of keys that other shards have: the set of shards was changed, or differs between processes; these keys are not protected", stray, seen)
	}
	return nil
}
