package deliver

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/cmd/semel/internal/hook"
	"github.com/semel-go/semel/consume/driver"
	"github.com/semel-go/semel/store/memstore"
)

// reconcileHook is a hook, and the change of the options that uses it.
func reconcileHook(t *testing.T, h http.HandlerFunc) (use func(o *Options)) {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	u, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	return func(o *Options) {
		o.OnDoubt, o.Reconcile, o.ReconcileWait = semel.Park, hook.New(u, time.Minute, nil), time.Hour
	}
}

// doubtful answers 500 to the messages whose keys begin with "doubt".
func doubtful(w http.ResponseWriter, r *http.Request, _ int) {
	if strings.HasPrefix(r.Header.Get("Idempotency-Key"), `"doubt`) {
		w.WriteHeader(http.StatusInternalServerError)
	}
}

// A hook that does not answer keeps the messages that wait for it, and no others: before
// and after a restart, where nothing tells yet that a message is in doubt.
func TestServe_HookHangs_OtherMessagesAreSent(t *testing.T) {
	const concurrency, inDoubt = 1, 20
	var asked, most atomic.Int64
	ended := make(chan struct{})
	use := reconcileHook(t, func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // only then the server sees that the client has gone
		if n := asked.Add(1); n > most.Load() {
			most.Store(n)
		}
		defer asked.Add(-1)
		select {
		case <-ended:
		case <-r.Context().Done():
		}
	})
	t.Cleanup(func() { close(ended) })
	b, e, st := newBroker(), newEndpoint(t, doubtful), memstore.New(nil)
	for n := range inDoubt {
		b.publish(fmt.Sprint("doubt", n), "", "x")
	}
	for n, member := range []string{"the first member", "the member after a restart"} {
		s := serve(t, st, b, e.URL, func(o *Options) {
			use(o)
			o.Concurrency, o.InFlight, o.Drain = concurrency, 4*concurrency, time.Millisecond
		})
		eventually(t, "the messages are in doubt", func() bool { return len(e.requests()) >= inDoubt && asked.Load() > 0 })
		good := fmt.Sprint("good", n)
		b.publish(good, "", "x")
		sent := func() bool {
			return slices.ContainsFunc(e.requests(), func(p posted) bool { return p.key == good })
		}
		tick := time.NewTicker(5 * time.Millisecond)
		for end := time.Now().Add(15 * time.Second); !sent() && time.Now().Before(end); <-tick.C {
		}
		tick.Stop()
		if !sent() {
			t.Errorf("%s sends no other message while the hook is silent", member)
		}
		_ = s.stop()
		eventually(t, "the hook sees that its caller has gone", func() bool { return asked.Load() == 0 })
	}
	if most.Load() > concurrency {
		t.Errorf("the hook had %d questions at once", most.Load())
	}
}

// If the hook says of many messages that nothing happened, they wait for their turn
// without a claim, as messages do that were not in doubt.
func TestServe_HookSaysNothingHappened_ServiceHasAtMostConcurrency(t *testing.T) {
	const concurrency, messages = 2, 20
	use := reconcileHook(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"happened":false,"final":true}`)
	})
	var mu sync.Mutex
	var open, most int
	count := func(n int) {
		mu.Lock()
		defer mu.Unlock()
		open += n
		most = max(most, open)
	}
	e := newEndpoint(t, func(w http.ResponseWriter, _ *http.Request, n int) {
		if n == 1 {
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		count(1)
		<-time.After(20 * time.Millisecond)
		count(-1)
	})
	b := newBroker()
	for n := range messages {
		b.publish(fmt.Sprint("k", n), "", "x")
	}
	serve(t, nil, b, e.URL, func(o *Options) {
		use(o)
		o.Concurrency, o.InFlight = concurrency, messages
	})
	b.settled(t)
	if n := len(e.requests()); n != 2*messages || most > concurrency {
		t.Errorf("%d requests, at most %d at once; want %d and %d", n, most, 2*messages, concurrency)
	}
	if letters := append(b.letters(driver.DeadLetter), b.letters(driver.Quarantine)...); len(letters) > 0 {
		t.Errorf("letters %q", letters)
	}
}

// The pauses of a message that is "later" grow while the answer stays so, and begin again
// after another one.
func TestServe_LaterAgain_PausesGrow(t *testing.T) {
	e := newEndpoint(t, answers(423, 423, 425, 500, 423, 200))
	b := newBroker()
	b.publish("k", "", "x")
	var got []int
	s := serve(t, nil, b, e.URL, func(o *Options) {
		o.Backoff = func(n int) time.Duration {
			if n > 1 { // the consumer asks, too, always for the first attempt
				got = append(got, n)
			}
			return time.Millisecond
		}
	})
	b.settled(t)
	_ = s.stop()
	if want := []int{2, 3}; !slices.Equal(got, want) {
		t.Errorf("pauses after %v tries, want %v", got, want)
	}
}
