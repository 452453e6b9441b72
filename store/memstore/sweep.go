package memstore

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/semel-go/semel/store"
)

// cursorPrefix is the prefix of every cursor. The last lapsed key that the pass has
// returned, as sortable writes it, follows.
const cursorPrefix = "after:"

// Sweep implements store.Store. Each step looks at all records: it deletes
// expired ones, and returns lapsed ones in the order of their keys, so that a
// pass returns each of them once and ends, whatever the caller does with them.
func (s *Store) Sweep(ctx context.Context, from store.Cursor, limit int) (store.SweepResult, error) {
	if err := ctx.Err(); err != nil {
		return store.SweepResult{}, err
	}
	after, ok := strings.CutPrefix(string(from), cursorPrefix)
	if !ok && from != "" {
		return store.SweepResult{}, fmt.Errorf("memstore: sweep cursor is %q; it must be empty or the Next of this store's last step", from)
	}
	if limit < 1 {
		return store.SweepResult{}, fmt.Errorf("memstore: sweep limit is %d; it must be at least 1", limit)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	res := store.SweepResult{Now: s.now()}
	for key, r := range s.records {
		switch {
		case r.Expired(res.Now):
			if res.Deleted == limit {
				return store.SweepResult{Deleted: limit, Now: res.Now, Next: store.Cursor(cursorPrefix + after)}, nil
			}
			s.sweptFence = max(s.sweptFence, r.Fence)
			delete(s.records, key)
			res.Deleted++
		case r.Lapsed(res.Now) && sortable(key) > after:
			res.Lapsed = append(res.Lapsed, r.Record)
		}
	}
	left := limit - res.Deleted
	if len(res.Lapsed) <= left {
		return res, nil
	}
	slices.SortFunc(res.Lapsed, func(a, b store.Record) int { return strings.Compare(sortable(a.Key), sortable(b.Key)) })
	res.Lapsed = res.Lapsed[:left]
	if left > 0 {
		after = sortable(res.Lapsed[left-1].Key)
	}
	res.Next = store.Cursor(cursorPrefix + after)
	return res, nil
}

// Erase implements store.Eraser.
func (s *Store) Erase(ctx context.Context, seen store.Seen) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := store.CheckErase(seen); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	r, exists := s.records[seen.Key]
	switch {
	case !exists:
		return store.ErrNotFound
	case r.Seen() != seen:
		return store.ErrChanged
	}
	s.sweptFence = max(s.sweptFence, r.Fence)
	delete(s.records, seen.Key)
	return nil
}

// sortable is a text that orders keys. The fields of a key hold no zero byte.
func sortable(k store.Key) string { return k.Operation + "\x00" + k.Tenant + "\x00" + k.Value }
