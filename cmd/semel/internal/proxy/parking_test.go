package proxy_test

import (
	"context"
	"slices"
	"strings"
	"testing"

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
  - {match: /c, on-doubt: park, operation: raw, pass-through: true}
  - {match: /d, on-doubt: park, operation: pay}
  - {match: /e, on-doubt: park, operation: ship}
`)
	if got, err := s.proxy.Parking(); err != nil || !slices.Equal(got, []string{"pay", "ship"}) {
		t.Errorf("a round asks about %q, %v", got, err)
	}
}

// If a later rule parks an operation, a round asks about it, even if the first
// rule of that operation does not park.
func TestReconcileRound_OneRuleParks_OperationAsked(t *testing.T) {
	o := newOracle(t)
	o.say(`{"happened":true,"response":{"status":201,"body":"found"}}`)
	s := play(t, failing, "scope: single\nreconcile-url: "+o.URL+"\nreconcile-every: 20ms\nrules: [{match: POST /try, on-doubt: retry}, {match: POST /raw, pass-through: true, on-doubt: park}, {match: POST /pay, on-doubt: park}]\n")
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
