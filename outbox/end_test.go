package outbox_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semel-go/semel/outbox"
	"github.com/semel-go/semel/outbox/outboxtest"
)

func TestPublisher_ContextEnds_FinishesWhatItSends(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := outboxtest.NewMemory()
		sending := make(chan struct{}, 100)
		sink := &outboxtest.Sink{Fail: func(context.Context, *outbox.Message) error {
			sending <- struct{}{}
			time.Sleep(3 * time.Second)
			return nil
		}}
		stop := start(t, m, sink, nil)
		put(t, m, "k", 0, 1)
		<-sending
		put(t, m, "later", 0, 1)
		began := time.Now()
		stop()
		if took := time.Since(began); took > 4*time.Second {
			t.Errorf("Run ended after %v", took)
		}
		if s, _ := m.Stats(t.Context()); s.Waiting > 1 {
			t.Errorf("left in the outbox: %+v; the message that was sent must not be", s)
		}
		if lanes, _, _ := m.Lease(t.Context(), "next", time.Minute); len(lanes) != 16 {
			t.Errorf("the next publisher gets %d lanes at once, want 16", len(lanes))
		}
	})
}

// deaf is a sink that does not obey its context, and never answers.
type deaf struct{}

func (deaf) Publish(context.Context, []outbox.Message, func(int, error)) { time.Sleep(24 * time.Hour) }

func TestPublisher_SinkIgnoresItsContext_RunEndsAllTheSame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := outboxtest.NewMemory()
		stop := start(t, m, deaf{}, &outbox.Options{Drain: 5 * time.Second})
		put(t, m, "k", 0, 3)
		time.Sleep(time.Second)
		began := time.Now()
		stop()
		if took := time.Since(began); took > 10*time.Second {
			t.Errorf("Run ended after %v", took)
		}
		if s, _ := m.Stats(t.Context()); s.Waiting != 3 {
			t.Errorf("left in the outbox: %+v, want all 3", s)
		}
		time.Sleep(25 * time.Hour) // the sink's goroutine ends
	})
}

// mute is a store that stops to answer.
type mute struct {
	outbox.Store
	silent atomic.Bool
}

func (m *mute) hang(ctx context.Context) error {
	if m.silent.Load() {
		<-ctx.Done()
	}
	return ctx.Err()
}

func (m *mute) Settle(ctx context.Context, results []outbox.Result) error {
	if err := m.hang(ctx); err != nil {
		return err
	}
	return m.Store.Settle(ctx, results)
}

func (m *mute) Release(ctx context.Context, p string, lanes []outbox.Lane) error {
	if err := m.hang(ctx); err != nil {
		return err
	}
	return m.Store.Release(ctx, p, lanes)
}

func TestPublisher_StoreHangsAtTheEnd_RunEndsAllTheSame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, sink := &mute{Store: outboxtest.NewMemory()}, &outboxtest.Sink{}
		stop := start(t, m, sink, nil)
		time.Sleep(time.Second)
		m.silent.Store(true)
		put(t, m.Store.(*outboxtest.Memory), "k", 0, 1) // the next one would wait until this one is settled
		wait(t, sink, 1)
		began := time.Now()
		stop()
		if took := time.Since(began); took > 17*time.Second { // Drain, a grace of 1 s, and 5 s for the lanes
			t.Errorf("Run ended after %v", took)
		}
	})
}
