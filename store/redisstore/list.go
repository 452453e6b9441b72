package redisstore

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/redis/go-redis/v9"

	"github.com/semel-go/semel/store"
)

// pageSize is how many keys of the server List reads at a time.
const pageSize = 256

// List implements store.Lister. If f selects only records in doubt, it reads a set of
// their keys. Otherwise it reads all keys of the server's database page by page (SCAN).
// It remembers the keys that it has yielded, because the server may return a key
// twice, unless f.Repeats allows that. For an unreadable record it yields an error that wraps store.ErrCorrupt and
// continues; any other error ends the list.
func (s *Store) List(ctx context.Context, f store.Filter) iter.Seq2[store.Found, error] {
	return func(yield func(store.Found, error) bool) {
		if err := s.list(ctx, &f, yield); err != nil {
			yield(store.Found{}, s.explain("list", err))
		}
	}
}

func (s *Store) list(ctx context.Context, f *store.Filter, yield func(store.Found, error) bool) (err error) {
	if s.closed.Load() {
		return ErrClosed
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	given, seen := 0, map[string]struct{}{}
	page := func(cs []*call) (more bool) {
		for _, c := range cs {
			fd, there, readErr := listed(c)
			if readErr != nil && !there {
				err = readErr
				return false
			}
			if _, again := seen[c.record]; again || !there || readErr == nil && !f.Match(&fd.Record, fd.Now) {
				continue
			}
			if f.Limit > 0 && given >= f.Limit || !yield(fd, s.explain("list", readErr)) {
				return false
			}
			if given++; !f.Repeats {
				seen[c.record] = struct{}{}
			}
		}
		return true
	}
	read := s.readAll
	if f.InDoubt() {
		read = s.readDoubts
	}
	readErr := read(ctx, page) // page may have set err
	return errors.Join(err, readErr)
}

// readAll reads all records, and passes them to page until it returns false.
func (s *Store) readAll(ctx context.Context, page func([]*call) bool) error {
	all, err := s.nodes(ctx)
	if err != nil {
		return err
	}
	for _, on := range all {
		for from, more := uint64(0), true; more; {
			if err := ctx.Err(); err != nil {
				return err
			}
			names, next, err := s.scan(ctx, on, from, pageSize)
			if err != nil {
				return err
			}
			if !page(s.onNode(ctx, on, &s.scripts.get, names)) {
				return nil
			}
			from, more = next, next != 0
		}
	}
	return nil
}

// readDoubts is readAll for the records in doubt. On a single server they have one
// set, and in a cluster one for each bucket.
func (s *Store) readDoubts(ctx context.Context, page func([]*call) bool) error {
	sets := []string{doubtsOf(s.sweptFence)}
	if s.cluster != nil {
		sets = make([]string, buckets)
		for b := range sets {
			sets[b] = string(s.appendBucket(nil, b)) + inDoubtName
		}
	}
	for len(sets) > 0 {
		n := min(len(sets), pageSize)
		if more, err := s.readSets(ctx, sets[:n], page); err != nil || !more {
			return err
		}
		sets = sets[n:]
	}
	return nil
}

// readSets reads the records that the sets name. It asks for all sets in one round
// trip, and again for those that have more.
func (s *Store) readSets(ctx context.Context, sets []string, page func([]*call) bool) (more bool, err error) {
	from := make(map[string]uint64, len(sets))
	for _, set := range sets {
		from[set] = 0
	}
	for len(from) > 0 {
		pipe := s.client.Pipeline()
		answers := make(map[string]*redis.ScanCmd, len(from))
		for set, cursor := range from {
			answers[set] = pipe.SScan(ctx, set, cursor, "", pageSize)
		}
		_, _ = pipe.Exec(ctx) // each command has its error
		for set, answer := range answers {
			names, next, err := answer.Result()
			if err != nil {
				return false, err
			}
			cs := make([]*call, len(names))
			for i, name := range names {
				cs[i] = &call{script: &s.scripts.get, record: name, sweptFence: s.sweptFenceOf(name)}
			}
			if s.exchange(ctx, cs); !page(cs) {
				return false, nil
			}
			if from[set] = next; next == 0 {
				delete(from, set)
			}
		}
	}
	return true, nil
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
