package shardstore

import (
	"context"
	"errors"
)

// answer is one shard's.
type answer[T any] struct {
	shard int
	value T
	err   error
}

// askEach asks shards concurrently and returns an answer for each. It does not wait for
// shards that ignore the end of ctx: their answer is the context's error.
func askEach[T any](ctx context.Context, s *Store, shards []int, ask func(shard int) (T, error)) map[int]answer[T] {
	done := make(chan answer[T], len(shards)) // buffered, so that a late answer does not block its shard
	for _, i := range shards {
		go func() {
			v, err := ask(i)
			done <- answer[T]{i, v, err}
		}()
	}
	answers := make(map[int]answer[T], len(shards))
	for range shards {
		a, ok := next(ctx, done)
		if !ok {
			break
		}
		a.err = s.shards[a.shard].wrap(a.err)
		answers[a.shard] = a
	}
	for _, i := range shards {
		if _, ok := answers[i]; !ok {
			answers[i] = answer[T]{shard: i, err: s.shards[i].wrap(context.Cause(ctx))}
		}
	}
	return answers
}

// next returns an answer, or false if ctx ends first.
func next[T any](ctx context.Context, done <-chan answer[T]) (answer[T], bool) {
	select {
	case a := <-done:
		return a, true
	case <-ctx.Done():
	}
	select { // both may be ready, and select takes either
	case a := <-done:
		return a, true
	default:
		return answer[T]{}, false
	}
}

// all are the indexes of all shards.
func (s *Store) all() []int {
	indexes := make([]int, len(s.shards))
	for i := range indexes {
		indexes[i] = i
	}
	return indexes
}

// onEach asks all shards concurrently, and joins their errors.
func (s *Store) onEach(ctx context.Context, ask func(shard int) error) error {
	answers := askEach(ctx, s, s.all(), func(i int) (struct{}, error) { return struct{}{}, ask(i) })
	errs := make([]error, len(s.shards))
	for i := range errs {
		errs[i] = answers[i].err
	}
	return errors.Join(errs...)
}
