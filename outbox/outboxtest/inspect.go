package outboxtest

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/semel-go/semel/outbox"
)

// Trim implements outbox.Store.
func (m *Memory) Trim(_ context.Context, retention time.Duration, limit int) (n int, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.rows = slices.DeleteFunc(m.rows, func(r *row) bool {
		old := n < limit && r.State == outbox.Sent && time.Since(r.Sent) >= retention
		if old {
			n++
		}
		return old
	})
	return n, nil
}

// Stats implements outbox.Inspector.
func (m *Memory) Stats(context.Context) (s outbox.Stats, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, r := range m.rows {
		switch r.State {
		case outbox.Waiting:
			s.Waiting++
		case outbox.Held:
			s.Held++
		case outbox.Quarantined:
			s.Quarantined++
		case outbox.Sent:
		}
		if r.State == outbox.Waiting || r.State == outbox.Held {
			s.OldestAge = max(s.OldestAge, time.Since(r.Written))
		}
	}
	for _, k := range m.keys {
		if k.stopped {
			s.StoppedKeys++
		}
	}
	return s, nil
}

// List implements outbox.Inspector.
func (m *Memory) List(_ context.Context, state outbox.State, after int64, limit int) (entries []outbox.Entry, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, r := range m.rows {
		if r.State == state && r.Position > after && len(entries) < limit {
			e := r.Entry
			e.Body = nil
			entries = append(entries, e)
		}
	}
	return entries, nil
}

// ListCall implements outbox.Inspector.
func (m *Memory) ListCall(_ context.Context, hash string, limit int) (entries []outbox.Entry, err error) {
	first, last, err := outbox.CallRange(hash)
	if err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, state := range []outbox.State{outbox.Quarantined, outbox.Held, outbox.Waiting, outbox.Sent} {
		for _, r := range m.rows {
			if r.State == state && r.Call >= first && r.Call <= last && len(entries) < limit {
				e := r.Entry
				e.Body = nil
				entries = append(entries, e)
			}
		}
	}
	return entries, nil
}

// Get implements outbox.Inspector.
func (m *Memory) Get(_ context.Context, position int64) (outbox.Entry, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if i := m.find(position); i >= 0 {
		return m.rows[i].Entry, nil
	}
	return outbox.Entry{}, outbox.ErrNotFound
}

// Retry implements outbox.Inspector.
func (m *Memory) Retry(_ context.Context, position int64) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	i := m.find(position)
	if i < 0 {
		return outbox.ErrNotFound
	}
	r := m.rows[i]
	k := m.keys[r.order]
	if k == nil || r.State != outbox.Held && r.State != outbox.Quarantined {
		return outbox.ErrState
	}
	if first := slices.IndexFunc(m.rows, func(f *row) bool { return f.order == r.order && f.State == outbox.Quarantined }); first >= 0 {
		m.rows[first].State = outbox.Held
	}
	k.stopped, k.retryAt = false, time.Time{}
	return nil
}

// Drop implements outbox.Inspector.
func (m *Memory) Drop(_ context.Context, position int64) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	i := m.find(position)
	if i < 0 {
		return outbox.ErrNotFound
	}
	r := m.rows[i]
	if r.State == outbox.Sent {
		return outbox.ErrState
	}
	m.rows = slices.Delete(m.rows, i, i+1)
	m.goOn(r)
	return nil
}

// Sink is a sink that keeps what it is sent. Its zero value is ready to use.
type Sink struct {
	// Fail decides how a message ends; nil: each is sent. It is called without a lock.
	Fail func(ctx context.Context, m *outbox.Message) error

	mu   sync.Mutex
	sent []outbox.Message
	more chan struct{} // closed when something was sent
}

// Publish implements outbox.Sink.
func (s *Sink) Publish(ctx context.Context, messages []outbox.Message, answer func(i int, err error)) {
	outbox.EachInTurn(ctx, messages, outbox.Limits{}, answer, func(ctx context.Context, m *outbox.Message) error {
		if s.Fail != nil {
			if err := s.Fail(ctx, m); err != nil {
				return err
			}
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.sent = append(s.sent, *m)
		if s.more != nil {
			close(s.more)
			s.more = nil
		}
		return nil
	})
}

// Sent returns what was sent, in order.
func (s *Sink) Sent() []outbox.Message {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.sent)
}

// Wait returns when n messages were sent, or ctx ends.
func (s *Sink) Wait(ctx context.Context, n int) error {
	for {
		s.mu.Lock()
		if len(s.sent) >= n {
			s.mu.Unlock()
			return nil
		}
		if s.more == nil {
			s.more = make(chan struct{})
		}
		more := s.more
		s.mu.Unlock()
		select {
		case <-more:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
