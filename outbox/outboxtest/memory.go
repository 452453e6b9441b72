package outboxtest

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/semel-go/semel/outbox"
)

// Memory is an outbox in memory. Its transactions commit messages, and nothing else.
type Memory struct {
	mu       sync.Mutex
	freed    *sync.Cond // an order key was unlocked
	position int64
	rows     []*row // by position
	keys     map[int64]*key
	locks    map[int64]*MemoryTx
	lanes    [outbox.Lanes]lane
	seen     map[string]time.Time // until when a publisher counts
	woken    chan struct{}
}

type row struct {
	outbox.Entry
	order int64
}

// key is an Order that has failed.
type key struct {
	failures int // 0: its messages go on
	retryAt  time.Time
	stopped  bool
}

type lane struct {
	fence int64
	owner string
	until time.Time
}

var (
	_ outbox.Store     = (*Memory)(nil)
	_ outbox.Inspector = (*Memory)(nil)
)

// NewMemory makes an outbox in memory.
func NewMemory() *Memory {
	m := &Memory{keys: map[int64]*key{}, locks: map[int64]*MemoryTx{}, seen: map[string]time.Time{}, woken: make(chan struct{}, 1)}
	m.freed = sync.NewCond(&m.mu)
	return m
}

// MemoryTx is a transaction of a Memory. It is not safe for concurrent use.
type MemoryTx struct {
	m     *Memory
	rows  []*row
	holds []int64
}

// Begin begins a transaction.
func (m *Memory) Begin() *MemoryTx { return &MemoryTx{m: m} }

// Put writes messages when the transaction commits. It waits for other transactions that
// have written messages of the same order keys.
func (t *MemoryTx) Put(ctx context.Context, messages ...outbox.Message) error {
	t.m.mu.Lock()
	defer t.m.mu.Unlock()
	for i := range messages {
		p, err := messages[i].Prepare()
		if err != nil {
			return err
		}
		order := p.Order()
		for p.OrderKey != "" && t.m.locks[order] != t {
			if t.m.locks[order] == nil {
				t.m.locks[order] = t
				t.holds = append(t.holds, order)
				break
			}
			t.m.freed.Wait()
		}
		t.m.position++
		t.rows = append(t.rows, &row{outbox.Entry{Message: p, Position: t.m.position, Call: outbox.CallOf(ctx), Written: time.Now(), State: outbox.Waiting}, order})
	}
	return nil
}

// Commit makes the messages visible.
func (t *MemoryTx) Commit() error { return t.end(true) }

// Rollback forgets the messages.
func (t *MemoryTx) Rollback() error { return t.end(false) }

func (t *MemoryTx) end(commit bool) error {
	t.m.mu.Lock()
	defer t.m.mu.Unlock()
	for _, order := range t.holds {
		delete(t.m.locks, order)
	}
	t.m.freed.Broadcast()
	if commit && len(t.rows) > 0 {
		t.m.rows = append(t.m.rows, t.rows...)
		slices.SortFunc(t.m.rows, func(a, b *row) int { return int(a.Position - b.Position) })
		select {
		case t.m.woken <- struct{}{}:
		default:
		}
	}
	t.rows, t.holds = nil, nil
	return nil
}

// Put writes messages in a transaction of their own.
func (m *Memory) Put(ctx context.Context, messages ...outbox.Message) error {
	tx := m.Begin()
	return errors.Join(tx.Put(ctx, messages...), tx.Commit())
}

// Woken implements outbox.Store.
func (m *Memory) Woken() <-chan struct{} { return m.woken }

// Lease implements outbox.Store.
func (m *Memory) Lease(_ context.Context, publisher string, d time.Duration) (lanes []outbox.Lane, share int, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	m.seen[publisher] = now.Add(d)
	for name, until := range m.seen {
		if now.After(until) {
			delete(m.seen, name)
		}
	}
	share = (outbox.Lanes + len(m.seen) - 1) / len(m.seen)
	for i := range m.lanes {
		if l := &m.lanes[i]; l.owner == publisher {
			l.until = now.Add(d)
			lanes = append(lanes, outbox.Lane{Number: i, Fence: l.fence})
		}
	}
	for i := range m.lanes {
		l := &m.lanes[i]
		if len(lanes) < share && l.owner != publisher && (l.owner == "" || now.After(l.until)) {
			*l = lane{l.fence + 1, publisher, now.Add(d)}
			lanes = append(lanes, outbox.Lane{Number: i, Fence: l.fence})
		}
	}
	return lanes, share, nil
}

// Release implements outbox.Store.
func (m *Memory) Release(_ context.Context, publisher string, lanes []outbox.Lane) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, given := range lanes {
		if l := &m.lanes[given.Number]; l.owner == publisher && l.fence == given.Fence {
			l.owner = ""
		}
	}
	if !slices.ContainsFunc(m.lanes[:], func(l lane) bool { return l.owner == publisher }) {
		delete(m.seen, publisher)
	}
	return nil
}

// Take implements outbox.Store.
func (m *Memory) Take(_ context.Context, lanes []outbox.Lane, busy []int64, paused []string, limit int) (taken []outbox.Taken, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	fences := map[int]outbox.Lane{}
	for _, l := range lanes {
		if m.lanes[l.Number].fence == l.Fence {
			fences[l.Number] = l
		}
	}
	failed := map[int64][]*row{} // by the Order that has failed and is due
	var due []int64
	var waiting []*row
	for _, r := range m.rows {
		_, mine := fences[outbox.LaneOf(r.order)]
		if !mine || r.State == outbox.Sent || slices.Contains(busy, r.order) || slices.Contains(paused, r.Topic) {
			continue
		}
		switch k := m.keys[r.order]; {
		case k == nil:
			waiting = append(waiting, r)
		case k.stopped || now.Before(k.retryAt) || k.failures > 0 && failed[r.order] != nil: // only the first
		default:
			if failed[r.order] == nil {
				due = append(due, r.order)
			}
			failed[r.order] = append(failed[r.order], r)
		}
	}
	slices.SortStableFunc(due, func(a, b int64) int { return m.keys[a].retryAt.Compare(m.keys[b].retryAt) })
	var found []*row
	for _, order := range due {
		found = append(found, failed[order]...)
	}
	found = found[:min(len(found), max(1, limit/4))]
	found = append(found, waiting[:min(len(waiting), max(1, limit-len(found)))]...)
	for _, r := range found {
		taken = append(taken, outbox.Taken{Entry: r.Entry, Lane: fences[outbox.LaneOf(r.order)], Order: r.order})
	}
	return taken, nil
}

// Settle implements outbox.Store.
func (m *Memory) Settle(_ context.Context, results []outbox.Result) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, res := range results {
		i := m.find(res.Position)
		if i < 0 || m.rows[i].State == outbox.Sent {
			continue
		}
		r := m.rows[i]
		if res.Kind == outbox.Delivered {
			if r.State, r.Sent = outbox.Sent, time.Now(); !res.Keep {
				m.rows = slices.Delete(m.rows, i, i+1)
			}
			m.goOn(r)
			continue
		}
		if m.lanes[res.Lane.Number].fence != res.Lane.Fence || r.Attempts != res.Attempts {
			continue
		}
		k := m.keys[r.order]
		if k == nil {
			k = &key{}
			m.keys[r.order] = k
		}
		k.failures++
		k.retryAt = time.Now().Add(res.Delay)
		k.stopped = res.Kind == outbox.Refused
		r.Attempts++
		r.LastError = res.Error
		m.mark(r.order)
		if k.stopped {
			r.State = outbox.Quarantined
		}
	}
	return nil
}

// goOn lets an Order go on after a message of it has ended, unless an earlier one is left.
func (m *Memory) goOn(ended *row) {
	i := slices.IndexFunc(m.rows, func(r *row) bool { return r.order == ended.order && r.State != outbox.Sent })
	k := m.keys[ended.order]
	switch {
	case i < 0:
		delete(m.keys, ended.order)
	case k != nil && m.rows[i].Position > ended.Position:
		k.failures, k.retryAt, k.stopped = 0, time.Time{}, false
	}
}

// mark marks the messages of an Order as held.
func (m *Memory) mark(order int64) {
	for _, r := range m.rows {
		if r.order == order && r.State == outbox.Waiting {
			r.State = outbox.Held
		}
	}
}

func (m *Memory) find(position int64) int {
	return slices.IndexFunc(m.rows, func(r *row) bool { return r.Position == position })
}
