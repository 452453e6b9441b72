package deliver

import (
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/semel-go/semel/consume/driver"
	"github.com/semel-go/semel/store/memstore"
)

// 429 stops the messages of its tenant, and 503 all. Without tenants, 429 stops all, too.
func TestServe_AnswerAboutTenant_OthersGoOn(t *testing.T) {
	for name, c := range map[string]struct {
		status  int
		scope   bool
		othersN int
	}{
		"429":                 {http.StatusTooManyRequests, true, 10},
		"503":                 {http.StatusServiceUnavailable, true, 0},
		"429, without tenant": {http.StatusTooManyRequests, false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEndpoint(t, func(w http.ResponseWriter, r *http.Request, _ int) {
				if r.Header.Get("Ce-Partitionkey") == "limited" {
					w.Header().Set("Retry-After", "3600")
					w.WriteHeader(c.status)
				}
			})
			b := newBroker()
			b.publish("first", "limited", "x", tenantHeader, "limited")
			s := serve(t, nil, b, e.URL, func(o *Options) {
				if c.scope {
					byTenant(1)(o)
				}
			})
			paused := func() bool { return s.gate.paused() || s.tenants != nil && s.tenants.counts().paused == 1 }
			soon(t, "a pause has begun", paused)
			for n := range 10 {
				b.publish(fmt.Sprint("limited", n), fmt.Sprint("limited", n), "x", tenantHeader, "limited")
				b.publish(fmt.Sprint("k", n), fmt.Sprint("k", n), "x", tenantHeader, "free")
			}
			if c.othersN == 0 {
				soon(t, "all messages are here", func() bool { b.mu.Lock(); defer b.mu.Unlock(); return b.here == 21 })
				if !s.gate.paused() {
					t.Error("the service is not paused")
				}
			} else {
				soon(t, "the messages of the other tenant are acked", func() bool { return b.unsettled() == 11 })
				soon(t, "those of the tenant wait", func() bool { return s.tenants.counts().pausedQueued == 10 })
				if s.gate.paused() {
					t.Error("all messages wait")
				}
			}
			if n := len(e.requests()); n != 1+c.othersN {
				t.Errorf("%d requests, want %d", n, 1+c.othersN)
			}
		})
	}
}

// After the pause one message of the tenant is sent, and after its answer the others.
func TestServe_TenantsPauseIsOver_MessagesGoOn(t *testing.T) {
	var mu sync.Mutex
	refusals := 3
	e := newEndpoint(t, func(w http.ResponseWriter, r *http.Request, _ int) {
		mu.Lock()
		defer mu.Unlock()
		if refusals > 0 {
			refusals--
			w.WriteHeader(http.StatusTooManyRequests)
		}
	})
	b := newBroker()
	for n := range 40 {
		b.publish(fmt.Sprint("k", n), fmt.Sprint("lane", n%8), "x", tenantHeader, "limited")
	}
	s := serve(t, nil, b, e.URL, byTenant(1))
	b.settled(t)
	if n := len(e.requests()); n != 43 || s.tenants.counts().paused != 0 || len(b.letters(driver.DeadLetter)) > 0 {
		t.Errorf("%d requests, counts %+v, letters %q", n, s.tenants.counts(), b.letters(driver.DeadLetter))
	}
}

// Messages whose turn came before a pause do not go on in it: they may wait for a place.
func TestServe_TurnsFromBeforePause_AreNotSentInIt(t *testing.T) {
	var once sync.Once
	began := make(chan struct{})
	e := newEndpoint(t, func(w http.ResponseWriter, _ *http.Request, _ int) {
		once.Do(func() { <-began })
		w.Header().Set("Retry-After", "3600")
		w.WriteHeader(http.StatusTooManyRequests)
	})
	b := newBroker()
	for n := range 6 {
		b.publish(fmt.Sprint("k", n), fmt.Sprint("k", n), "x", tenantHeader, "limited")
	}
	s := serve(t, nil, b, e.URL, func(o *Options) {
		byTenant(0)(o)
		o.Concurrency, o.InFlight = 1, 8
	})
	soon(t, "one is sent, and another waits for its place", func() bool {
		s.tenants.mu.Lock()
		defer s.tenants.mu.Unlock()
		return len(s.tenants.all) == 1 && s.tenants.all["limited"].running == 2
	})
	close(began)
	soon(t, "the others wait", func() bool { return s.tenants.counts().pausedQueued == 5 })
	if n := len(e.requests()); n != 1 {
		t.Errorf("%d requests in the pause", n)
	}
}

// A message of which the hook says that nothing happened waits for its tenant like any other:
// it claims again when it is sent, and not before.
func TestServe_HookSaysNothingHappened_WaitsForTenant(t *testing.T) {
	var asked atomic.Int64
	use := reconcileHook(t, func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"happened":false,"final":true}`)
	})
	fail, answer := make(chan struct{}), make(chan struct{})
	goOn := sync.OnceFunc(func() { close(answer) })
	t.Cleanup(goOn)
	e := newEndpoint(t, func(w http.ResponseWriter, r *http.Request, n int) {
		switch key := r.Header.Get("Idempotency-Key"); {
		case key == `"hangs"`:
			<-answer
		case n == 1:
			<-fail
			w.WriteHeader(http.StatusInternalServerError)
		}
	})
	b, st := newBroker(), &watchedStore{Store: memstore.New(nil)}
	s := serve(t, st, b, e.URL, func(o *Options) {
		use(o)
		byTenant(1)(o)
	})
	waits := func() bool { return s.tenants.counts().waiting == 1 }
	b.publish("doubt", "", "x", tenantHeader, "ann")
	soon(t, "the one is sent", func() bool { return len(e.requests()) == 1 })
	b.publish("hangs", "", "x", tenantHeader, "ann")
	soon(t, "the other waits", waits)
	close(fail)
	soon(t, "the other is sent, and the one waits", func() bool { return len(e.requests()) == 2 && asked.Load() > 0 && waits() })
	goOn()
	b.settled(t)
	if asked.Load() != 1 || len(e.requests()) != 3 || st.claims.Load() != 4 { // a claim for each
		t.Errorf("%d questions, %d requests, %d claims; want 1, 3 and 4", asked.Load(), len(e.requests()), st.claims.Load())
	}
}
