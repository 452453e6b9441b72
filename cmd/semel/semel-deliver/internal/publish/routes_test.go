package publish

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/semel-go/semel/outbox"
	"github.com/semel-go/semel/outbox/outboxtest"
)

// Two topics get one new name at one destination, and a third goes to another one. A
// message that fails delays no message of another topic, and each answer is for its message.
func TestRoutes_TopicsRenamedAndSplit_AnswersAreForTheirMessages(t *testing.T) {
	boom := errors.New("boom")
	first := &outboxtest.Sink{Fail: func(_ context.Context, m *outbox.Message) error {
		if m.ID == "a1" {
			return boom
		}
		return nil
	}}
	second, other := &outboxtest.Sink{}, &outboxtest.Sink{}
	sink := Routes(map[string]Route{"a": {Topic: "x", Sink: first}, "b": {Topic: "x", Sink: first}, "c": {Sink: second}}, other)
	messages := []outbox.Message{
		{Topic: "d", OrderKey: "k", ID: "d1"}, {Topic: "a", OrderKey: "k", ID: "a1"}, {Topic: "b", OrderKey: "k", ID: "b1"}, {Topic: "c", OrderKey: "k", ID: "c1"},
	}
	type answer struct {
		index int
		err   error
	}
	answers := make(chan answer, 2*len(messages))
	sink.Publish(t.Context(), messages, func(i int, err error) { answers <- answer{i, err} })
	close(answers)
	seen := map[int]bool{}
	for a := range answers {
		if seen[a.index] || errors.Is(a.err, boom) != (messages[a.index].ID == "a1") || a.err != nil && !errors.Is(a.err, boom) {
			t.Errorf("message %d: %v", a.index, a.err)
		}
		seen[a.index] = true
	}
	if len(seen) != len(messages) {
		t.Errorf("%d answers, want %d", len(seen), len(messages))
	}
	for _, c := range []struct {
		sink *outboxtest.Sink
		want []string
	}{{first, []string{"x b1"}}, {second, []string{"c c1"}}, {other, []string{"d d1"}}} {
		var got []string
		for _, m := range c.sink.Sent() {
			got = append(got, m.Topic+" "+m.ID)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("a destination got %q, want %q", got, c.want)
		}
	}
	if messages[1].Topic != "a" {
		t.Error("the publisher's own message was renamed")
	}
}

// Brokers drop repeats by the DeduplicationID.
func TestRoutes_TwoTopicsWithOneNewNameAndOneID_DifferForTheBroker(t *testing.T) {
	to := &outboxtest.Sink{}
	sink := Routes(map[string]Route{"placed": {Topic: "events", Sink: to}, "shipped": {Topic: "events", Sink: to}}, to)
	messages := []outbox.Message{{Topic: "placed", ID: "order-17"}, {Topic: "shipped", ID: "order-17"}, {Topic: "events", ID: "order-17"}}
	sink.Publish(t.Context(), messages, func(int, error) {})
	ids := map[string]bool{}
	for _, m := range to.Sent() {
		if m.Topic != "events" {
			t.Errorf("topic %q", m.Topic)
		}
		ids[m.DeduplicationID()] = true
	}
	if len(ids) != 3 || !ids[messages[0].DeduplicationID()] {
		t.Errorf("%d different IDs, want 3, and each that of the written message: %v", len(ids), ids)
	}
}

func TestRoutes_None_IsTheSinkItself(t *testing.T) {
	other := &outboxtest.Sink{}
	if Routes(nil, other) != outbox.Sink(other) {
		t.Error("another sink")
	}
}
