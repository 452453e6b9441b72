package memstore

import (
	"context"
	"slices"

	"github.com/semel-go/semel/store"
)

// RecordStep implements store.Journal.
func (s *Store) RecordStep(ctx context.Context, l store.Lease, step store.Step) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	r, exists := s.records[l.Key]
	if !exists || r.Lease() != l || r.State != store.Processing {
		return store.ErrLeaseLost
	}
	if i := slices.IndexFunc(r.steps, func(t store.Step) bool { return t.Name == step.Name }); i >= 0 {
		return store.SameStep(&r.steps[i], &step)
	}
	step.Outcome, step.Recorded = step.Outcome.Clone(), s.now()
	r.steps = append(r.steps, step)
	return nil
}

// Steps implements store.Journal.
func (s *Store) Steps(ctx context.Context, l store.Lease) ([]store.Step, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	r, exists := s.records[l.Key]
	if !exists || r.Lease() != l {
		return nil, store.ErrLeaseLost
	}
	return slices.Clone(r.steps), nil
}
