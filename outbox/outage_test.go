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

// mute is a store in a network that swallows packets: while it is silent, requests hang
// until their contexts end.
type mute struct {
	outbox.Store
	silent atomic.Bool
}

// falls is a sink that holds its first n messages until it has all of them. Then the store
// is silent, so that their results hang.
func (m *mute) falls(n int64) *outboxtest.Sink {
	var came atomic.Int64
	full := make(chan struct{})
	return &outboxtest.Sink{Fail: func(context.Context, *outbox.Message) error {
		if came.Add(1) == n {
			m.silent.Store(true)
			close(full)
		}
		<-full
		return nil
	}}
}

func (m *mute) hang(ctx context.Context) error {
	if m.silent.Load() {
		<-ctx.Done()
	}
	return ctx.Err()
}

func (m *mute) Lease(ctx context.Context, p string, d time.Duration) ([]outbox.Lane, int, error) {
	if err := m.hang(ctx); err != nil {
		return nil, 0, err
	}
	return m.Store.Lease(ctx, p, d)
}

func (m *mute) Take(ctx context.Context, lanes []outbox.Lane, busy []int64, paused []string, limit int) ([]outbox.Taken, error) {
	if err := m.hang(ctx); err != nil {
		return nil, err
	}
	return m.Store.Take(ctx, lanes, busy, paused, limit)
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

// putKeys writes message n of 64 order keys, so that each lane has some, in one
// transaction.
func putKeys(t *testing.T, m *outboxtest.Memory, n int) {
	t.Helper()
	tx := m.Begin()
	for k := range 64 {
		if err := tx.Put(t.Context(), message(fmt.Sprint("k", k), n)); err != nil {
			t.Fatal(err)
		}
	}
	tx.Commit()
}

// A publisher loses the database for longer than its lease while results are on their
// way, and leases the same lanes with the same fences again before it can settle them.
// Another one joins later, so that half of the lanes change their owner.
func TestPublisher_LeaseLapsesWithResultsUnsettled_GivesLanesBackLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := outboxtest.NewMemory()
		st := &mute{Store: m}
		var first, second heldLanes
		sink := st.falls(64)
		start(t, st, sink, first.options())
		putKeys(t, m, 0)
		wait(t, sink, 64)
		time.Sleep(23 * time.Second) // the results hang for 30 s, and the lanes come back after 25 s
		if first.count() != 0 {
			t.Fatalf("the publisher has %d lanes after its lease, so the test tests nothing", first.count())
		}
		st.silent.Store(false)
		time.Sleep(time.Minute)
		if s, _ := m.Stats(t.Context()); s != (outbox.Stats{}) {
			t.Fatalf("left in the outbox after the outage: %+v", s)
		}
		start(t, m, sink, second.options())
		time.Sleep(time.Minute)
		if a, b := first.count(), second.count(); a != 8 || b != 8 {
			t.Errorf("lanes: %d and %d, want 8 and 8", a, b)
		}
		putKeys(t, m, 1)
		time.Sleep(time.Minute)
		if s, _ := m.Stats(t.Context()); s != (outbox.Stats{}) {
			t.Errorf("left in the outbox: %+v", s)
		}
	})
}

// Two publishers lose the database together. The one whose lanes have the high numbers
// is back first, gets all lanes, and gives half of them back, its old ones.
func TestPublishers_BothLoseTheStore_AllIsSentAfterwards(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := outboxtest.NewMemory()
		var stores [2]mute
		var lanes [2]heldLanes
		var sinks [2]*outboxtest.Sink
		for i := range stores {
			stores[i].Store = m
			sinks[i] = stores[i].falls(1)
			start(t, &stores[i], sinks[i], lanes[i].options())
			time.Sleep(62 * time.Second) // 2 s after a renewal
		}
		putKeys(t, m, 0)
		for _, sink := range sinks {
			wait(t, sink, 1)
		}
		time.Sleep(18 * time.Second) // longer than the leases; the results hang for 30 s
		stores[1].silent.Store(false)
		time.Sleep(10 * time.Second)
		if n := lanes[1].count(); n != 16 {
			t.Fatalf("the publisher that is back has %d lanes, want all, so that it has to give some back", n)
		}
		stores[0].silent.Store(false)
		time.Sleep(time.Minute)
		if a, b := lanes[0].count(), lanes[1].count(); a != 8 || b != 8 {
			t.Errorf("lanes: %d and %d, want 8 and 8", a, b)
		}
		putKeys(t, m, 1)
		time.Sleep(time.Minute)
		if s, _ := m.Stats(t.Context()); s != (outbox.Stats{}) {
			t.Errorf("left in the outbox: %+v", s)
		}
	})
}

// keeper is a store that refuses to take lanes back.
type keeper struct {
	outbox.Store
	releases atomic.Int64
}

func (k *keeper) Release(context.Context, string, []outbox.Lane) error {
	k.releases.Add(1)
	return errors.New("no")
}

func TestPublisher_ReleaseFails_RepeatsAfterRenewal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := outboxtest.NewMemory()
		st := &keeper{Store: m}
		var lanes heldLanes
		start(t, st, &outboxtest.Sink{}, lanes.options())
		time.Sleep(time.Second)
		start(t, m, &outboxtest.Sink{}, nil)
		time.Sleep(time.Minute) // 12 renewals
		if n := st.releases.Load(); n < 8 || n > 13 {
			t.Errorf("%d releases in a minute, want one after each renewal", n)
		}
		if n := lanes.count(); n != 16 {
			t.Errorf("the publisher has %d lanes, want 16", n)
		}
	})
}

// narrow is a store in a network that takes 2 s for each message.
type narrow struct{ outbox.Store }

func (n narrow) Take(ctx context.Context, lanes []outbox.Lane, busy []int64, paused []string, limit int) ([]outbox.Taken, error) {
	select {
	case <-time.After(time.Duration(limit) * 2 * time.Second):
		return n.Store.Take(ctx, lanes, busy, paused, limit)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func TestPublisher_BatchTakesTooLongToRead_ReadsFewer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, sink := outboxtest.NewMemory(), &outboxtest.Sink{}
		putKeys(t, m, 0)
		start(t, narrow{m}, sink, nil)
		wait(t, sink, 64)
	})
}

// 3000 messages without an order key wait for a topic that fails, and one for a topic that
// works comes after them. The topic that fails gets few messages at a time, and all of them
// when it works again.
func TestPublisher_ManyMessagesOfFailingTopic_OtherTopicGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := outboxtest.NewMemory()
		var cured atomic.Bool
		var attempts atomic.Int64
		healthy := make(chan struct{})
		sink := &outboxtest.Sink{Fail: func(_ context.Context, m *outbox.Message) error {
			switch {
			case m.ID == "healthy":
				close(healthy)
			case !cured.Load():
				attempts.Add(1)
				return errDown
			}
			return nil
		}}
		tx := m.Begin()
		for n := range 3000 {
			if err := tx.Put(t.Context(), outbox.Message{Topic: "missing", ID: fmt.Sprint(n)}); err != nil {
				t.Fatal(err)
			}
		}
		if err := tx.Put(t.Context(), outbox.Message{Topic: "orders", ID: "healthy"}); err != nil {
			t.Fatal(err)
		}
		tx.Commit()
		began := time.Now()
		start(t, m, sink, nil)
		<-healthy
		if took := time.Since(began); took > time.Second {
			t.Errorf("the message of the topic that works waited %v", took)
		}
		time.Sleep(2 * time.Minute)
		if n := attempts.Load(); n < 256 || n > 2000 {
			t.Errorf("%d attempts in 2 minutes, want at most 1024 and then about 16 each 5 s", n)
		}
		cured.Store(true)
		time.Sleep(90 * time.Second)
		if s, _ := m.Stats(t.Context()); s != (outbox.Stats{}) {
			t.Errorf("left in the outbox after the outage: %+v", s)
		}
	})
}

// The destination is away for 10 s. Then it does not answer for one of two topics, and fails
// for the other one for 10 s more.
func TestPublisher_TopicHangsAfterOutage_OtherTopicGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := outboxtest.NewMemory()
		var phase atomic.Int64
		var sent atomic.Int64
		sink := &outboxtest.Sink{Fail: func(ctx context.Context, m *outbox.Message) error {
			switch {
			case phase.Load() == 0 || phase.Load() == 1 && m.Topic == "healthy":
				return errDown
			case m.Topic == "silent":
				<-ctx.Done()
				return ctx.Err()
			}
			sent.Add(1)
			return nil
		}}
		tx := m.Begin()
		for n := range 100 {
			for _, topic := range []string{"silent", "healthy"} {
				if err := tx.Put(t.Context(), outbox.Message{Topic: topic, ID: fmt.Sprint(n)}); err != nil {
					t.Fatal(err)
				}
			}
		}
		tx.Commit()
		start(t, m, sink, nil)
		time.Sleep(10 * time.Second)
		phase.Store(1)
		time.Sleep(10 * time.Second)
		phase.Store(2)
		time.Sleep(time.Minute)
		if n := sent.Load(); n != 100 {
			t.Errorf("a minute after the outage %d of 100 messages of the topic that works are sent", n)
		}
	})
}
