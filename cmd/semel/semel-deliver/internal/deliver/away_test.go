package deliver

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/cmd/semel/internal/hook"
	"github.com/semel-go/semel/consume/driver"
	"github.com/semel-go/semel/store/memstore"
)

// While the service cannot be reached, no message is lost and none is given up, under
// park too, and the service is not asked by each message.
func TestServe_ServiceIsAway_AllMessagesWait(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	_ = l.Close()
	b := newBroker()
	for n := range 50 {
		b.publish(fmt.Sprint("k", n), "", "x")
	}
	s := serve(t, nil, b, "http://"+addr, func(o *Options) { o.OnDoubt, o.MaxAttempts = semel.Park, 1 })
	eventually(t, "the messages wait", s.gate.paused)
	if l, err = net.Listen("tcp", addr); err != nil {
		t.Skipf("the address was taken: %v", err)
	}
	got := atomic.Int64{}
	server := &http.Server{Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) { got.Add(1) })}
	defer server.Close()
	go func() { _ = server.Serve(l) }()
	b.settled(t)
	if got.Load() != 50 || len(b.letters(driver.DeadLetter))+len(b.letters(driver.Quarantine)) > 0 || s.gate.paused() {
		t.Errorf("%d requests, dead letters %q, quarantine %q", got.Load(), b.letters(driver.DeadLetter), b.letters(driver.Quarantine))
	}
}

// A service with too much to do still answers the requests that it has taken. Such an answer does
// not end the pause that another answer asks for.
func TestServe_OlderRequestIsAnswered_PauseGoesOn(t *testing.T) {
	paused := make(chan struct{})
	e := newEndpoint(t, func(w http.ResponseWriter, r *http.Request, n int) {
		if key, _ := strconv.Unquote(r.Header.Get("Idempotency-Key")); key == "slow" {
			<-paused
			return
		}
		w.Header().Set("Retry-After", "3600")
		w.WriteHeader(http.StatusTooManyRequests)
	})
	b := newBroker()
	s := serve(t, nil, b, e.URL, nil)
	b.publish("slow", "", "x")
	eventually(t, "the first request is sent", func() bool { return len(e.requests()) == 1 })
	b.publish("refused", "", "x")
	eventually(t, "the messages wait", s.gate.paused)
	close(paused)
	eventually(t, "the first message is acked", func() bool { return b.unsettled() == 1 })
	if !s.gate.paused() {
		t.Error("the answer to a request of before the pause has ended it")
	}
}

// A message that no request can carry goes to the dead letters, although nothing was sent,
// as while the service is away. The messages after it are sent.
func TestServe_RequestCannotBeMade_OnlyItsMessageFails(t *testing.T) {
	for name, c := range map[string]struct {
		kind string // datacontenttype
		add  http.Header
		dead int
	}{
		"content type with a line break": {`text/plain\n`, nil, 1},
		"header that net/http refuses":   {`text/plain`, http.Header{"X-Bad": {"a\nb"}}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			b, e := newBroker(), newEndpoint(t, answers(200))
			b.publish("", "lane", `{"specversion":"1.0","id":"1","source":"/s","type":"t","datacontenttype":"`+c.kind+`","data":"x"}`,
				"content-type", "application/cloudevents+json")
			b.publish("next", "lane", "x") // of the same order key
			s := serve(t, nil, b, e.URL, func(o *Options) { o.Sending.Header = c.add })
			eventually(t, "all messages are acked, or wait for the service", func() bool { return b.unsettled() == 0 || s.gate.paused() })
			letters := b.letters(driver.DeadLetter)
			if s.gate.paused() || len(letters) != c.dead || !strings.HasPrefix(letters[0], "failed event_invalid nothing was sent: ") || len(e.requests()) != 2-c.dead {
				t.Errorf("dead letters %q after %d requests, paused %v", letters, len(e.requests()), s.gate.paused())
			}
		})
	}
}

// A stop gives back the messages that wait for the service at once, and waits for the
// answers to the requests that were sent.
func TestServe_Stop_GivesBackAndWaits(t *testing.T) {
	b := newBroker()
	came, goOn := make(chan struct{}, 8), make(chan struct{})
	e := newEndpoint(t, func(w http.ResponseWriter, r *http.Request, n int) {
		came <- struct{}{}
		<-goOn
	})
	s := serve(t, nil, b, e.URL, func(o *Options) { o.OnDoubt, o.Concurrency, o.InFlight = semel.Park, 3, 3 })
	for n := range 2 {
		b.publish(fmt.Sprint("k", n), "", "x")
		<-came
	}
	s.gate.pause(time.Now(), time.Hour, "busy")
	b.publish("k2", "", "x")
	ended := make(chan error, 1)
	go func() { ended <- s.stop() }()
	eventually(t, "the stop has begun", s.draining.Load)
	if err := s.Ready(t.Context()); err == nil {
		t.Error("it is ready during a stop")
	}
	close(goOn)
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if n := b.unsettled(); n != 1 || len(e.requests()) != 2 {
		t.Errorf("%d messages are not settled after %d requests", n, len(e.requests()))
	}
}

// A request that outlasts the drain time is given up, and its message is in doubt.
func TestServe_StopIsOver_RequestIsGivenUp(t *testing.T) {
	b := newBroker()
	came := make(chan struct{}, 8)
	e := newEndpoint(t, func(w http.ResponseWriter, r *http.Request, n int) {
		came <- struct{}{}
		<-r.Context().Done()
	})
	st := memstore.New(nil)
	s := serve(t, st, b, e.URL, func(o *Options) { o.OnDoubt, o.Drain = semel.Park, time.Millisecond })
	b.publish("k", "", "x")
	<-came
	if err := s.stop(); err != nil {
		t.Error(err)
	}
	if s.gate.paused() {
		t.Error("the stop counts as a failure of the service")
	}
	again := serve(t, st, b, e.URL, func(o *Options) { o.OnDoubt = semel.Park })
	b.settled(t)
	if got := b.letters(driver.Quarantine); len(got) != 1 || len(e.requests()) != 1 {
		t.Errorf("quarantine %q after %d requests", got, len(e.requests()))
	}
	_ = again.stop()
}

// A message in doubt waits for the reconcile hook, which decides it. If the hook does
// not know in time, the message goes to the quarantine.
func TestServe_Reconcile_DecidesWhatIsInDoubt(t *testing.T) {
	for name, c := range map[string]struct {
		replies  []string // the last stays
		wait     time.Duration
		requests int
		dead     int
		parked   int
	}{
		"happened":            {[]string{`{"happened":null}`, `{"happened":true,"response":{"status":201}}`}, time.Minute, 1, 0, 0},
		"failed":              {[]string{`{"happened":true,"response":{"status":422}}`}, time.Minute, 1, 1, 0},
		"did not happen":      {[]string{`{"happened":null}`, `{"happened":false,"final":true}`}, time.Minute, 2, 0, 0},
		"not known":           {[]string{`{"happened":null}`}, 10 * time.Millisecond, 1, 0, 1},
		"not known, no delay": {[]string{`{"happened":null}`}, 0, 1, 0, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			asked := atomic.Int64{}
			h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				_, _ = io.WriteString(w, c.replies[min(int(asked.Add(1)), len(c.replies))-1])
			}))
			defer h.Close()
			u, err := url.Parse(h.URL)
			if err != nil {
				t.Fatal(err)
			}
			b, e := newBroker(), newEndpoint(t, answers(500, 200))
			b.publish("k", "", "x")
			s := serve(t, nil, b, e.URL, func(o *Options) {
				o.OnDoubt, o.Reconcile, o.ReconcileWait = semel.Park, hook.New(u, time.Minute, nil), c.wait
			})
			b.settled(t)
			if len(e.requests()) != c.requests || len(b.letters(driver.DeadLetter)) != c.dead || len(b.letters(driver.Quarantine)) != c.parked {
				t.Errorf("%d requests, dead letters %q, quarantine %q", len(e.requests()), b.letters(driver.DeadLetter), b.letters(driver.Quarantine))
			}
			_ = s.stop()
		})
	}
}
