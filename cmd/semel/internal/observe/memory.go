package observe

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/memstore"
)

// Memory is the bounded store of an observer, in memory. It keeps no bodies and no
// headers of answers. Keys are in two halves: when the newer half is full, the older one
// is forgotten with all its keys, and the newer takes its place. A key that is forgotten
// counts as new. Nothing expires by itself. Safe for concurrent use. Make it with
// NewMemory.
type Memory struct {
	half int

	mu        sync.Mutex
	newer     generation
	older     generation
	forgotten uint64
}

// generation is one half of the keys.
type generation struct {
	*memstore.Store
	keys int
}

var _ store.Store = (*Memory)(nil)

// NewMemory makes an empty store of at most so many keys, but at least 2.
func NewMemory(keys int) *Memory {
	m := &Memory{half: max(1, keys/2)}
	m.newer.Store, m.older.Store = memstore.New(nil), memstore.New(nil)
	return m
}

// Keys is how many keys are held, and how many were forgotten.
func (m *Memory) Keys() (held int, forgotten uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.newer.keys + m.older.keys, m.forgotten
}

// find returns the half that has a key; nil: none. The caller holds mu.
func (m *Memory) find(ctx context.Context, k store.Key) *memstore.Store {
	for _, g := range []*generation{&m.newer, &m.older} {
		if _, err := g.Get(ctx, k); !errors.Is(err, store.ErrNotFound) {
			return g.Store
		}
	}
	return nil
}

// Claim implements store.Store.
func (m *Memory) Claim(ctx context.Context, p store.Proposal) (store.Found, error) {
	if err := ctx.Err(); err != nil {
		return store.Found{}, err
	}
	p.Outcome = stripped(p.Outcome)
	m.mu.Lock()
	defer m.mu.Unlock()
	if in := m.find(ctx, p.Key); in != nil {
		return in.Claim(ctx, p)
	}
	if m.newer.keys >= m.half {
		m.forgotten += uint64(m.older.keys)
		m.older, m.newer = m.newer, generation{Store: memstore.New(nil)}
	}
	f, err := m.newer.Claim(ctx, p)
	if err == nil {
		m.newer.keys++
	}
	return f, err
}

// Swap implements store.Store.
func (m *Memory) Swap(ctx context.Context, seen store.Seen, p store.Proposal) (f store.Found, err error) {
	p.Outcome = stripped(p.Outcome)
	err = m.in(ctx, seen.Key, store.ErrNotFound, func(in *memstore.Store) (err error) {
		f, err = in.Swap(ctx, seen, p)
		return err
	})
	return f, err
}

// Settle implements store.Store.
func (m *Memory) Settle(ctx context.Context, l store.Lease, s store.Settlement) error {
	s.Outcome = stripped(s.Outcome)
	return m.in(ctx, l.Key, store.ErrLeaseLost, func(in *memstore.Store) error { return in.Settle(ctx, l, s) })
}

// Get implements store.Store.
func (m *Memory) Get(ctx context.Context, k store.Key) (f store.Found, err error) {
	err = m.in(ctx, k, store.ErrNotFound, func(in *memstore.Store) (err error) {
		f, err = in.Get(ctx, k)
		return err
	})
	return f, err
}

// Renew implements store.Store.
func (m *Memory) Renew(ctx context.Context, held []store.Lease, d time.Duration) ([]error, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	errs := make([]error, len(held))
	for i, l := range held {
		errs[i] = m.in(ctx, l.Key, store.ErrLeaseLost, func(in *memstore.Store) error {
			renewed, err := in.Renew(ctx, []store.Lease{l}, d)
			return errors.Join(append(renewed, err)...)
		})
	}
	return errs, nil
}

// Sweep implements store.Store. It deletes nothing: the bound makes room.
func (m *Memory) Sweep(ctx context.Context, _ store.Cursor, _ int) (store.SweepResult, error) {
	return store.SweepResult{Now: time.Now()}, ctx.Err()
}

// in runs fn with the half that has a key, or returns the error absent.
func (m *Memory) in(ctx context.Context, k store.Key, absent error, fn func(*memstore.Store) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if in := m.find(ctx, k); in != nil {
		return fn(in)
	}
	return absent
}

// stripped is an outcome without the answer's body and header.
func stripped(o store.Outcome) store.Outcome { return store.Outcome{Code: o.Code, Gone: o.Gone} }
