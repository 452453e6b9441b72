package memstore

import (
	"context"

	"github.com/semel-go/semel/store"
)

// Receive implements store.Receiver.
func (s *Store) Receive(ctx context.Context, r store.Record, steps []store.Step) (store.Found, error) {
	if err := ctx.Err(); err != nil {
		return store.Found{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	if old, exists := s.records[r.Key]; exists && !r.Later(&old.Record) {
		return store.Found{Record: old.Record, Now: now}, nil
	}
	var own []store.Step
	for _, step := range steps {
		step.Outcome = step.Outcome.Clone()
		own = append(own, step)
	}
	return store.Found{Record: s.put(r, own).Record, Won: true, Now: now}, nil
}
