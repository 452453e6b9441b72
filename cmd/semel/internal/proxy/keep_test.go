package proxy_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/semel-go/semel/internal/lasterror"
	"github.com/semel-go/semel/store"
)

// keep-5xx keeps only answers of the upstream. The proxy's own 502 and 504 say
// that no answer came, so the request stays in doubt.
func TestKeep5xx_NoAnswer_StaysInDoubt(t *testing.T) {
	stop := make(chan struct{})
	defer close(stop)
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		status int
		code   string
	}{
		"lost": {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, http.StatusBadGateway, "upstream_lost"},
		"late": {func(http.ResponseWriter, *http.Request) { <-stop }, http.StatusGatewayTimeout, "upstream_timeout"},
	} {
		for _, policy := range []string{"retry", "park"} {
			s := play(t, c.answer, "scope: single\nkeep-5xx: true\nupstream-timeout: 300ms\non-doubt: "+policy+"\n")
			if r := s.pay("k"); r.status != c.status || !strings.Contains(r.body, c.code) {
				t.Errorf("%s, %s: %+v", name, policy, r)
			}
			r := s.pay("k")
			switch n := s.backend.count(); {
			case r.replayed():
				t.Errorf("%s, %s: that no answer came was kept as the answer: %+v", name, policy, r)
			case policy == "retry" && (n != 2 || r.status != c.status):
				t.Errorf("%s, %s: the service was asked %d times: %+v", name, policy, n, r)
			case policy == "park" && (n != 1 || !strings.Contains(r.body, "outcome_unknown")):
				t.Errorf("%s, %s: the service was asked %d times: %+v", name, policy, n, r)
			}
		}
	}
}

// The record says in words why there was no answer.
func TestRecord_NoAnswer_LastErrorSaysWhy(t *testing.T) {
	stop := make(chan struct{})
	defer close(stop)
	for code, c := range map[string]struct {
		answer http.HandlerFunc
		state  store.State
	}{
		"upstream_lost":        {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, store.Unknown},
		"upstream_timeout":     {func(http.ResponseWriter, *http.Request) { <-stop }, store.Unknown},
		"upstream_unreachable": {nil, store.Released},
	} {
		doc := "scope: single\nupstream-timeout: 300ms\non-doubt: park\n"
		var s *stage
		if c.answer == nil {
			s = playAt(t, "http://127.0.0.1:1", doc)
		} else {
			s = play(t, c.answer, doc)
		}
		s.pay("k")
		f, err := s.store.Get(t.Context(), store.Key{Operation: "http", Value: "k"})
		m, _ := lasterror.ByCode(code)
		if got, ok := lasterror.Explain(&f.Record); err != nil || f.Record.State != c.state || !ok || got.Code != m.Code || got.Happened != m.Happened || !strings.HasPrefix(f.Record.LastError, m.Happened) {
			t.Errorf("%s: %v with the error %q, %v", code, f.Record.State, f.Record.LastError, err)
		}
	}
}

func TestKeep5xx_Answer_Kept(t *testing.T) {
	for result, want := range map[string]int{"": 1, "final": 1, "no-effect": 2} {
		s := play(t, func(w http.ResponseWriter, r *http.Request) {
			if result != "" {
				w.Header().Set("Semel-Result", result)
			}
			w.WriteHeader(http.StatusBadGateway)
		}, "scope: single\nkeep-5xx: true\non-doubt: park\n")
		s.pay("k")
		if r := s.pay("k"); r.status != http.StatusBadGateway || s.backend.count() != want || r.replayed() != (want == 1) {
			t.Errorf("%q: the service was asked %d times: %+v", result, s.backend.count(), r)
		}
	}
}

// If the service is another semel proxy that parks, its 409 is no result: the operation may
// have had its effect, and somebody decides about it later. Semel-Outcome reaches the client,
// which would otherwise take the 409 for final.
func TestOutcomeUnknown_OfService_StaysInDoubt(t *testing.T) {
	for _, policy := range []string{"retry", "park"} {
		t.Run(policy, func(t *testing.T) {
			inner := play(t, failing, "scope: single\non-doubt: park\n")
			outer := playAt(t, inner.URL, "scope: single\non-doubt: "+policy+"\n")
			for i := range 3 {
				r := outer.pay("k")
				if r.replayed() || r.header.Get("Semel-Outcome") != "unknown" {
					t.Errorf("answer %d, replayed %v: %+v", i, r.replayed(), r)
				}
				if i > 0 && (r.status != http.StatusConflict || !strings.Contains(r.body, "outcome_unknown")) {
					t.Errorf("answer %d: %+v", i, r)
				}
			}
			want := map[string]store.State{"retry": store.Released, "park": store.Unknown}[policy]
			if got := outer.state(store.Key{Operation: "http", Value: "k"}); got != want {
				t.Errorf("the record is %v, want %v", got, want)
			}
			if n := inner.backend.count(); n != 1 {
				t.Errorf("the service was asked %d times", n)
			}
		})
	}
}

// If the service has a Semel of its own that replays an answer without its body, the empty
// body is no answer: the first client and each duplicate learn that it is not kept.
func TestOutcomeNotKept_OfService_ReachesEachClient(t *testing.T) {
	for _, result := range []string{"", "final"} {
		s := play(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Idempotent-Replayed", "true")
			w.Header().Set("Semel-Outcome", "not-kept")
			if result != "" {
				w.Header().Set("Semel-Result", result)
			}
			w.WriteHeader(http.StatusCreated)
		}, "scope: single\n")
		for i := range 3 {
			var key []string
			if i < 2 {
				key = []string{"Idempotency-Key", "k"}
			}
			r := s.send("POST", "/pay", "", key...)
			if r.status != http.StatusCreated || r.header.Get("Semel-Outcome") != "not-kept" {
				t.Errorf("result %q, answer %d looks empty: %+v", result, i, r)
			}
		}
		if n := s.backend.count(); n != 2 {
			t.Errorf("result %q: the service was asked %d times, want one for the key and one without", result, n)
		}
	}
}

// A service below a path of --upstream redirects to its log-in page with the path that it
// got itself. The redirect is no result, as without such a path.
func TestLoginRedirect_UpstreamHasPath_RunsAgain(t *testing.T) {
	for location, kept := range map[string]bool{
		"/api/login?next=/api/pay":  false,
		"/api/login?next=%2Fpay":    false, // the service knows the path of the client
		"/api/login?next=/api/cart": true,
		"/api/orders/7":             true,
	} {
		t.Run(location, func(t *testing.T) {
			b := newBackend(t, func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Location", location)
				w.WriteHeader(http.StatusFound)
			})
			s := playAt(t, b.URL+"/api", "scope: single\non-doubt: park\n")
			s.pay("k")
			if r := s.pay("k"); r.status != http.StatusFound || r.replayed() != kept || strings.HasPrefix(r.header.Get("Location"), "/api") {
				t.Errorf("replayed %v, want %v: %+v", r.replayed(), kept, r)
			}
			f, err := s.store.Get(t.Context(), store.Key{Operation: "http", Value: "k"})
			if want := " answered 302: it asks to log in and to come back"; err != nil || !kept && !strings.HasSuffix(f.Record.LastError, want) {
				t.Errorf("the record says %q, %v", f.Record.LastError, err)
			}
		})
	}
}
