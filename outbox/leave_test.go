package outbox_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semel-go/semel/outbox"
	"github.com/semel-go/semel/outbox/outboxtest"
)

// hangs is a sink that answers when its context ends, like a queue without a majority
// of its replicas.
type hangs struct{}

func (hangs) Publish(ctx context.Context, messages []outbox.Message, answer func(int, error)) {
	<-ctx.Done()
	for i := range messages {
		answer(i, ctx.Err())
	}
}

// Each send takes 8 s, less than the lease, and begins before a second publisher joins.
func TestPublishers_JoinDuringSlowSends_NoRepeats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, sink := outboxtest.NewMemory(), &outboxtest.Sink{Fail: func(context.Context, *outbox.Message) error {
			time.Sleep(8 * time.Second)
			return nil
		}}
		var first, second heldLanes
		start(t, m, sink, first.options())
		time.Sleep(3 * time.Second)
		putKeys(t, m, 0)
		start(t, m, sink, second.options())
		time.Sleep(6 * time.Second) // the first has renewed after 5 s
		if a, b := first.count(), second.count(); a != 16 || b != 0 {
			t.Errorf("during the sends: %d and %d lanes, want 16 and 0", a, b)
		}
		time.Sleep(time.Minute)
		if a, b := first.count(), second.count(); a != 8 || b != 8 {
			t.Errorf("after the sends: %d and %d lanes, want 8 and 8", a, b)
		}
		if repeats := wantOrder(t, sink.Sent(), nil); repeats != 0 || len(sink.Sent()) != 64 {
			t.Errorf("%d messages were sent, of which %d are repeats", len(sink.Sent()), repeats)
		}
	})
}

// One of two destinations never answers. A second publisher joins, so that half of the
// lanes, each with messages that are being sent, are to be given back.
func TestPublishers_OneDestinationHangs_OtherGoesOnWhenAPublisherJoins(t *testing.T) {
	for name, stuck := range map[string]outbox.Sink{"answers when its context ends": hangs{}, "never answers": deaf{}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m, sink := outboxtest.NewMemory(), &outboxtest.Sink{}
				both := outbox.ByTopic(map[string]outbox.Sink{"orders": sink, "stuck": stuck})
				var first, second heldLanes
				stops := []func(){start(t, m, both, first.options())}
				for k := range 64 {
					if err := m.Put(t.Context(), outbox.Message{Topic: "stuck", OrderKey: fmt.Sprint(k)}); err != nil {
						t.Fatal(err)
					}
				}
				putKeys(t, m, 0)
				wait(t, sink, 64)
				stops = append(stops, start(t, m, both, second.options()))
				time.Sleep(time.Minute) // the lease is 15 s
				if a, b := first.count(), second.count(); a != 8 || b != 8 {
					t.Errorf("lanes: %d and %d, want 8 and 8", a, b)
				}
				putKeys(t, m, 1)
				time.Sleep(time.Minute)
				if got := len(sink.Sent()); got != 128 {
					t.Errorf("%d of 128 messages of the other destination were sent", got)
				}
				if s, _ := m.Stats(t.Context()); s.Waiting != 64 || s.Held != 0 {
					t.Errorf("left in the outbox: %+v; want the 64 messages of the destination that hangs, without a failed attempt", s)
				}
				for _, stop := range stops {
					stop()
				}
				time.Sleep(25 * time.Hour) // the goroutines of the sinks end
			})
		})
	}
}

// The first messages of all keys hang. A second publisher joins, and gets half of the
// lanes although the first one is sending messages of them. Then these sends end.
func TestPublishers_LaneIsGivenBackWhileSending_OldOwnerSendsNothingNew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, wake := outboxtest.NewMemory(), make(chan struct{})
		old := &outboxtest.Sink{Fail: func(_ context.Context, m *outbox.Message) error {
			if strings.HasSuffix(m.ID, "-0") {
				<-wake
			}
			return nil
		}}
		putKeys(t, m, 0)
		putKeys(t, m, 1)
		var first, second heldLanes
		start(t, m, old, first.options())
		time.Sleep(time.Second)
		other := &outboxtest.Sink{}
		start(t, m, other, second.options())
		time.Sleep(time.Minute)
		if a, b := first.count(), second.count(); a != 8 || b != 8 {
			t.Fatalf("lanes: %d and %d, want 8 and 8", a, b)
		}
		close(wake)
		time.Sleep(time.Minute)
		sent := old.Sent()
		for i := range sent {
			if lane := outbox.LaneOf(sent[i].Order()); strings.HasSuffix(sent[i].ID, "-1") && second.has(lane) {
				t.Errorf("the old owner sent %s of lane %d, which it had given back", sent[i].ID, lane)
			}
		}
		wantOrder(t, sent, nil)
		wantOrder(t, other.Sent(), nil)
		if s, _ := m.Stats(t.Context()); s != (outbox.Stats{}) {
			t.Errorf("left in the outbox: %+v", s)
		}
	})
}
