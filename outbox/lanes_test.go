package outbox_test

import (
	"context"
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

// frozen is a store whose requests hang while it is frozen, like the requests of a
// process that was stopped.
type frozen struct {
	outbox.Store
	gate atomic.Pointer[chan struct{}] // nil: it is not frozen
}

func (f *frozen) freeze() (thaw func()) {
	gate := make(chan struct{})
	f.gate.Store(&gate)
	return func() { close(gate) }
}

func (f *frozen) wait() {
	if gate := f.gate.Load(); gate != nil {
		<-*gate
	}
}

func (f *frozen) Lease(ctx context.Context, p string, d time.Duration) ([]outbox.Lane, int, error) {
	f.wait()
	if ctx.Err() != nil {
		return nil, 0, ctx.Err()
	}
	return f.Store.Lease(ctx, p, d)
}

func (f *frozen) Take(ctx context.Context, lanes []outbox.Lane, busy []int64, paused []string, limit int) ([]outbox.Taken, error) {
	f.wait()
	return f.Store.Take(ctx, lanes, busy, paused, limit)
}

// A publisher freezes while its sink sends the first of four messages of a key. Another
// one takes over and sends all. When the first wakes, it sends no other message.
func TestPublisher_FrozenPastItsLease_SendsNothingNew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := outboxtest.NewMemory()
		ice := &frozen{Store: m}
		var sending, wake = make(chan struct{}), make(chan struct{})
		old := &outboxtest.Sink{Fail: func(_ context.Context, m *outbox.Message) error {
			if m.ID == "k-0" {
				close(sending)
				<-wake
			}
			return nil
		}}
		start(t, ice, old, nil)
		put(t, m, "k", 0, 4)
		<-sending
		thaw := ice.freeze()
		other := &outboxtest.Sink{}
		start(t, m, other, nil)
		wait(t, other, 4)
		put(t, m, "k", 4, 6)
		wait(t, other, 6)
		thaw()
		close(wake)
		time.Sleep(time.Minute)
		put(t, m, "k", 6, 9)
		put(t, m, "x", 0, 30)
		time.Sleep(time.Minute)
		wantOrder(t, other.Sent(), nil)
		late := old.Sent()
		if len(late) == 0 || late[0].ID != "k-0" {
			t.Fatalf("the old publisher sent %v, want the message that it was sending", late)
		}
		for _, l := range late[1:] {
			if slices.ContainsFunc([]string{"k-1", "k-2", "k-3", "k-4", "k-5"}, func(id string) bool { return l.ID == id }) {
				t.Errorf("the old publisher sent %s after its lease", l.ID)
			}
		}
		if s, _ := m.Stats(t.Context()); s != (outbox.Stats{}) {
			t.Errorf("left in the outbox: %+v", s)
		}
	})
}

// Publishers join and leave while messages are written, so that lanes change their
// owners. All publishers share one sink, whose sends take time.
func TestPublishers_JoinAndLeave_KeysKeepTheirOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, want := outboxtest.NewMemory(), map[string]int{}
		var calls atomic.Int64
		sink := &outboxtest.Sink{Fail: func(context.Context, *outbox.Message) error {
			time.Sleep(time.Duration(calls.Add(1)%17) * time.Millisecond)
			return nil
		}}
		o := &outbox.Options{Lease: time.Second, Batch: 16, InFlight: 64}
		stops := []func(){start(t, m, sink, o)}
		total := 0
		for n := range 60 {
			for k := range 20 {
				key := fmt.Sprint("k", k)
				put(t, m, key, n, n+1)
				want[key] = n + 1
				total++
			}
			time.Sleep(150 * time.Millisecond)
			switch {
			case n%10 < 4:
				stops = append(stops, start(t, m, sink, o))
			case n%10 >= 6 && len(stops) > 1:
				stops[0]()
				stops = stops[1:]
			}
		}
		wait(t, sink, total)
		if repeats := wantOrder(t, sink.Sent(), want); repeats != 0 {
			t.Errorf("%d repeats; lanes that are given back have nothing in flight", repeats)
		}
	})
}

// heldLanes are the lanes that a publisher has, by its events.
type heldLanes struct {
	mu    sync.Mutex
	lanes map[int]bool
}

func (h *heldLanes) options() *outbox.Options {
	h.lanes = map[int]bool{}
	return &outbox.Options{Observe: func(_ context.Context, e outbox.Event) {
		h.mu.Lock()
		defer h.mu.Unlock()
		switch e.Kind {
		case outbox.EventClaimed:
			h.lanes[e.Lane] = true
		case outbox.EventReleased, outbox.EventLost:
			delete(h.lanes, e.Lane)
		}
	}}
}

func (h *heldLanes) has(lane int) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.lanes[lane]
}

func (h *heldLanes) count() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.lanes)
}

func TestPublishers_Two_ShareLanesAndGiveThemBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, sink := outboxtest.NewMemory(), &outboxtest.Sink{}
		var lanes [2]heldLanes
		count := func() (a, b int) { return lanes[0].count(), lanes[1].count() }
		stop := start(t, m, sink, lanes[0].options())
		time.Sleep(time.Second)
		if a, b := count(); a != 16 || b != 0 {
			t.Fatalf("lanes: %d and %d, want 16 and 0", a, b)
		}
		start(t, m, sink, lanes[1].options())
		time.Sleep(30 * time.Second)
		if a, b := count(); a != 8 || b != 8 {
			t.Fatalf("lanes: %d and %d, want 8 and 8", a, b)
		}
		stop()
		time.Sleep(6 * time.Second) // a renewal, no expiry
		if a, b := count(); a != 0 || b != 16 {
			t.Fatalf("lanes: %d and %d, want 0 and 16", a, b)
		}
	})
}

// flaky is a store that fails often.
type flaky struct {
	outbox.Store
	calls atomic.Int64
}

func (f *flaky) fails() error {
	if f.calls.Add(1)%3 != 0 {
		return errDown
	}
	return nil
}

func (f *flaky) Take(ctx context.Context, lanes []outbox.Lane, busy []int64, paused []string, limit int) ([]outbox.Taken, error) {
	if err := f.fails(); err != nil {
		return nil, err
	}
	return f.Store.Take(ctx, lanes, busy, paused, limit)
}

func (f *flaky) Settle(ctx context.Context, results []outbox.Result) error {
	if err := f.fails(); err != nil {
		return err
	}
	return f.Store.Settle(ctx, results)
}

func TestPublisher_StoreFailsOften_AllSentInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, sink := outboxtest.NewMemory(), &outboxtest.Sink{}
		start(t, &flaky{Store: m}, sink, nil)
		put(t, m, "a", 0, 50)
		put(t, m, "b", 0, 50)
		wait(t, sink, 100)
		if repeats := wantOrder(t, sink.Sent(), map[string]int{"a": 50, "b": 50}); repeats != 0 {
			t.Errorf("%d repeats", repeats)
		}
	})
}

func TestPublisher_Retention_KeepsSentMessagesForAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, sink := outboxtest.NewMemory(), &outboxtest.Sink{}
		start(t, m, sink, &outbox.Options{Retention: time.Hour})
		put(t, m, "k", 0, 3)
		wait(t, sink, 3)
		time.Sleep(time.Minute)
		if sent, _ := m.List(t.Context(), outbox.Sent, 0, 10); len(sent) != 3 {
			t.Errorf("%d sent messages are kept, want 3", len(sent))
		}
		time.Sleep(time.Hour + 2*time.Minute)
		if sent, _ := m.List(t.Context(), outbox.Sent, 0, 10); len(sent) != 0 {
			t.Errorf("%d sent messages are kept, want none", len(sent))
		}
	})
}
