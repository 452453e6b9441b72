package shardstore

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/semel-go/semel/store"
)

// part is the leases of one shard in a batch.
type part struct {
	indexes []int // of the leases in the batch
	leases  []store.Lease
}

// Renew implements store.Store: it renews one batch for each shard,
// concurrently. If a shard fails, only its leases get its error. When ctx ends,
// Renew returns, and leases without an answer get the context's error.
func (s *Store) Renew(ctx context.Context, held []store.Lease, d time.Duration) ([]error, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	parts := map[int]*part{}
	for i, l := range held {
		n := s.shardOf(l.Key)
		if parts[n] == nil {
			parts[n] = &part{}
		}
		parts[n].indexes, parts[n].leases = append(parts[n].indexes, i), append(parts[n].leases, l)
	}
	answers := askEach(ctx, s, slices.Collect(maps.Keys(parts)), func(n int) ([]error, error) {
		errs, err := s.shards[n].st.Renew(ctx, parts[n].leases, d)
		if err == nil && len(errs) != len(parts[n].leases) {
			err = fmt.Errorf("it returned %d results for %d leases", len(errs), len(parts[n].leases))
		}
		return errs, err
	})
	errs := make([]error, len(held))
	for n, p := range parts {
		for i, at := range p.indexes {
			if errs[at] = answers[n].err; errs[at] == nil {
				errs[at] = s.shards[n].wrap(answers[n].value[i])
			}
		}
	}
	return errs, nil
}
