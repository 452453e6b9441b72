package memstore

import (
	"context"
	"slices"
	"time"

	"github.com/semel-go/semel/store"
)

// SetTimer implements store.Timers.
func (s *Store) SetTimer(ctx context.Context, k store.Key, seen, next store.Owner, wait time.Duration) (bool, error) {
	if err := ctx.Err(); err != nil {
		return false, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	t, exists := s.timers[k]
	if seen != (store.Owner{}) && (!exists || t.Version != seen) {
		return exists && t.Version == next, nil
	}
	if s.timers == nil {
		s.timers = map[store.Key]store.Timer{}
	}
	s.timers[k] = store.Timer{Key: k, Version: next, Due: store.Time(store.Micros(s.now().Add(wait)))}
	return true, nil
}

// DropTimer implements store.Timers.
func (s *Store) DropTimer(ctx context.Context, k store.Key, seen store.Owner) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.timers[k].Version == seen {
		delete(s.timers, k)
	}
	return nil
}

// DueTimers implements store.Timers. It looks at all timers.
func (s *Store) DueTimers(ctx context.Context, operation string, within time.Duration, limit int) ([]store.Timer, time.Time, error) {
	if err := ctx.Err(); err != nil {
		return nil, time.Time{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	var due []store.Timer
	for _, t := range s.timers {
		if t.Key.Operation == operation && !t.Due.After(now.Add(within)) {
			due = append(due, t)
		}
	}
	slices.SortFunc(due, func(a, b store.Timer) int { return a.Due.Compare(b.Due) })
	return due[:min(len(due), max(limit, 0))], now, nil
}
