package outbox_test

import (
	"context"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semel-go/semel/internal/logtest"
	"github.com/semel-go/semel/outbox"
	"github.com/semel-go/semel/outbox/outboxtest"
)

// sinkFunc is a sink.
type sinkFunc func(ctx context.Context, messages []outbox.Message, answer func(i int, err error))

func (f sinkFunc) Publish(ctx context.Context, messages []outbox.Message, answer func(i int, err error)) {
	f(ctx, messages, answer)
}

// panicsFor panics for the message with an ID.
func panicsFor(id string) func(context.Context, *outbox.Message) error {
	return func(_ context.Context, m *outbox.Message) error {
		if m.ID == id {
			panic("no such customer")
		}
		return nil
	}
}

// Each sink panics for the message bad-0, on another goroutine.
func TestPublisher_SinkPanicsForOneMessage_OtherKeysGoOn(t *testing.T) {
	logtest.Capture(t) // the stacks of the panics
	for name, wrap := range map[string]func(to *outboxtest.Sink) outbox.Sink{
		"send of EachInTurn": func(to *outboxtest.Sink) outbox.Sink {
			to.Fail = panicsFor("bad-0")
			return to
		},
		"answer of EachInTurn": func(to *outboxtest.Sink) outbox.Sink {
			return sinkFunc(func(ctx context.Context, messages []outbox.Message, answer func(i int, err error)) {
				to.Publish(ctx, messages, func(i int, err error) {
					_ = panicsFor("bad-0")(ctx, &messages[i])
					answer(i, err)
				})
			})
		},
		"Publish": panicsBefore,
		"sink of ByTopic": func(to *outboxtest.Sink) outbox.Sink {
			return outbox.ByTopic(map[string]outbox.Sink{"orders": panicsBefore(to)})
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m, sink := outboxtest.NewMemory(), &outboxtest.Sink{}
				put(t, m, "good", 0, 1)
				put(t, m, "bad", 0, 1)
				put(t, m, "good", 1, 3)
				start(t, m, wrap(sink), nil)
				time.Sleep(10 * time.Minute)
				good := 0
				for _, sent := range sink.Sent() {
					if sent.OrderKey == "good" {
						good++
					}
				}
				if good < 3 {
					t.Errorf("%d messages of the other key were sent, want all 3", good)
				}
				held, err := m.List(t.Context(), outbox.Held, 0, 10)
				if err != nil || len(held) != 1 || held[0].ID != "bad-0" || held[0].Attempts < 3 {
					t.Fatalf("held: %+v, %v; want bad-0 after several attempts", held, err)
				}
				if name != "answer of EachInTurn" && !strings.Contains(held[0].LastError, "panicked: no such customer") {
					t.Errorf("the last error is %q", held[0].LastError)
				}
			})
		})
	}
}

// panicsBefore is a sink that panics in Publish itself when it comes to the message bad-0.
func panicsBefore(to *outboxtest.Sink) outbox.Sink {
	return sinkFunc(func(ctx context.Context, messages []outbox.Message, answer func(i int, err error)) {
		for i := range messages {
			_ = panicsFor("bad-0")(ctx, &messages[i])
			to.Publish(ctx, messages[i:i+1], func(_ int, err error) { answer(i, err) })
		}
	})
}

// If a sink panics, its messages get their answers at once, and do not wait for the other sinks.
func TestByTopic_SinkPanics_EachMessageHasOneAnswer(t *testing.T) {
	logtest.Capture(t) // the stacks of the panics
	sink := outbox.ByTopic(map[string]outbox.Sink{"orders": panicsBefore(&outboxtest.Sink{}), "mails": &outboxtest.Sink{}})
	answers := publish(t, sink, message("good", 0), message("bad", 0), outbox.Message{Topic: "mails", ID: "1"}, message("good", 1))
	if answers[0] != nil || answers[1] == nil || answers[2] != nil || answers[3] == nil {
		t.Errorf("answers %v", answers)
	}
}

// A goroutine that ends without a panic, as by t.FailNow, leaves its other messages without an
// answer.
func TestEachInTurn_GoroutineEnds_Returns(t *testing.T) {
	messages := []outbox.Message{message("a", 0), message("b", 0)}
	outbox.EachInTurn(t.Context(), messages, outbox.Limits{Parallel: 1}, func(int, error) {}, func(context.Context, *outbox.Message) error {
		runtime.Goexit()
		return nil
	})
}
