package outbox_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semel-go/semel/outbox"
	"github.com/semel-go/semel/outbox/outboxtest"
	"github.com/semel-go/semel/store"
)

// publish is the answers of a sink, and checks that each message has one.
func publish(t *testing.T, sink outbox.Sink, messages ...outbox.Message) []error {
	t.Helper()
	var mu sync.Mutex
	answers, count := make([]error, len(messages)), make([]int, len(messages))
	sink.Publish(t.Context(), messages, func(i int, err error) {
		mu.Lock()
		defer mu.Unlock()
		answers[i] = err
		count[i]++
	})
	for i, n := range count {
		if n != 1 {
			t.Errorf("message %d has %d answers", i, n)
		}
	}
	return answers
}

func TestEachInTurn_MessageFails_LaterOnesOfItsKeyAreNotSent(t *testing.T) {
	sink := &outboxtest.Sink{Fail: func(_ context.Context, m *outbox.Message) error {
		if m.ID == "a-1" {
			return errDown
		}
		return nil
	}}
	answers := publish(t, sink, message("a", 0), message("b", 0), message("a", 1), message("a", 2), message("b", 1))
	if answers[0] != nil || answers[1] != nil || !errors.Is(answers[2], errDown) || answers[3] == nil || answers[4] != nil {
		t.Errorf("answers %v", answers)
	}
	wantOrder(t, sink.Sent(), map[string]int{"a": 1, "b": 2})
}

func TestEachInTurn_ContextHasEnded_SendsNothing(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	sink := &outboxtest.Sink{}
	sink.Publish(ctx, []outbox.Message{message("a", 0), message("b", 0)}, func(_ int, err error) {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("answer %v", err)
		}
	})
	if len(sink.Sent()) != 0 {
		t.Errorf("sent %v", sink.Sent())
	}
}

// A lease can end without Done.
func TestEachInTurn_LeaseEndsDuringLookUp_SendSeesIt(t *testing.T) {
	for _, limit := range []time.Duration{0, time.Hour} {
		ctx := &lapsing{Context: t.Context()}
		outbox.EachInTurn(ctx, []outbox.Message{message("a", 0)}, outbox.Limits{Time: limit}, func(_ int, err error) {
			if !errors.Is(err, errDown) {
				t.Errorf("limit %v: answer %v", limit, err)
			}
		}, func(sent context.Context, _ *outbox.Message) error {
			if err := sent.Err(); err != nil {
				t.Errorf("limit %v: before the look-up: %v", limit, err)
			}
			ctx.over.Store(true)
			return sent.Err()
		})
	}
}

// lapsing is a context of a lease that is over when the test says so.
type lapsing struct {
	context.Context
	over atomic.Bool
}

func (l *lapsing) Err() error {
	if l.over.Load() {
		return errDown
	}
	return l.Context.Err()
}

func TestEachInTurn_NoAnswerInTime_ErrorNamesLimitAndHint(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answers, began := []error{nil, nil}, time.Now()
		outbox.EachInTurn(t.Context(), []outbox.Message{message("a", 0), message("b", 0)}, outbox.Limits{Time: 7 * time.Second, Hint: "see the queue"},
			func(i int, err error) { answers[i] = err },
			func(ctx context.Context, m *outbox.Message) error {
				<-ctx.Done()
				if m.OrderKey == "b" {
					return outbox.Poison(errDown)
				}
				return ctx.Err()
			})
		if took := time.Since(began); took != 7*time.Second {
			t.Errorf("it took %v", took)
		}
		if err := answers[0]; !errors.Is(err, context.DeadlineExceeded) || outbox.IsPoison(err) || !strings.Contains(err.Error(), "no answer within 7s; see the queue: ") {
			t.Errorf("answer %v", err)
		}
		if err := answers[1]; !outbox.IsPoison(err) || strings.Contains(err.Error(), "7s") {
			t.Errorf("answer of poison: %v", err)
		}
	})
}

func TestByTopic_EachTopic_GoesToItsSink(t *testing.T) {
	one, two := &outboxtest.Sink{}, &outboxtest.Sink{}
	of := func(topic string) outbox.Message { return outbox.Message{Topic: topic, ID: topic} }
	answers := publish(t, outbox.ByTopic(map[string]outbox.Sink{"one": one, "two": two}), of("two"), of("three"), of("one"), of("two"))
	if got := sentIDs(one); !slices.Equal(got, []string{"one"}) {
		t.Errorf("the first sink got %q", got)
	}
	if got := sentIDs(two); !slices.Equal(got, []string{"two", "two"}) {
		t.Errorf("the second sink got %q", got)
	}
	if answers[0] != nil || !outbox.IsPoison(answers[1]) || answers[2] != nil || answers[3] != nil {
		t.Errorf("answers %v", answers)
	}
}

func TestPoison_Wrapped_IsFound(t *testing.T) {
	err := fmt.Errorf("x: %w", outbox.Poison(errDown))
	if !outbox.IsPoison(err) || !errors.Is(err, errDown) || outbox.IsPoison(errDown) || outbox.Poison(nil) != nil {
		t.Error("Poison is not found, or found where it is not")
	}
}

func TestMessage_Prepare_RefusesWhatNoBrokerTakes(t *testing.T) {
	for name, m := range map[string]outbox.Message{
		"Topic":    {},
		"OrderKey": {Topic: "t", OrderKey: strings.Repeat("x", 256)},
		"ID":       {Topic: "t", ID: "a\x00b"},
		"header":   {Topic: "t", Headers: []store.Header{{Name: "a", Value: "b\nc"}}},
	} {
		if _, err := m.Prepare(); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: error %v", name, err)
		}
	}
	m := outbox.Message{Topic: "t"}
	a, err := m.Prepare()
	b, _ := m.Prepare()
	if err != nil || a.ID == "" || a.ID == b.ID || m.ID != "" {
		t.Errorf("IDs %q and %q, error %v", a.ID, b.ID, err)
	}
}

func TestMessage_Order_DependsOnTopicAndKey(t *testing.T) {
	seen := map[int64]string{}
	for _, m := range []outbox.Message{
		{Topic: "a", OrderKey: "b"}, {Topic: "ab", OrderKey: ""}, {Topic: "a", OrderKey: "c"}, {Topic: "ab", OrderKey: "b"}, {Topic: "a", ID: "b"}, {Topic: "a", ID: "c"},
	} {
		order := m.Order()
		if other, ok := seen[order]; ok {
			t.Errorf("%+v has the order of %s", m, other)
		}
		seen[order] = fmt.Sprintf("%+v", m)
	}
	x, y := outbox.Message{Topic: "a", OrderKey: "b", ID: "1"}, outbox.Message{Topic: "a", OrderKey: "b", ID: "2"}
	if x.Order() != y.Order() {
		t.Error("two messages of a key have two orders")
	}
}

func TestMessage_SentHeaders_HasOneKey(t *testing.T) {
	m := outbox.Message{ID: "id", Headers: []store.Header{{Name: "Idempotency-Key", Value: "other"}, {Name: "a", Value: "b"}}}
	want := []store.Header{{Name: "a", Value: "b"}, {Name: outbox.KeyHeader, Value: "id"}}
	if got := m.SentHeaders(); !slices.Equal(got, want) {
		t.Errorf("headers %v, want %v", got, want)
	}
}

func TestNew_InvalidOptions_NamesThem(t *testing.T) {
	for name, o := range map[string]outbox.Options{
		"Name: has a control": {Name: "a\x00"}, "Name: is not valid UTF-8": {Name: "\xff"}, "Lease": {Lease: 1}, "Batch": {Batch: -1}, "InFlight": {InFlight: 1, Batch: 2}, "Poll": {Poll: -1}, "MaxAttempts": {MaxAttempts: -1}, "Drain": {Drain: -1}, "Retention": {Retention: -1},
	} {
		if _, err := outbox.New(outboxtest.NewMemory(), &outboxtest.Sink{}, &o); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: error %v", name, err)
		}
	}
}
