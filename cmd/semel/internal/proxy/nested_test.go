package proxy_test

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
)

// nested is a proxy in front of another one. Each has a store of its own.
type nested struct {
	outer, inner *stage
	answer       atomic.Pointer[http.HandlerFunc] // of the service
}

func nest(t *testing.T, outer, inner string) *nested {
	t.Helper()
	n := &nested{}
	n.say(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusCreated) })
	n.inner = play(t, func(w http.ResponseWriter, r *http.Request) { (*n.answer.Load())(w, r) }, inner)
	n.outer = playAt(t, n.inner.URL, outer)
	return n
}

func (n *nested) say(h http.HandlerFunc) { n.answer.Store(&h) }

var nestedKey = store.Key{Operation: "http", Value: "k"}

// resolve says that the parked call of the inner proxy took effect.
func (n *nested) resolve(t *testing.T) {
	t.Helper()
	g, err := semel.New(n.inner.store, nil)
	if err != nil {
		t.Fatal(err)
	}
	found, err := n.inner.store.Get(t.Context(), nestedKey)
	if err == nil {
		err = g.Resolve(t.Context(), found.Record, semel.Happened(store.Outcome{Code: http.StatusCreated}))
	}
	if err != nil {
		t.Fatal(err)
	}
}

// Options for statuses are about the answers of a service. The refusal of a proxy inside is
// no result, whatever they say. In each case the inner proxy refuses, and then answers.
func TestNested_InnerRefuses_OuterKeepsNoResult(t *testing.T) {
	const inner, all = "scope: single\non-doubt: park\n", "keep-5xx: true\nfinal-statuses: [400, 409, 422, 503]\n"
	orders := map[string][2]string{"options outside": {"scope: single\n" + all, inner}, "options inside": {"scope: single\n", inner + all}}
	for name, c := range map[string]struct {
		refuse func(t *testing.T, n *nested) (end func())
		status int
		code   string
		then   int // the status after end
	}{
		"in progress": {func(_ *testing.T, n *nested) func() {
			arrived, goOn, done := make(chan struct{}), make(chan struct{}), make(chan reply)
			n.say(func(w http.ResponseWriter, _ *http.Request) {
				close(arrived)
				<-goOn
				w.WriteHeader(http.StatusCreated)
			})
			go func() { done <- n.inner.pay("k") }()
			<-arrived
			return func() { close(goOn); <-done }
		}, 409, "in_progress", 201},
		"parked": {func(t *testing.T, n *nested) func() {
			n.say(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
			n.inner.pay("k")
			return func() { n.resolve(t) }
		}, 409, "outcome_unknown", 201},
		"mismatch": {func(_ *testing.T, n *nested) func() {
			n.inner.send("POST", "/pay", "another body", "Idempotency-Key", "k")
			return func() {}
		}, 422, "payload_mismatch", 422},
		"store unavailable": {func(_ *testing.T, n *nested) func() {
			n.inner.store.down.Store(true)
			return func() { n.inner.store.down.Store(false) }
		}, 503, "store_unavailable", 201},
	} {
		for order, docs := range orders {
			t.Run(name+", "+order, func(t *testing.T) {
				n := nest(t, docs[0], docs[1])
				end := c.refuse(t, n)
				for range 2 {
					r := n.outer.pay("k")
					if r.status != c.status || r.replayed() || !strings.Contains(r.body, `"code":"`+c.code+`"`) {
						t.Errorf("refused: %+v, want %d %s", r, c.status, c.code)
					}
					if got := n.outer.state(nestedKey); got != store.Released {
						t.Errorf("the outer record is %v", got)
					}
				}
				end()
				if r := n.outer.pay("k"); r.status != c.then {
					t.Errorf("afterwards: %+v, want %d", r, c.then)
				}
			})
		}
	}
}

// The first answer of a call that parks is the service's own, and not the result either.
func TestNested_InnerParksFirstAnswer_OuterKeepsNoResult(t *testing.T) {
	for policy, want := range map[string]store.State{"retry": store.Released, "park": store.Unknown} {
		n := nest(t, "scope: single\nkeep-5xx: true\nfinal-statuses: [409]\non-doubt: "+policy+"\n", "scope: single\non-doubt: park\n")
		n.say(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) })
		if r := n.outer.pay("k"); r.status != 500 || r.header.Get("Semel-Outcome") != "unknown" {
			t.Errorf("%s: got %+v", policy, r)
		}
		if got := n.outer.state(nestedKey); got != want {
			t.Errorf("%s: the outer record is %v, want %v", policy, got, want)
		}
	}
}

// Operators see that the service has answered, and not a handler.
func TestNested_InnerRefuses_LastErrorSaysWho(t *testing.T) {
	n := nest(t, "scope: single\n", "scope: single\n")
	n.inner.send("POST", "/pay", "another body", "Idempotency-Key", "k")
	n.outer.pay("k")
	const want = "the service answered 422: another Semel inside refused the request"
	f, err := n.outer.store.Get(t.Context(), nestedKey)
	if err != nil || f.Record.LastError != want {
		t.Errorf("the last error is %q, %v; want %q", f.Record.LastError, err, want)
	}
}

// The service of the inner proxy may have done the work, so no option makes the answer of the
// inner proxy a result, and the outer proxy does not say that nothing was done.
func TestNested_InnerLosesAnswer_OuterIsInDoubt(t *testing.T) {
	for policy, want := range map[string]store.State{"retry": store.Released, "park": store.Unknown} {
		n := nest(t, "scope: single\nkeep-5xx: true\nfinal-statuses: [502]\non-doubt: "+policy+"\n", "scope: single\n")
		n.say(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
		if r := n.outer.pay("k"); r.status != 502 || !strings.Contains(r.body, `"code":"upstream_lost"`) {
			t.Errorf("%s: got %+v", policy, r)
		}
		if got := n.outer.state(nestedKey); got != want {
			t.Errorf("%s: the outer record is %v, want %v", policy, got, want)
		}
	}
}

// A service between two Semels may pass on all headers of the inner one, with a result of its
// own.
func TestNested_ResultWithRefusalHeader_IsKept(t *testing.T) {
	s := play(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Semel-Refusal", "in_progress")
		w.WriteHeader(http.StatusCreated)
	}, "scope: single\n")
	for i := range 2 {
		if r := s.pay("k"); r.status != 201 || r.replayed() != (i == 1) || r.header.Get("Semel-Refusal") != "" {
			t.Errorf("got %+v", r)
		}
	}
	if n := s.backend.count(); n != 1 {
		t.Errorf("%d effects, want 1", n)
	}
}
