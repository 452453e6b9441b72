package redisstore

import (
	"context"
	"fmt"
	"iter"

	"github.com/semel-go/semel/store"
)

// pageSize is how many keys of the server List reads at a time.
const pageSize = 256

// List implements store.Lister. It reads all keys of the server's database page
// by page (SCAN), and remembers the keys that it has yielded, because SCAN may
// return a key twice. For an unreadable record it yields an error that wraps
// store.ErrCorrupt and continues; any other error ends the list.
func (s *Store) List(ctx context.Context, f store.Filter) iter.Seq2[store.Found, error] {
	return func(yield func(store.Found, error) bool) {
		if err := s.list(ctx, &f, yield); err != nil {
			yield(store.Found{}, explain("list", err))
		}
	}
}

func (s *Store) list(ctx context.Context, f *store.Filter, yield func(store.Found, error) bool) error {
	if s.closed.Load() {
		return ErrClosed
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	all, err := s.nodes(ctx)
	if err != nil {
		return err
	}
	given, seen := 0, map[string]struct{}{}
	for _, on := range all {
		for from, more := uint64(0), true; more; {
			if err := ctx.Err(); err != nil {
				return err
			}
			names, next, err := s.scan(ctx, on, from, pageSize)
			if err != nil {
				return err
			}
			for _, c := range s.onNode(ctx, on, &s.scripts.get, names) {
				fd, there, err := listed(c)
				if err != nil && !there {
					return err
				}
				if _, again := seen[c.record]; again || !there || err == nil && !f.Match(&fd.Record, fd.Now) {
					continue
				}
				if f.Limit > 0 && given >= f.Limit || !yield(fd, explain("list", err)) {
					return nil
				}
				given++
				seen[c.record] = struct{}{}
			}
			from, more = next, next != 0
		}
	}
	return nil
}

// listed is the record that a get found. There is true for an unreadable
// record, too.
func listed(c *call) (fd store.Found, there bool, err error) {
	if moved(c.err) {
		return fd, false, nil
	}
	if c.err != nil {
		return fd, false, c.err
	}
	v, there := c.val.(string)
	if !there {
		return fd, false, nil // it was removed meanwhile
	}
	if fd.Record, err = decode(v); err != nil {
		return store.Found{}, true, fmt.Errorf("%s: %w", idOf(c.record), err)
	}
	fd.Now = store.Time(c.now)
	return fd, true, nil
}

// idOf is the part of a record's Redis key that may be logged: it does not
// reveal the idempotency key.
func idOf(record string) string { return record[len(record)-idLen:] }
