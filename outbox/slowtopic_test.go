package outbox_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semel-go/semel/outbox"
	"github.com/semel-go/semel/outbox/outboxtest"
)

// pastBacklog is a store whose Take lasts long if it leaves topics out, because it reads past
// all their messages.
type pastBacklog struct {
	outbox.Store
	scan    time.Duration
	partial atomic.Int64
}

func (p *pastBacklog) Take(ctx context.Context, lanes []outbox.Lane, busy []int64, paused []string, limit int) ([]outbox.Taken, error) {
	if len(paused) > 0 {
		p.partial.Add(1)
		select {
		case <-time.After(p.scan):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return p.Store.Take(ctx, lanes, busy, paused, limit)
}

// A destination that answers each message after 1 s is slow, and does not hang. The publisher
// has one topic, and a backlog of it.
func TestPublisher_TopicIsSlow_IsNotLeftOut(t *testing.T) {
	for _, scan := range []time.Duration{2 * time.Second, 10 * time.Second, 40 * time.Second} {
		t.Run(scan.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := outboxtest.NewMemory()
				tx := m.Begin()
				for n := range 10_000 {
					_ = tx.Put(t.Context(), outbox.Message{Topic: "slow", ID: fmt.Sprint(n)})
				}
				tx.Commit()
				st := &pastBacklog{Store: m, scan: scan}
				var n atomic.Int64
				sink := &outboxtest.Sink{Fail: func(context.Context, *outbox.Message) error {
					time.Sleep(time.Second/2 + time.Second*time.Duration(n.Add(1)*7919%1000)/1000)
					return nil
				}}
				began := time.Now()
				start(t, st, sink, nil)
				wait(t, sink, 10_000)
				// A Take that looks for messages of other topics lasts up to 30 s. It has a tenth of the time.
				one := min(scan, 30*time.Second)
				if took, most := time.Since(began), 24*time.Second*11/10+one; took > most || st.partial.Load() > 1+int64(took/(10*one)) {
					t.Errorf("10,000 messages took %v, want at most %v; %d calls of Take left the topic out", took, most, st.partial.Load())
				}
			})
		})
	}
}
