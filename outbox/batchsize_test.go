package outbox_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semel-go/semel/outbox"
	"github.com/semel-go/semel/outbox/outboxtest"
)

// batches is a sink that answers each call after 100 ms, like a broker that takes a batch.
type batches struct {
	calls, sent atomic.Int64
	done        chan struct{} // gets a value when all are sent
	all         int64
}

func (b *batches) Publish(_ context.Context, messages []outbox.Message, answer func(int, error)) {
	b.calls.Add(1)
	time.Sleep(100 * time.Millisecond)
	for i := range messages {
		answer(i, nil)
	}
	if b.sent.Add(int64(len(messages))) == b.all {
		close(b.done)
	}
}

// While messages of a key are being sent, a Take finds no further ones of it. It is no pause:
// the batches must not become small.
func TestPublisher_BacklogOfOneKey_IsSentInLargeBatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, sink := outboxtest.NewMemory(), &batches{done: make(chan struct{}), all: 10_000}
		tx := m.Begin()
		for n := range sink.all {
			_ = tx.Put(t.Context(), message("k", int(n)))
		}
		_ = tx.Commit()
		start(t, m, sink, nil)
		<-sink.done
		if n := sink.calls.Load(); n > 45 {
			t.Errorf("10,000 messages were sent in %d calls, want about 40 of 256", n)
		}
	})
}

// sizes is a store that notes how many messages the next Take may return. Some calls of Take fail.
type sizes struct {
	outbox.Store
	fails atomic.Int64 // so many
	next  atomic.Int64 // 0: to be noted
}

func (s *sizes) Take(ctx context.Context, lanes []outbox.Lane, busy []int64, paused []string, limit int) ([]outbox.Taken, error) {
	if s.fails.Add(-1) >= 0 {
		return nil, errors.New("no")
	}
	s.next.CompareAndSwap(0, int64(limit))
	return s.Store.Take(ctx, lanes, busy, paused, limit)
}

// After a pause nobody knows how large the next messages are.
func TestPublisher_AfterPause_FirstTakeIsSmall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, sink := outboxtest.NewMemory(), &outboxtest.Sink{}
		st := &sizes{Store: m}
		start(t, st, sink, nil)
		for n := range 1000 {
			put(t, m, fmt.Sprint(n), 0, 1)
		}
		wait(t, sink, 1000)
		time.Sleep(time.Minute)
		st.next.Store(0)
		put(t, m, "k", 0, 1)
		wait(t, sink, 1001)
		if n := st.next.Load(); n > 16 {
			t.Errorf("after a pause the first Take read up to %d messages, want 16", n)
		}
	})
}

// A Take that fails says nothing about the size of messages.
func TestPublisher_TakeFailsBeforeLargeMessages_BytesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := outboxtest.NewMemory()
		tx := m.Begin()
		body := make([]byte, 4<<20)
		for n := range 600 {
			_ = tx.Put(t.Context(), outbox.Message{Topic: "large", ID: fmt.Sprint(n), Body: body})
		}
		_ = tx.Commit()
		st := &sizes{Store: m}
		var sent atomic.Int64
		start(t, st, &outboxtest.Sink{Fail: func(context.Context, *outbox.Message) error {
			time.Sleep(100 * time.Millisecond)
			sent.Add(1)
			return nil
		}}, nil)
		for sent.Load() < 200 {
			time.Sleep(10 * time.Millisecond)
		}
		st.fails.Store(10)
		st.next.Store(0)
		time.Sleep(time.Minute)
		if n := st.next.Load(); n > 16 {
			t.Errorf("after a failure the first Take read up to %d messages of 4 MiB, want 16", n)
		}
	})
}

// In a slow network a Take of more than 30 messages has no answer in time. After a pause
// the publisher still knows that.
func TestPublisher_PauseInSlowNetwork_StillReadsFew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, sink := outboxtest.NewMemory(), &outboxtest.Sink{}
		st := &heavy{narrow: narrow{m}}
		start(t, st, sink, nil)
		putKeys(t, m, 0)
		wait(t, sink, 64)
		time.Sleep(time.Minute)
		st.late.Store(0)
		putKeys(t, m, 1)
		wait(t, sink, 128)
		if n := st.late.Load(); n > 0 {
			t.Errorf("%d calls of Take had no answer in time", n)
		}
	})
}

// heavy is a store in a network that takes 4 s for each message that a Take returns.
type heavy struct {
	narrow
	late atomic.Int64
}

func (h *heavy) Take(ctx context.Context, lanes []outbox.Lane, busy []int64, paused []string, limit int) ([]outbox.Taken, error) {
	taken, err := h.Store.Take(ctx, lanes, busy, paused, limit)
	select {
	case <-time.After(time.Duration(len(taken)) * 4 * time.Second):
		return taken, err
	case <-ctx.Done():
		h.late.Add(1)
		return nil, ctx.Err()
	}
}
