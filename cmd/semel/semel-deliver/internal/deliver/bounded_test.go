package deliver

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/semel-go/semel/cmd/semel/internal/input"
)

// newSlowEndpoint makes a service that answers nothing until goOn is called, or the test
// ends.
func newSlowEndpoint(t *testing.T) (e *endpoint, goOn func()) {
	t.Helper()
	answer := make(chan struct{})
	e = newEndpoint(t, func(http.ResponseWriter, *http.Request, int) { <-answer })
	goOn = sync.OnceFunc(func() { close(answer) })
	t.Cleanup(goOn)
	return e, goOn
}

// While the service is slow, the messages that are here have about as many bytes as are
// allowed.
func TestServe_MaxBytes_BoundsWhatIsTaken(t *testing.T) {
	const size, most = 1000, 10_000
	b := newBroker()
	e, goOn := newSlowEndpoint(t)
	for n := range 100 {
		b.publish(fmt.Sprint("k", n), "", strings.Repeat("x", size))
	}
	s := serve(t, nil, b, e.URL, func(o *Options) { o.MaxBytes, o.Sending.MaxBody, o.InFlight = most, 2*size, 64 })
	held := func() int64 { return s.source.Load().held.Load() }
	eventually(t, "the limit is reached", func() bool { return s.source.Load() != nil && held() >= most })
	if n := held(); n >= 2*most {
		t.Errorf("%d bytes are held, and %d are allowed", n, most)
	}
	goOn()
	b.settled(t)
	eventually(t, "nothing is held", func() bool { return held() == 0 && s.source.Load().taken.Load() == 0 })
	if len(e.requests()) != 100 {
		t.Errorf("%d requests", len(e.requests()))
	}
}

// While the service is slow, messages stay with the broker: the greatest number that was
// ever here has a limit, whatever orders the messages.
func TestServe_SlowService_MessagesHereHaveLimit(t *testing.T) {
	const concurrency, inFlight = 4, 8
	for order, c := range map[string]struct{ reached, limit int }{
		"":            {inFlight, inFlight},
		"one account": {1 + 16*inFlight, inFlight + 16*inFlight}, // one runs, and the others wait for it
	} {
		b := newBroker()
		e, goOn := newSlowEndpoint(t)
		messages := 3 * c.limit
		for n := range messages {
			b.publish(fmt.Sprint("k", n), order, "x")
		}
		serve(t, nil, b, e.URL, func(o *Options) { o.Concurrency, o.InFlight = concurrency, inFlight })
		here := func() (now, most int) {
			b.mu.Lock()
			defer b.mu.Unlock()
			return b.here, b.most
		}
		eventually(t, "the limit is reached", func() bool { now, _ := here(); return now >= c.reached })
		goOn()
		b.settled(t)
		if _, most := here(); most > c.limit || len(e.requests()) != messages {
			t.Errorf("order %q: up to %d of %d messages were here, want at most %d; %d requests", order, most, messages, c.limit, len(e.requests()))
		}
	}
}

func TestServe_BrokerKeepsLonger_Refused(t *testing.T) {
	b := newBroker()
	b.horizon = 48 * time.Hour
	s := serve(t, nil, b, "http://127.0.0.1:1", func(o *Options) { o.Retention = 24 * time.Hour })
	if err := s.wait(); !input.Is(err) || !strings.HasPrefix(err.Error(), `--retention: "24h0m0s": is shorter than the broker keeps messages, which is for 48h0m0s`) {
		t.Errorf("got %v", err)
	}
	if err := s.Ready(t.Context()); err == nil {
		t.Error("it is ready")
	}
}

func TestMetrics_Decisions_AreCounted(t *testing.T) {
	b, e := newBroker(), newEndpoint(t, answers(200))
	b.publish("k", "", "x")
	b.publish("k", "", "x")
	s := serve(t, nil, b, e.URL, nil)
	b.settled(t)
	var text strings.Builder
	eventually(t, "both are counted", func() bool {
		text.Reset()
		if _, err := s.Counts().WriteTo(&text); err != nil {
			t.Fatal(err)
		}
		return strings.Contains(text.String(), `semel_message_events_total{event="settled"} 2`)
	})
	for _, want := range []string{
		`semel_message_decisions_total{action="ack",reason="done"} 1`, `semel_message_decisions_total{action="ack",reason="duplicate"} 1`,
		"semel_service_paused 0", "semel_ready 1", "semel_messages_in_flight 0", `semel_events_total{kind="executed",operation="billing",rule=""} 1`,
	} {
		if !strings.Contains(text.String(), want+"\n") {
			t.Errorf("no %s in\n%s", want, text.String())
		}
	}
}
