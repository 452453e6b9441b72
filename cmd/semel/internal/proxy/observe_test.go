package proxy_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/semel-go/semel/cmd/semel/internal/observe"
	"github.com/semel-go/semel/store"
)

// listed counts the records of a store.
func listed(t *testing.T, st store.Store) (n int) {
	t.Helper()
	l, ok := store.As[store.Lister](st)
	if !ok {
		t.Fatal("the store lists nothing")
	}
	for _, err := range l.List(t.Context(), store.Filter{}) {
		if n++; err != nil {
			t.Fatal(err)
		}
	}
	return n
}

const observedRules = `scope: header:X-Tenant
rules:
  - match: /required
    require-key: true
  - match: POST /parked
    on-doubt: park
`

// The proxy that observes counts what the proxy that does not observe has done with the
// same requests.
func TestObserve_SameScript_CountsWhatProxyDoes(t *testing.T) {
	for seed := range uint64(4) {
		script := randomScript(seed, 150)
		a := &actor{}
		done, s := tally{}, play(t, a.ServeHTTP, observedRules)
		perform(t, s, a, script, done.judge)

		s = play(t, a.ServeHTTP, "observe: true\n"+observedRules)
		perform(t, s, a, script, func(step, reply) {})
		s.proxy.Close() // ends the twins
		if would := observed(s.proxy.Observed()); !maps.Equal(done, would) {
			t.Errorf("seed %d: the proxy did %v; the observer says %v", seed, done, would)
		}
		if n := s.backend.count(); n != len(script) {
			t.Errorf("seed %d: the service got %d of %d requests", seed, n, len(script))
		}
		if n := listed(t, s.store); n > 0 {
			t.Errorf("seed %d: the store has %d records", seed, n)
		}
		if t.Failed() {
			return
		}
	}
}

func TestObserve_RepeatAfterDoubt_CountsAgain(t *testing.T) {
	a := &actor{}
	s := play(t, a.ServeHTTP, "observe: true\n"+observedRules)
	for _, answer := range []string{"500", "201", "201"} {
		s.send("POST", "/pay", "a", step{tenant: "ann", key: "k", answer: answer}.headers()...)
	}
	s.proxy.Close()
	got := s.proxy.Observed().Rules[0]
	want := map[observe.Result]uint64{observe.First: 1, observe.Again: 1, observe.AfterFirst: 1}
	if !maps.Equal(got.Results, want) || got.Rule != "/" || got.Operation != "http" || got.Doubt[observe.ServerError] != 1 {
		t.Errorf("%+v", got)
	}
}

// With --wait, a duplicate would get the answer of the first request.
func TestObserve_DuplicateWouldWait_NotHeldBack(t *testing.T) {
	a := &actor{}
	s := play(t, a.ServeHTTP, "observe: true\nwait: 1m\n"+observedRules)
	perform(t, s, a, []step{
		{method: "POST", path: "/pay", tenant: "ann", key: "k", answer: "201"},
		{method: "POST", path: "/pay", tenant: "ann", key: "k", answer: "201", duplicate: true},
	}, func(_ step, r reply) {
		if r.status != 201 || r.replayed() {
			t.Errorf("%+v", r)
		}
	})
	s.proxy.Close()
	if got := s.proxy.Observed().Rules[0].Results; got[observe.First] != 1 || got[observe.DuringFirst] != 1 {
		t.Errorf("%v", got)
	}
}

func TestObserve_MoreKeysThanBound_ForgetsOlderHalf(t *testing.T) {
	a := &actor{}
	s := play(t, a.ServeHTTP, "observe: true\nobserve-keys: 4\n"+observedRules)
	pay := func(key string) {
		s.send("POST", "/pay", "a", step{tenant: "ann", key: key, answer: "201"}.headers()...)
	}
	for _, key := range []string{"1", "2", "3", "4", "4", "5", "1", "5"} { // 5 makes it forget 1 and 2
		pay(key)
	}
	s.proxy.Close()
	r := s.proxy.Observed()
	if got := r.Rules[0].Results; got[observe.First] != 6 || got[observe.AfterFirst] != 2 || r.ForgottenKeys != 2 || r.Keys != 4 {
		t.Errorf("%v, %d keys, %d forgotten", got, r.Keys, r.ForgottenKeys)
	}
	var b strings.Builder
	if err := r.WriteText(&b); err != nil || !strings.Contains(b.String(), "2 keys were forgotten") || !strings.Contains(b.String(), "6  first calls") {
		t.Errorf("%v\n%s", err, b.String())
	}
}

// The report says which clients send no tenant, without their addresses or names, and the
// next step.
func TestObserve_TenantMissing_NamesCallersAndNextStep(t *testing.T) {
	a := &actor{}
	s := play(t, a.ServeHTTP, "observe: true\n"+observedRules)
	send := func(path, agent string) {
		s.send("POST", path, "a", append(step{key: "k", answer: "201"}.headers(), "User-Agent", agent)...)
	}
	for range 2 {
		send("/api/v1/payments/ann.smith@example.org", "okhttp/4.12.0 (ann's phone; 192.0.2.7)")
	}
	for n := range 50 {
		send("/"+strings.Repeat("a", n%25+1)+"/"+strings.Repeat("b", n%2+1), "curl/8.5.0")
	}
	s.proxy.Close()
	r := s.proxy.Observed().Rules[0]
	missing := observe.Refused("tenant_missing")
	list := r.Callers[missing]
	if r.Results[missing] != 52 || len(list) != 41 || list[0].Request != "other requests" ||
		list[1].Count != 2 || !slices.Contains(list, observe.CallerCount{Caller: observe.Caller{Request: "POST /api/v1/payments/…", UserAgent: "okhttp/4.12.0"}, Count: 2}) {
		t.Errorf("%d requests of %+v", r.Results[missing], list)
	}
	var b strings.Builder
	if err := s.proxy.Observed().WriteText(&b); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"52  nobody knows whose request it is (tenant_missing)", "2  POST /api/v1/payments/…  okhttp/4.12.0", "next: say whose request it is: --scope header:NAME", "--scope jwt:CLAIM", "--scope single"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("the report does not say %q:\n%s", want, b.String())
		}
	}
	if strings.Contains(b.String(), "smith") || strings.Contains(b.String(), "192.0.2.7") {
		t.Errorf("the report has personal data:\n%s", b.String())
	}
}

func TestObserve_Admin_ServesCounts(t *testing.T) {
	a := &actor{}
	s := play(t, a.ServeHTTP, "observe: true\n"+observedRules)
	for range 2 {
		s.send("POST", "/required", "a", step{tenant: "ann", key: "k", answer: "201"}.headers()...)
	}
	s.send("POST", "/required", "a", step{tenant: "ann", answer: "201"}.headers()...)
	s.proxy.Close()
	for path, want := range map[string][]string{
		"/metrics":       {`semel_observed_requests_total{operation="http",result="first",rule="/required"} 1`, `result="key_missing",rule="/required"} 1`, "semel_observed_keys 1", "semel_ready 1"},
		"/observed":      {"Rule /required, operation http", "1  first calls", "1  duplicates after", "1  no key, although"},
		"/observed?json": {`"duplicate_after":1`},
		"/healthz":       {"alive"},
	} {
		r := fetch(t, "GET", s.admin.URL+path, "")
		for _, text := range want {
			if !strings.Contains(r.body, text) {
				t.Errorf("%s has no %q:\n%s", path, text, r.body)
			}
		}
		if strings.Contains(r.body, "semel_calls_total") {
			t.Errorf("%s counts calls that were not made", path)
		}
	}
}

// The service answers before it has read the body, so nobody knows what the body is.
func TestObserve_ServiceReadsNoBody_CountsUnobserved(t *testing.T) {
	s := playAt(t, earlyService(t), "observe: true\n"+observedRules)
	// The client reads the answer even if its write fails, because the server closes the
	// connection after the answer and does not read the rest of the body. An
	// http.Transport may report the failed write instead.
	const size = 4 << 20
	c, answers := s.half(fmt.Sprintf("POST /pay HTTP/1.1\r\nHost: a\r\nX-Tenant: ann\r\nIdempotency-Key: k\r\nContent-Length: %d\r\n\r\n", size))
	written := make(chan struct{})
	go func() {
		defer close(written)
		_, _ = io.WriteString(c, strings.Repeat("x", size))
	}()
	res, err := http.ReadResponse(answers, nil)
	if err != nil || res.StatusCode != http.StatusRequestEntityTooLarge {
		t.Fatalf("%+v, %v", res, err)
	}
	s.proxy.Close()
	if got := s.proxy.Observed().Rules[0].Results; got[observe.Unobserved] != 1 {
		t.Errorf("%v", got)
	}
	_ = c.Close()
	<-written
}

func TestObserve_ClientLeaves_CountsDoubt(t *testing.T) {
	a := &actor{}
	s := play(t, a.ServeHTTP, "observe: true\n"+observedRules)
	arrived, release := a.hold()
	defer release()
	ctx, leave := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL+"/pay", strings.NewReader("a"))
		if err != nil {
			t.Error(err)
			return
		}
		r.Header.Set("Idempotency-Key", "k")
		r.Header.Set("X-Tenant", "ann")
		if res, err := http.DefaultTransport.RoundTrip(r); err == nil {
			_ = res.Body.Close()
			t.Errorf("the client got %s", res.Status)
		}
	}()
	<-arrived
	eventually(t, "the twin has claimed its key", func() bool { return keysOf(s) == 1 })
	leave()
	<-ended
	eventually(t, "the request is counted", func() bool { return s.proxy.Observed().Requests == 1 })
	if got := s.proxy.Observed().Rules[0]; got.Results[observe.First] != 1 || got.Doubt[observe.ClientLeft] != 1 {
		t.Errorf("%+v", got)
	}
}

// earlyService answers 413 as soon as it has the head of a request.
func earlyService(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	t.Cleanup(func() {
		_ = l.Close()
		<-ended
	})
	answered := make(chan struct{})
	t.Cleanup(func() { close(answered) })
	go func() {
		defer close(ended)
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		_ = c.(*net.TCPConn).SetReadBuffer(4096) // so that the system does not take the rest of the body
		if _, err := http.ReadRequest(bufio.NewReader(c)); err == nil {
			_, _ = io.WriteString(c, "HTTP/1.1 413 Content Too Large\r\nContent-Length: 0\r\n\r\n")
		}
		<-answered // the connection stays open, so that the answer arrives
	}()
	return "http://" + l.Addr().String()
}
