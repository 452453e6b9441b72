package deliver

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/semel-go/semel/consume/driver"
	"github.com/semel-go/semel/store/memstore"
)

const tenantHeader = "X-Account"

// byTenant sets the tenant's header, and the limit of a tenant.
func byTenant(most int) func(o *Options) {
	return func(o *Options) {
		o.Calls.TenantHeader, o.TenantRequests, o.Sending.Forward = tenantHeader, most, []string{tenantHeader}
	}
}

// busyService answers the requests of the tenant "busy" when goOn is called, or the test ends,
// and those of others at once. It counts the busy ones that are open.
type busyService struct {
	*endpoint
	goOn func()

	mu         sync.Mutex
	open, most int
}

func newBusyService(t *testing.T) *busyService {
	t.Helper()
	s := &busyService{}
	answer := make(chan struct{})
	s.goOn = sync.OnceFunc(func() { close(answer) })
	count := func(n int) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.open += n
		s.most = max(s.most, s.open)
	}
	s.endpoint = newEndpoint(t, func(_ http.ResponseWriter, r *http.Request, _ int) {
		if r.Header.Get(tenantHeader) == "busy" {
			count(1)
			<-answer
			count(-1)
		}
	})
	t.Cleanup(s.goOn)
	return s
}

// of counts the requests of a tenant.
func (e *endpoint) of(tenant string) (n int) {
	for _, p := range e.requests() {
		if p.header.Get(tenantHeader) == tenant {
			n++
		}
	}
	return n
}

// soon waits until something has happened, which takes milliseconds unless the code is wrong.
func soon(t *testing.T, event string, happened func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(20 * time.Second); !happened(); <-tick.C {
		if time.Now().After(end) {
			t.Fatalf("not within 20 seconds: %s", event)
		}
	}
}

// A tenant whose requests hang has as many as it may have. Its further messages, many more
// than there are places, take none of those of other tenants, and have no claim.
func TestServe_TenantIsBusy_OthersGoOn(t *testing.T) {
	const busy, others, most = 100, 200, 2
	b, e, st := newBroker(), newBusyService(t), &watchedStore{Store: memstore.New(nil)}
	for n := range busy {
		b.publish(fmt.Sprint("busy", n), "", "x", tenantHeader, "busy")
	}
	s := serve(t, st, b, e.URL, func(o *Options) {
		byTenant(most)(o)
		o.Concurrency, o.InFlight, o.MaxAttempts, o.Drain = 4, 16, 1, time.Second
	})
	soon(t, "all messages of the busy tenant are here, and all but two wait", func() bool { return s.tenants.counts().waiting == busy-most })
	for n := range others {
		b.publish(fmt.Sprint("k", n), "", "x", tenantHeader, fmt.Sprint("t", n%10))
	}
	soon(t, "the messages of the others are acked", func() bool { return b.unsettled() == busy })
	if n := int(st.claims.Load()); e.of("busy") != most || n != others+most {
		t.Errorf("%d requests of the busy tenant, want %d; %d claims", e.of("busy"), most, n)
	}
	var text strings.Builder
	if _, err := s.Counts().WriteTo(&text); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"semel_limit_tenant_requests_waiting 98", "semel_limit_tenant_requests_waited_total ", "semel_paused_tenants 0", "semel_paused_tenants_waiting 0"} {
		if !strings.Contains(text.String(), "\n"+want) {
			t.Errorf("no %s in\n%s", want, text.String())
		}
	}
	e.goOn()
	b.settled(t)
	if letters := append(b.letters(driver.DeadLetter), b.letters(driver.Quarantine)...); e.most > most || e.of("busy") != busy || len(letters) > 0 {
		t.Errorf("the busy tenant had %d requests at once, %d in all; letters %q", e.most, e.of("busy"), letters)
	}
	eventually(t, "nothing is remembered of the tenants", func() bool {
		s.tenants.mu.Lock()
		defer s.tenants.mu.Unlock()
		return len(s.tenants.all) == 0
	})
}

// Messages of one order key are sent in their order, also if they wait for their tenant.
func TestServe_TenantIsBusy_OrderStays(t *testing.T) {
	const lanes, each = 5, 10
	b := newBroker()
	e := newEndpoint(t, answers(200))
	for n := range each {
		for lane := range lanes {
			b.publish(fmt.Sprintf("%d-%d", lane, n), fmt.Sprint(lane), "x", tenantHeader, "busy")
		}
	}
	serve(t, nil, b, e.URL, byTenant(1))
	b.settled(t)
	last := map[string]string{}
	for _, r := range e.requests() {
		if lane := r.header.Get("Ce-Partitionkey"); r.key < last[lane] {
			t.Errorf("%s after %s", r.key, last[lane])
		} else {
			last[lane] = r.key
		}
	}
	if n := len(e.requests()); n != lanes*each {
		t.Errorf("%d requests", n)
	}
}

// A stop gives back the messages that wait for their tenant.
func TestServe_StopWhileTenantIsBusy_GivesBack(t *testing.T) {
	b, e := newBroker(), newBusyService(t)
	for n := range 20 {
		b.publish(fmt.Sprint("k", n), "", "x", tenantHeader, "busy")
	}
	s := serve(t, nil, b, e.URL, byTenant(1))
	soon(t, "all but one wait", func() bool { return s.tenants.counts().waiting == 19 })
	ended := make(chan error, 1)
	go func() { ended <- s.stop() }()
	soon(t, "the others are given back", func() bool { b.mu.Lock(); defer b.mu.Unlock(); return len(b.naks) == 19 })
	e.goOn()
	if err := <-ended; err != nil || b.unsettled() != 19 || e.of("busy") != 1 {
		t.Errorf("error %v; %d messages are not settled after %d requests", err, b.unsettled(), e.of("busy"))
	}
}
