package redisstore

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/redis/go-redis/v9"

	"github.com/semel-go/semel/store"
)

// pageSize is how many keys of the server List reads at a time.
const pageSize = 256

// List implements store.Lister. If f selects only records in doubt, it reads a set of
// their keys. Otherwise it reads all keys of the server's database page by page (SCAN).
// It remembers the keys that it has yielded, because the server may return a key
// twice, unless f.Repeats allows that. For an unreadable record it yields an error that
// wraps store.ErrCorrupt and continues. If the server refuses to read a record, List yields
// the first such error at the end. Any other error ends the list.
//
// In a cluster each node has half of the time that ctx has left. List yields the errors of
// nodes that fail at the end, after the records of the others. A list of other records than
// those in doubt also ends with an error if a slot moves meanwhile, because SCAN may miss
// records that move.
func (s *Store) List(ctx context.Context, f store.Filter) iter.Seq2[store.Found, error] {
	return func(yield func(store.Found, error) bool) {
		if err := s.list(ctx, &f, yield); err != nil {
			yield(store.Found{}, s.explain("list", err))
		}
	}
}

// handleReads handles the answers to some reads. more is false if the caller wants no more
// records.
type handleReads func(reads []*call) (more bool, err error)

func (s *Store) list(ctx context.Context, f *store.Filter, yield func(store.Found, error) bool) error {
	if s.closed.Load() {
		return ErrClosed
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	yielded, seen := 0, map[string]struct{}{}
	handle := func(reads []*call) (more bool, err error) {
		for _, c := range reads {
			found, exists, readErr := readAnswer(c)
			if readErr != nil && !exists {
				err = moreSevere(err, readErr)
				continue
			}
			if _, again := seen[c.record]; again || !exists || readErr == nil && !f.Match(&found.Record, found.Now) {
				continue
			}
			if f.Limit > 0 && yielded >= f.Limit || !yield(found, s.explain("list", readErr)) {
				return false, nil
			}
			if yielded++; !f.Repeats {
				seen[c.record] = struct{}{}
			}
		}
		return true, err
	}
	if f.InDoubt() {
		return s.readDoubts(ctx, handle)
	}
	return s.readAll(ctx, handle)
}

// readAll reads all records.
func (s *Store) readAll(ctx context.Context, handle handleReads) error {
	all, err := s.nodes(ctx)
	if err != nil {
		return err
	}
	parts, err := s.partition(ctx)
	if err != nil {
		return err
	}
	var errs []error
	for _, n := range all {
		more, err := s.readNode(ctx, n, handle)
		if !more {
			return nil
		}
		if err != nil {
			errs = append(errs, n.explain(err))
			parts = slices.DeleteFunc(parts, func(p *part) bool { return p.name == n.name })
		}
	}
	for _, p := range parts {
		errs = append(errs, p.explain(s.moving(ctx, p)))
	}
	return errors.Join(errs...)
}

// readNode reads the records of a node.
func (s *Store) readNode(ctx context.Context, n node, handle handleReads) (more bool, err error) {
	ctx, cancel := s.partContext(ctx)
	defer cancel()
	for from := uint64(0); ; {
		if err := ctx.Err(); err != nil {
			return true, err
		}
		names, next, scanErr := s.scan(ctx, n, from, pageSize)
		if scanErr != nil {
			return true, moreSevere(err, scanErr)
		}
		calls := s.onNode(ctx, n, &s.scripts.get, names)
		if elsewhere := misdirected(calls); len(elsewhere) > 0 {
			s.exchange(ctx, elsewhere) // the client of a cluster follows records that move
		}
		more, handleErr := handle(calls)
		if err = moreSevere(err, handleErr); !more || !isAnswer(err) || next == 0 {
			return more, err
		}
		from = next
	}
}

// readDoubts reads the records in doubt. On a single server they have one set, and in a
// cluster one for each bucket.
func (s *Store) readDoubts(ctx context.Context, handle handleReads) error {
	if s.cluster == nil {
		_, err := s.readSets(ctx, []string{doubtsOf(s.sweptFence)}, handle)
		return err
	}
	parts, err := s.partition(ctx)
	if err != nil {
		return err
	}
	var errs []error
	for _, p := range parts {
		more, err := s.readPart(ctx, p, handle)
		if !more {
			return nil
		}
		errs = append(errs, p.explain(err))
	}
	return errors.Join(errs...)
}

// readPart reads the records in doubt of a node. If the node answers for some slots only, it
// reads those.
func (s *Store) readPart(ctx context.Context, p *part, handle handleReads) (more bool, err error) {
	ctx, cancel := s.partContext(ctx)
	defer cancel()
	for buckets := range slices.Chunk(p.buckets, pageSize) {
		sets := make([]string, len(buckets))
		for i, b := range buckets {
			sets[i] = string(s.appendBucket(nil, b)) + inDoubtName
		}
		more, setsErr := s.readSets(ctx, sets, handle)
		if !more {
			return false, nil
		}
		if err = moreSevere(err, setsErr); !isAnswer(err) {
			break
		}
	}
	return true, err
}

// readSets reads the records that the sets name. It asks for all sets in one round
// trip, and again for those that have more. A set or a record that the server refuses does
// not hide the others; the error is the first one. If the server does not answer, readSets
// first reads what it can.
func (s *Store) readSets(ctx context.Context, sets []string, handle handleReads) (more bool, err error) {
	from := make(map[string]uint64, len(sets))
	for _, set := range sets {
		from[set] = 0
	}
	for len(from) > 0 && isAnswer(err) {
		pipe := s.client.Pipeline()
		answers := make(map[string]*redis.ScanCmd, len(from))
		for set, cursor := range from {
			answers[set] = pipe.SScan(ctx, set, cursor, "", pageSize)
		}
		_, _ = pipe.Exec(ctx) // each command has its error
		for set, answer := range answers {
			names, next, scanErr := answer.Result()
			if scanErr != nil {
				delete(from, set)
				err = moreSevere(err, scanErr)
				continue
			}
			calls := make([]*call, len(names))
			for i, name := range names {
				calls[i] = &call{script: &s.scripts.get, record: name}
			}
			s.exchange(ctx, calls)
			more, handleErr := handle(calls)
			if !more {
				return false, nil
			}
			err = moreSevere(err, handleErr)
			if from[set] = next; next == 0 {
				delete(from, set)
			}
		}
	}
	return true, err
}

// isAnswer reports that err is the server's answer to one request, or nil: other requests
// may succeed.
func isAnswer(err error) bool {
	_, ok := errors.AsType[redis.Error](err)
	return ok || err == nil
}

// moreSevere returns the second of two errors if there is no first, or if only the second
// is no answer of the server; otherwise the first.
func moreSevere(first, second error) error {
	if first == nil || isAnswer(first) && !isAnswer(second) {
		return second
	}
	return first
}

// readAnswer is the record that a get found. exists is true for an unreadable record,
// too.
func readAnswer(c *call) (found store.Found, exists bool, err error) {
	if c.err != nil {
		return found, false, c.err
	}
	v, exists := c.val.(string)
	if !exists {
		return found, false, nil // it was removed meanwhile
	}
	if found.Record, err = decode(v); err != nil {
		return store.Found{}, true, fmt.Errorf("%s: %w", idOf(c.record), err)
	}
	found.Now = store.Time(c.now)
	return found, true, nil
}

// idOf is the part of a record's Redis key that may be logged: it does not
// reveal the idempotency key.
func idOf(record string) string { return record[len(record)-idLen:] }
