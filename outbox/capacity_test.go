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

// hanging is a sink that fails for some messages after 45 s only, as for those of a Kafka
// partition without a leader, or of a queue without a majority. It reports when messages of
// the topic "works" were sent.
func hanging(works chan<- time.Time, hangs func(m *outbox.Message) bool) *outboxtest.Sink {
	return &outboxtest.Sink{Fail: func(ctx context.Context, m *outbox.Message) error {
		switch {
		case m.Topic == "works":
			works <- time.Now()
		case hangs(m):
			select {
			case <-time.After(45 * time.Second):
				return errDown
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		return nil
	}}
}

func all(*outbox.Message) bool { return true }

// Topics that hang have more messages than InFlight each, one topic after the other. One
// message of a topic that works comes after them.
func TestPublisher_ManyMessagesOfHangingTopics_OtherTopicGoesOn(t *testing.T) {
	for _, topics := range []int{1, 2, 5} {
		t.Run(fmt.Sprint(topics), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := outboxtest.NewMemory()
				works := make(chan time.Time, 1)
				tx := m.Begin()
				for n := range 1500 * topics {
					_ = tx.Put(t.Context(), outbox.Message{Topic: fmt.Sprint("hangs", n/1500), ID: fmt.Sprint(n)})
				}
				_ = tx.Put(t.Context(), outbox.Message{Topic: "works", ID: "w"})
				tx.Commit()
				began := time.Now()
				start(t, m, hanging(works, all), nil)
				if took := (<-works).Sub(began); took > 5*time.Second {
					t.Errorf("the message of the topic that works waited %v", took)
				}
			})
		})
	}
}

// One of two partitions of a topic hangs, and each second 20 messages are written to the
// topic and one to another topic.
func TestPublisher_HalfOfTopicHangs_OtherTopicGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := outboxtest.NewMemory()
		works := make(chan time.Time, 200)
		start(t, m, hanging(works, func(m *outbox.Message) bool { return m.ID[len(m.ID)-1]%2 == 0 }), &outbox.Options{Batch: 32, InFlight: 128})
		var written []time.Time
		for s := range 200 {
			tx := m.Begin()
			for n := range 20 {
				_ = tx.Put(t.Context(), outbox.Message{Topic: "half", ID: fmt.Sprint(s, "-", n)})
			}
			_ = tx.Put(t.Context(), outbox.Message{Topic: "works", OrderKey: "k", ID: fmt.Sprint("w", s)})
			written = append(written, time.Now())
			tx.Commit()
			time.Sleep(time.Second)
		}
		if len(works) < len(written) {
			t.Fatalf("%d of %d messages of the topic that works were sent", len(works), len(written))
		}
		var longest time.Duration
		for _, at := range written {
			longest = max(longest, (<-works).Sub(at))
		}
		if longest > time.Second {
			t.Errorf("a message of the topic that works waited %v", longest)
		}
	})
}

// A topic fails at first. When it is back, one of its partitions hangs.
func TestPublisher_HalfOfTopicHangsAfterOutage_OtherHalfGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := outboxtest.NewMemory()
		var up time.Time
		var sent atomic.Int64
		sink := &outboxtest.Sink{Fail: func(ctx context.Context, m *outbox.Message) error {
			switch {
			case time.Now().Before(up):
				return errDown
			case m.ID[len(m.ID)-1]%2 == 0:
				<-ctx.Done()
				return ctx.Err()
			}
			sent.Add(1)
			return nil
		}}
		for n := range 200 {
			if err := m.Put(t.Context(), outbox.Message{Topic: "half", ID: fmt.Sprint(n)}); err != nil {
				t.Fatal(err)
			}
		}
		up = time.Now().Add(10 * time.Second)
		start(t, m, sink, nil)
		time.Sleep(time.Minute + 10*time.Second)
		if n := sent.Load(); n != 100 {
			t.Errorf("a minute after the outage %d of 100 messages of the partition that works are sent", n)
		}
	})
}

// A call that began before an outage fails during it, while the sink has the few messages
// that try the topic again.
func TestPublisher_OlderCallFailsDuringOutage_SinkHasFewMessages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := outboxtest.NewMemory()
		var now atomic.Int64
		hangs := time.Now().Add(20 * time.Second)
		sink := &outboxtest.Sink{Fail: func(ctx context.Context, m *outbox.Message) error {
			switch {
			case m.ID == "old":
				time.Sleep(30 * time.Second)
			case time.Now().After(hangs):
				now.Add(1)
				<-ctx.Done()
				now.Add(-1)
			}
			return errDown
		}}
		start(t, m, sink, nil)
		write := func(id string) {
			if err := m.Put(t.Context(), outbox.Message{Topic: "away", ID: id}); err != nil {
				t.Fatal(err)
			}
		}
		write("old")
		time.Sleep(time.Second)
		for n := range 200 {
			write(fmt.Sprint(n))
		}
		most := int64(0)
		for range 60 {
			time.Sleep(time.Second)
			most = max(most, now.Load())
		}
		if most != 16 {
			t.Errorf("the sink had %d messages of the topic at once, want 16", most)
		}
	})
}

// whole is a store that counts the calls of Take that leave topics out.
type whole struct {
	outbox.Store
	partial atomic.Int64
}

func (w *whole) Take(ctx context.Context, lanes []outbox.Lane, busy []int64, paused []string, limit int) ([]outbox.Taken, error) {
	if len(paused) > 0 {
		w.partial.Add(1)
	}
	return w.Store.Take(ctx, lanes, busy, paused, limit)
}

// A topic has more messages than the sink can send at once, but each has its answer soon. A
// Take that leaves the topic out would read past all its messages.
func TestPublisher_TopicIsBusy_IsNotLeftOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := outboxtest.NewMemory()
		tx := m.Begin()
		for n := range 3000 {
			_ = tx.Put(t.Context(), outbox.Message{Topic: "busy", ID: fmt.Sprint(n)})
		}
		tx.Commit()
		st := &whole{Store: m}
		sink := &outboxtest.Sink{Fail: func(context.Context, *outbox.Message) error {
			time.Sleep(200 * time.Millisecond)
			return nil
		}}
		began := time.Now()
		start(t, st, sink, nil)
		wait(t, sink, 3000)
		if took := time.Since(began); took > 2*time.Second {
			t.Errorf("3000 messages took %v, want 6 times 200 ms for 512 at once", took)
		}
		if n := st.partial.Load(); n > 0 {
			t.Errorf("%d calls of Take left the topic out", n)
		}
	})
}

// A topic is away: the few messages that try it again hang. Others do not wait for its places.
func TestPublisher_TopicIsTriedAgain_OtherTopicDoesNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := outboxtest.NewMemory()
		works := make(chan time.Time, 200)
		for n := range 100 {
			if err := m.Put(t.Context(), outbox.Message{Topic: "away", ID: fmt.Sprint(n)}); err != nil {
				t.Fatal(err)
			}
		}
		start(t, m, hanging(works, all), &outbox.Options{Batch: 16, InFlight: 16, Backoff: func(int) time.Duration { return time.Second }})
		time.Sleep(time.Minute)
		var longest time.Duration
		for n := range 2000 {
			written := time.Now()
			if err := m.Put(t.Context(), outbox.Message{Topic: "works", ID: fmt.Sprint("w", n)}); err != nil {
				t.Fatal(err)
			}
			longest = max(longest, (<-works).Sub(written))
			time.Sleep(100 * time.Millisecond)
		}
		if longest > 100*time.Millisecond {
			t.Errorf("a message of the topic that works waited %v", longest)
		}
	})
}
