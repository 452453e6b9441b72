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

// forgetful settles, and loses the reply to each first settlement of a message.
type forgetful struct {
	*outboxtest.Memory
	calls atomic.Int64
}

func (f *forgetful) Settle(ctx context.Context, results []outbox.Result) error {
	err := f.Memory.Settle(ctx, results)
	if f.calls.Add(1)%2 == 1 {
		return errDown
	}
	return err
}

// A result whose reply was lost is sent again, and is one attempt.
func TestPublisher_SettlementReplyIsLost_CountsAttemptOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &forgetful{Memory: outboxtest.NewMemory()}
		var attempts atomic.Int64
		sink := &outboxtest.Sink{Fail: func(context.Context, *outbox.Message) error {
			if attempts.Add(1) <= 3 {
				return errDown
			}
			return nil
		}}
		start(t, m, sink, &outbox.Options{Backoff: func(int) time.Duration { return time.Hour }})
		put(t, m.Memory, "k", 0, 1)
		for want := 1; want <= 3; want++ {
			time.Sleep(time.Minute)
			held, err := m.List(t.Context(), outbox.Held, 0, 10)
			if err != nil || len(held) != 1 || held[0].Attempts != want {
				t.Fatalf("after %d failures: %+v, %v", want, held, err)
			}
			time.Sleep(time.Hour)
		}
		wait(t, sink, 1)
	})
}
