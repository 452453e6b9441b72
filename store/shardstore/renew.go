package shardstore

import (
	"context"
	"fmt"
	"time"

	"github.com/semel-go/semel/store"
)

// part is the leases of one shard in a batch, and their results.
type part struct {
	shard   int
	indexes []int // of the leases in the batch
	leases  []store.Lease
	errs    []error
	err     error
}

// Renew implements store.Store: it renews one batch for each shard,
// concurrently. If a shard fails, only its leases get its error. When ctx ends,
// Renew returns, and leases without an answer get the context's error.
func (s *Store) Renew(ctx context.Context, held []store.Lease, d time.Duration) ([]error, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	parts := make([]*part, len(s.shards))
	waiting := 0
	for i, l := range held {
		n := s.shardOf(l.Key)
		if parts[n] == nil {
			parts[n] = &part{shard: n}
			waiting++
		}
		parts[n].indexes, parts[n].leases = append(parts[n].indexes, i), append(parts[n].leases, l)
	}
	done := make(chan *part, waiting) // buffered, so that a late answer does not block its shard
	for _, p := range parts {
		if p != nil {
			go s.renew(ctx, *p, d, done)
		}
	}
	errs := make([]error, len(held))
	for ; waiting > 0; waiting-- {
		p := next(ctx, done)
		if p == nil {
			break
		}
		parts[p.shard] = nil
		for i, at := range p.indexes {
			if errs[at] = p.err; p.err == nil {
				errs[at] = p.errs[i]
			}
		}
	}
	for _, p := range parts {
		if p == nil {
			continue
		}
		err := s.shards[p.shard].wrap(context.Cause(ctx))
		for _, at := range p.indexes {
			errs[at] = err
		}
	}
	return errs, nil
}

// next returns an answer, or nil if ctx ends first.
func next(ctx context.Context, done chan *part) *part {
	select {
	case p := <-done:
		return p
	case <-ctx.Done():
	}
	select { // both may be ready, and select takes either
	case p := <-done:
		return p
	default:
		return nil
	}
}

func (s *Store) renew(ctx context.Context, p part, d time.Duration, done chan<- *part) {
	sh := &s.shards[p.shard]
	p.errs, p.err = sh.st.Renew(ctx, p.leases, d)
	if p.err == nil && len(p.errs) != len(p.leases) {
		p.err = fmt.Errorf("it returned %d results for %d leases", len(p.errs), len(p.leases))
	}
	if p.err = sh.wrap(p.err); p.err == nil {
		errs := make([]error, len(p.errs)) // the slice belongs to the shard
		for i, err := range p.errs {
			errs[i] = sh.wrap(err)
		}
		p.errs = errs
	}
	done <- &p
}
