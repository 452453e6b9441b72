package shardstore

import (
	"context"
	"fmt"
	"time"

	"github.com/semel-go/semel/store"
)

// part is the leases of one shard in a batch, and what became of them.
type part struct {
	shard int
	at    []int // their places in the batch
	held  []store.Lease
	errs  []error
	err   error
}

// Renew implements store.Store: one batch a shard, all at once. What goes wrong
// with a shard is the error of each of its leases, and of no other. It returns
// when ctx ends, whatever a shard does: then the leases of which there is no
// answer have the context's error.
func (s *Store) Renew(ctx context.Context, held []store.Lease, d time.Duration) ([]error, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	parts := make([]*part, len(s.shards))
	waiting := 0
	for i, l := range held {
		n := s.of(l.Key)
		if parts[n] == nil {
			parts[n] = &part{shard: n}
			waiting++
		}
		parts[n].at, parts[n].held = append(parts[n].at, i), append(parts[n].held, l)
	}
	done := make(chan *part, waiting) // who comes too late does not wait for anybody
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
		for i, at := range p.at {
			if errs[at] = p.err; p.err == nil {
				errs[at] = p.errs[i]
			}
		}
	}
	for _, p := range parts {
		if p == nil {
			continue
		}
		err := s.shards[p.shard].says(context.Cause(ctx))
		for _, at := range p.at {
			errs[at] = err
		}
	}
	return errs, nil
}

// next is an answer, if there is one before ctx ends.
func next(ctx context.Context, done chan *part) *part {
	select {
	case p := <-done:
		return p
	case <-ctx.Done():
	}
	select { // of two that are ready the other may have been taken
	case p := <-done:
		return p
	default:
		return nil
	}
}

func (s *Store) renew(ctx context.Context, p part, d time.Duration, done chan<- *part) {
	sh := &s.shards[p.shard]
	p.errs, p.err = sh.st.Renew(ctx, p.held, d)
	if p.err == nil && len(p.errs) != len(p.held) {
		p.err = fmt.Errorf("it gave %d results for %d leases", len(p.errs), len(p.held))
	}
	if p.err = sh.says(p.err); p.err == nil {
		errs := make([]error, len(p.errs)) // the shard's slice stays the shard's
		for i, err := range p.errs {
			errs[i] = sh.says(err)
		}
		p.errs = errs
	}
	done <- &p
}
