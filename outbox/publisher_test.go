package outbox_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semel-go/semel/outbox"
	"github.com/semel-go/semel/outbox/outboxtest"
)

var errDown = errors.New("the broker is down")

func message(key string, n int) outbox.Message {
	return outbox.Message{Topic: "orders", OrderKey: key, ID: fmt.Sprintf("%s-%d", key, n)}
}

func put(t *testing.T, m *outboxtest.Memory, key string, from, to int) {
	t.Helper()
	for n := from; n < to; n++ {
		if err := m.Put(t.Context(), message(key, n)); err != nil {
			t.Fatal(err)
		}
	}
}

// start runs a publisher until the returned function is called, or the test ends.
func start(t *testing.T, st outbox.Store, sink outbox.Sink, o *outbox.Options) (stop func()) {
	t.Helper()
	p, err := outbox.New(st, sink, o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- p.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	t.Cleanup(stop)
	return stop
}

// wait waits until a sink has n messages.
func wait(t *testing.T, s *outboxtest.Sink, n int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
	defer cancel()
	if err := s.Wait(ctx, n); err != nil {
		t.Fatalf("%d messages were sent, want %d", len(s.Sent()), n)
	}
}

func sentIDs(s *outboxtest.Sink) (ids []string) {
	for _, m := range s.Sent() {
		ids = append(ids, m.ID)
	}
	return ids
}

// wantOrder checks that the first publications of each key are in order, complete, and
// how many repeats there are.
func wantOrder(t *testing.T, sent []outbox.Message, perKey map[string]int) (repeats int) {
	t.Helper()
	next := map[string]int{}
	for _, m := range sent {
		var n int
		if _, err := fmt.Sscanf(m.ID, m.OrderKey+"-%d", &n); err != nil {
			t.Fatalf("message %q of key %q: %v", m.ID, m.OrderKey, err)
		}
		switch {
		case n == next[m.OrderKey]:
			next[m.OrderKey]++
		case n > next[m.OrderKey]:
			t.Fatalf("key %q: message %d was published before message %d", m.OrderKey, n, next[m.OrderKey])
		default:
			repeats++
		}
	}
	for key, count := range perKey {
		if next[key] != count {
			t.Errorf("key %q: %d messages were published, want %d", key, next[key], count)
		}
	}
	return repeats
}

func TestPublisher_ManyKeys_EachInOrderOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, sink, want := outboxtest.NewMemory(), &outboxtest.Sink{}, map[string]int{}
		start(t, m, sink, &outbox.Options{Batch: 7, InFlight: 20})
		for n := range 40 {
			for k := range 10 {
				key := fmt.Sprint("k", k)
				put(t, m, key, n, n+1)
				want[key] = n + 1
			}
		}
		wait(t, sink, 400)
		if repeats := wantOrder(t, sink.Sent(), want); repeats != 0 {
			t.Errorf("%d repeats", repeats)
		}
		synctest.Wait()
		if s, _ := m.Stats(t.Context()); s != (outbox.Stats{}) {
			t.Errorf("left in the outbox: %+v", s)
		}
	})
}

func TestPublisher_CommitsLateWithLowerPosition_IsSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, sink := outboxtest.NewMemory(), &outboxtest.Sink{}
		start(t, m, sink, nil)
		commitLate(t, m, func(commits int) { wait(t, sink, commits) })
		if got := sentIDs(sink); !slices.Equal(got, []string{"early-0", "late-0"}) {
			t.Errorf("published %q", got)
		}
	})
}

func TestPublisher_PoisonMessage_StopsItsKeyOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := outboxtest.NewMemory()
		var cured atomic.Bool
		sink := &outboxtest.Sink{Fail: func(_ context.Context, m *outbox.Message) error {
			if m.ID == "bad-1" && !cured.Load() {
				return outbox.Poison(errors.New("too large"))
			}
			return nil
		}}
		start(t, m, sink, nil)
		put(t, m, "bad", 0, 3)
		put(t, m, "good", 0, 5)
		wait(t, sink, 6) // bad-0 and the good ones
		put(t, m, "bad", 3, 4)
		put(t, m, "good", 5, 6)
		wait(t, sink, 7)
		time.Sleep(time.Hour)
		wantOrder(t, sink.Sent(), map[string]int{"bad": 1, "good": 6})
		list, err := m.List(t.Context(), outbox.Quarantined, 0, 10)
		if err != nil || len(list) != 1 || list[0].ID != "bad-1" || list[0].LastError != "too large" {
			t.Fatalf("the quarantine has %+v, %v", list, err)
		}
		cured.Store(true)
		if err := m.Retry(t.Context(), list[0].Position); err != nil {
			t.Fatal(err)
		}
		wait(t, sink, 10)
		wantOrder(t, sink.Sent(), map[string]int{"bad": 4, "good": 6})
	})
}

func TestPublisher_MessageFails_KeyWaitsAndKeepsOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := outboxtest.NewMemory()
		var fails atomic.Int64
		sink := &outboxtest.Sink{Fail: func(_ context.Context, m *outbox.Message) error {
			if m.ID == "slow-2" && fails.Add(1) <= 4 {
				return errDown
			}
			return nil
		}}
		start(t, m, sink, nil)
		began := time.Now()
		put(t, m, "slow", 0, 5)
		put(t, m, "fast", 0, 5)
		wait(t, sink, 7)
		if took := time.Since(began); took > time.Second/2 {
			t.Errorf("the other key waited %v", took)
		}
		wait(t, sink, 10)
		wantOrder(t, sink.Sent(), map[string]int{"slow": 5, "fast": 5})
		if took := time.Since(began); took < 10*time.Second || took > 20*time.Second {
			t.Errorf("4 failures delayed the key by %v, want about 1+2+4+8 s", took)
		}
	})
}

func TestPublisher_MaxAttempts_QuarantinesUnlessSinkIsDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := outboxtest.NewMemory()
		var down atomic.Bool
		down.Store(true)
		sink := &outboxtest.Sink{Fail: func(_ context.Context, m *outbox.Message) error {
			if down.Load() || m.OrderKey == "bad" {
				return errDown
			}
			return nil
		}}
		start(t, m, sink, &outbox.Options{MaxAttempts: 3})
		put(t, m, "bad", 0, 2)
		put(t, m, "good", 0, 2)
		time.Sleep(time.Hour)
		if s, _ := m.Stats(t.Context()); s.Quarantined != 0 {
			t.Fatalf("an outage has quarantined %d messages", s.Quarantined)
		}
		down.Store(false)
		wait(t, sink, 2)
		for n := 2; n < 100; n++ {
			put(t, m, "good", n, n+1)
			time.Sleep(time.Second)
		}
		wantOrder(t, sink.Sent(), map[string]int{"good": 100})
		if list, _ := m.List(t.Context(), outbox.Quarantined, 0, 10); len(list) != 1 || list[0].ID != "bad-0" {
			t.Errorf("the quarantine has %+v", list)
		}
	})
}

// counter is a sink that counts how many messages it has at once.
type counter struct {
	now, most atomic.Int64
	release   chan struct{}
}

func (c *counter) Publish(_ context.Context, messages []outbox.Message, answer func(i int, err error)) {
	c.most.Store(max(c.most.Load(), c.now.Add(int64(len(messages)))))
	<-c.release
	c.now.Add(-int64(len(messages)))
	for i := range messages {
		answer(i, nil)
	}
}

// A topic has InFlight messages under way, and all topics together eight times as many.
func TestPublisher_SinkIsSlow_InFlightIsBounded(t *testing.T) {
	for topics, want := range map[int]struct{ least, most int64 }{1: {30, 30}, 2: {50, 60}, 60: {235, 240}} {
		t.Run(fmt.Sprint(topics), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m, sink := outboxtest.NewMemory(), &counter{release: make(chan struct{})}
				tx := m.Begin()
				for n := range 400 {
					if err := tx.Put(t.Context(), outbox.Message{Topic: fmt.Sprint("t", n%topics), ID: fmt.Sprint(n)}); err != nil {
						t.Fatal(err)
					}
				}
				tx.Commit()
				stop := start(t, m, sink, &outbox.Options{Batch: 10, InFlight: 30, Drain: time.Hour})
				time.Sleep(time.Minute)
				if got := sink.now.Load(); got < want.least || got > want.most {
					t.Errorf("the sink has %d messages, want %d to %d", got, want.least, want.most)
				}
				close(sink.release)
				time.Sleep(time.Minute)
				stop()
				if got := sink.most.Load(); got > want.most {
					t.Errorf("the sink had %d messages at once, want at most %d", got, want.most)
				}
				if s, _ := m.Stats(t.Context()); s != (outbox.Stats{}) {
					t.Errorf("left in the outbox: %+v", s)
				}
			})
		})
	}
}
