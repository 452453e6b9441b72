package proxy_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/semel-go/semel/store"
)

// run runs the background work of the proxy until the test ends.
func (s *stage) run() {
	s.t.Helper()
	ctx, cancel := context.WithCancel(s.t.Context())
	done := make(chan error, 1)
	go func() { done <- s.proxy.Run(ctx) }()
	s.t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			s.t.Error(err)
		}
	})
}

func (s *stage) state(k store.Key) store.State {
	f, err := s.store.Get(s.t.Context(), k)
	if err != nil {
		return 0
	}
	return f.Record.State
}

// A round asks once about each operation that parks, even if several rules share
// it, and about no other operation.
func TestReconcileRound_SharedOperation_AskedOnce(t *testing.T) {
	o := newOracle(t)
	s := play(t, failing, "scope: single\nreconcile-url: "+o.URL+`
rules:
  - {match: /a, on-doubt: park, operation: pay}
  - {match: /b, on-doubt: retry, operation: try}
  - {match: /c, pass-through: true}
  - {match: /d, on-doubt: park, operation: pay}
  - {match: /e, on-doubt: park, operation: ship}
`)
	if got, err := s.proxy.Parking(); err != nil || !slices.Equal(got, []string{"pay", "ship"}) {
		t.Errorf("a round asks about %q, %v", got, err)
	}
}

// The service of one operation does not answer the questions about it. The rounds of another
// operation must not wait for that.
func TestReconcileRound_HookHangsForOneOperation_OtherIsDecided(t *testing.T) {
	asked, first := make(chan struct{}), sync.Once{}
	hook := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if strings.Contains(string(body), `"slow"`) {
			first.Do(func() { close(asked) })
			<-r.Context().Done()
			return
		}
		select {
		case <-asked: // the question that hangs comes first
		case <-r.Context().Done():
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"happened":true,"response":{"status":201,"body":"found"}}`)
	}))
	t.Cleanup(hook.Close)
	s := play(t, failing, "scope: single\non-doubt: park\noperation: slow\nreconcile-url: "+hook.URL+"\nreconcile-every: 20ms\nreconcile-timeout: 10m\nrules: [{match: POST /pay, operation: pay}]\n")
	for _, op := range []string{"slow", "pay"} {
		p := store.Proposal{Key: store.Key{Operation: op, Value: "k"}, State: store.Processing, Policy: store.Park, Owner: store.Owner{1}, Attempt: 1, Lease: time.Minute}
		f, err := s.store.Claim(t.Context(), p)
		if err == nil {
			err = s.store.Settle(t.Context(), f.Record.Lease(), store.Settlement{State: store.Unknown, Attempt: 1, Error: "lost"})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	s.run()
	eventually(t, "the other operation is decided", func() bool {
		return s.state(store.Key{Operation: "pay", Value: "k"}) == store.Completed
	})
}

// If a later rule parks an operation, a round asks about it, even if the first
// rule of that operation does not park.
func TestReconcileRound_OneRuleParks_OperationAsked(t *testing.T) {
	o := newOracle(t)
	o.say(`{"happened":true,"response":{"status":201,"body":"found"}}`)
	s := play(t, failing, "scope: single\nreconcile-url: "+o.URL+"\nreconcile-every: 20ms\nrules: [{match: POST /try, on-doubt: retry}, {match: POST /raw, pass-through: true}, {match: POST /pay, on-doubt: park}]\n")
	s.pay("k")
	if got := s.state(store.Key{Operation: "http", Value: "k"}); got != store.Unknown {
		t.Fatalf("it is %v", got)
	}
	s.run()
	eventually(t, "it is settled", func() bool { return s.state(store.Key{Operation: "http", Value: "k"}) == store.Completed })
	if log := s.log.String(); strings.Contains(log, "could not all be asked about") {
		t.Errorf("the log is\n%s", log)
	}
}

// A parked record does not name its rule. So a round keeps a verdict for the longest
// retention of the operation: if it expired earlier, a duplicate would reach the service again.
func TestReconcileRound_RuleKeepsLonger_VerdictKeptAsLong(t *testing.T) {
	for name, doc := range map[string]string{
		"the rule": "retention: 1s\nrules: [{match: POST /pay, retention: 30d}]\n",
		"the rest": "retention: 30d\nrules: [{match: POST /try, retention: 1s}]\n",
	} {
		o := newOracle(t)
		o.say(`{"happened":true,"response":{"status":201,"body":"found"}}`)
		s := play(t, failing, "scope: single\non-doubt: park\nreconcile-every: 20ms\nreconcile-url: "+o.URL+"\n"+doc)
		k := store.Key{Operation: "http", Value: "k"}
		s.pay("k")
		s.run()
		eventually(t, "it is settled", func() bool { return s.state(k) == store.Completed })
		f, err := s.store.Get(t.Context(), k)
		if left := f.Record.Expires.Sub(f.Now); err != nil || left < 29*24*time.Hour {
			t.Errorf("%s keeps for 30 days, and the verdict is kept for %v, %v", name, left, err)
		}
	}
}

// With no-store the store gets no part of a hook's answer but its status.
func TestReconcile_NoStore_KeepsStatusOnly(t *testing.T) {
	for name, doc := range map[string]string{
		"a duplicate asks":      "reconcile-every: 0\n",
		"a round asks":          "reconcile-every: 20ms\n",
		"a round asks for many": "reconcile-every: 20ms\non-doubt: park\n",
	} {
		t.Run(name, func(t *testing.T) {
			o := newOracle(t)
			o.say(`{"happened":true,"response":{"status":201,"headers":{"Location":"/t/canary"},"body":"canary"}}`)
			s := play(t, failing, "scope: single\nreconcile-url: "+o.URL+"\nrules: [{match: POST /pay, on-doubt: park, no-store: true}]\n"+doc)
			k := store.Key{Operation: "http", Value: "k"}
			s.pay("k")
			if !strings.HasPrefix(doc, "reconcile-every: 0") {
				s.run()
				eventually(t, "it is settled", func() bool { return s.state(k) == store.Completed })
			}
			r := s.pay("k")
			if r.status != http.StatusCreated || r.body != "" || r.header.Get("Location") != "" || r.header.Get("Semel-Outcome") != "not-kept" {
				t.Errorf("a duplicate got %+v", r)
			}
			f, err := s.store.Get(t.Context(), k)
			if out := f.Record.Outcome; err != nil || !out.Gone || len(out.Body)+len(out.Header) > 0 {
				t.Errorf("the store has %+v, %v", out, err)
			}
		})
	}
}

// A hook's answer without a Content-Type must not become a page, as the service's does not.
func TestReconcile_AnswerWithoutContentType_NoneGuessed(t *testing.T) {
	o := newOracle(t)
	o.say(`{"happened":true,"response":{"status":201,"body":"<html><script>"}}`)
	s := play(t, failing, "scope: single\non-doubt: park\nreconcile-url: "+o.URL+"\n")
	s.pay("k")
	if r := s.pay("k"); r.status != http.StatusCreated || r.body != "<html><script>" || len(r.header["Content-Type"]) > 0 {
		t.Errorf("%+v", r)
	}
}
