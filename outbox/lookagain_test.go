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

// lame is a store that answers one call of Take without the topic that hangs too late.
type lame struct {
	outbox.Store
	late atomic.Bool
}

func (l *lame) Take(ctx context.Context, lanes []outbox.Lane, busy []int64, paused []string, limit int) ([]outbox.Taken, error) {
	if len(paused) > 0 && !l.late.Swap(true) {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return l.Store.Take(ctx, lanes, busy, paused, limit)
}

// A Take without a topic that hangs fails, as after the end of its connection. Others may have messages.
func TestPublisher_TakeFailsWhileTopicHangs_OtherTopicIsLookedForSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := outboxtest.NewMemory()
		works := make(chan time.Time, 1)
		tx := m.Begin()
		for n := range 1500 {
			_ = tx.Put(t.Context(), outbox.Message{Topic: "hangs", ID: fmt.Sprint(n)})
		}
		_ = tx.Put(t.Context(), outbox.Message{Topic: "works", ID: "w"})
		_ = tx.Commit()
		began := time.Now()
		start(t, &lame{Store: m}, hanging(works, all), nil)
		if took := (<-works).Sub(began); took > 92*time.Second {
			t.Errorf("the message of the topic that works waited %v; a Take lasts 30 s, and the pause after it 60 s", took)
		}
	})
}

// The store is away for 35 s while a topic hangs. A Take that had no answer meanwhile says
// nothing about how long it takes to find messages of other topics.
func TestPublisher_StoreIsAwayWhileTopicHangs_OtherTopicGoesOnAfterwards(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := outboxtest.NewMemory()
		st := &mute{Store: m}
		works := make(chan time.Time, 1)
		tx := m.Begin()
		for n := range 1500 {
			_ = tx.Put(t.Context(), outbox.Message{Topic: "hangs", ID: fmt.Sprint(n)})
		}
		_ = tx.Commit()
		start(t, st, hanging(works, all), nil)
		time.Sleep(10 * time.Second)
		st.silent.Store(true)
		time.Sleep(35 * time.Second)
		st.silent.Store(false)
		time.Sleep(10 * time.Second)
		written := time.Now()
		if err := m.Put(t.Context(), outbox.Message{Topic: "works", ID: "w"}); err != nil {
			t.Fatal(err)
		}
		if took := (<-works).Sub(written); took > 5*time.Second {
			t.Errorf("the message of the topic that works waited %v", took)
		}
	})
}
