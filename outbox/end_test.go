package outbox_test

import (
	"context"
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

func TestPublisher_StoreHangsAtTheEnd_RunEndsAllTheSame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := outboxtest.NewMemory()
		st := &mute{Store: m}
		sink := st.falls(1)
		stop := start(t, st, sink, nil)
		put(t, m, "k", 0, 1)
		wait(t, sink, 1)
		began := time.Now()
		stop()
		if took := time.Since(began); took > 17*time.Second { // Drain, a grace of 1 s, and 5 s for the lanes
			t.Errorf("Run ended after %v", took)
		}
	})
}
