package proxy_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/semel-go/semel/cmd/semel/internal/hook"
	"github.com/semel-go/semel/store"
)

func TestAuthorize_Replay_ShownOnlyIfAllowed(t *testing.T) {
	var status, asked atomic.Int64
	auth := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		if r.Header.Get("X-Forwarded-Method") != "POST" || r.Header.Get("X-Forwarded-Uri") != "/pay" || r.Header.Get("Authorization") != "Bearer t" {
			t.Errorf("asked with %v", r.Header)
		}
		w.Header().Set("WWW-Authenticate", `Bearer error="expired"`)
		w.WriteHeader(int(status.Load()))
	}))
	defer auth.Close()
	s := play(t, created(), "scope: single\nauthorize-url: "+auth.URL+"\n")
	if r := s.pay("k", "Authorization", "Bearer t"); r.status != 201 || asked.Load() != 0 {
		t.Errorf("the first: %+v, asked %d times", r, asked.Load())
	}
	for answer, want := range map[int64]struct {
		status int
		code   string
	}{200: {201, ""}, 401: {401, "replay_forbidden"}, 403: {403, "replay_forbidden"}, 500: {503, "authorizer_unavailable"}, 302: {503, "authorizer_unavailable"}} {
		status.Store(answer)
		r := s.pay("k", "Authorization", "Bearer t")
		if r.status != want.status || want.code != "" && !strings.Contains(r.body, want.code) || (want.code == "") != (r.body == "answer 1") {
			t.Errorf("%d: %+v", answer, r)
		}
		if (r.header.Get("Retry-After") != "") != (want.status == 503) {
			t.Errorf("%d: when to come again: %+v", answer, r)
		}
		if got := r.header.Get("WWW-Authenticate"); answer == 401 && got != `Bearer error="expired"` || answer == 403 && got != "" {
			t.Errorf("%d: the challenge is %q", answer, got)
		}
	}
	auth.Close()
	if r := s.pay("k", "Authorization", "Bearer t"); r.status != 503 || strings.Contains(r.body, "answer 1") {
		t.Errorf("nobody to ask: %+v", r)
	}
	if n := s.backend.count(); n != 1 {
		t.Errorf("the service was asked %d times", n)
	}
}

// Access to an answer can depend on the origin of a request, so the authorizer
// must get the same X-Forwarded-* headers as the upstream.
func TestAuthorize_ForwardedHeaders_SameAsUpstream(t *testing.T) {
	names := []string{"X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto"}
	for _, doc := range []string{"", "trust-forwarded: true\n"} {
		asked := make(chan http.Header, 1)
		auth := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { asked <- r.Header.Clone() }))
		s := play(t, created(), "scope: single\nauthorize-url: "+auth.URL+"\n"+doc)
		for key, headers := range map[string][]string{
			"told":  {"X-Forwarded-For", "192.0.2.7", "X-Forwarded-For", "192.0.2.8", "X-Forwarded-Host", "pay.example", "X-Forwarded-Proto", "https"},
			"plain": nil,
		} {
			s.pay(key, headers...)
			if r := s.pay(key, headers...); !r.replayed() {
				t.Fatalf("%+v", r)
			}
			told, sent := <-asked, s.backend.seen[s.backend.count()-1].Header
			for _, name := range names {
				if len(told[name]) != 1 || told.Get(name) != sent.Get(name) {
					t.Errorf("%q, %s: %s: the authorizer got %q, the service %q", doc, key, name, told[name], sent[name])
				}
			}
		}
		auth.Close()
	}
}

// A gateway can name the tenant in an X-Forwarded- header. The authorizer gets it as the service
// does, and no such header that only the client has set.
func TestAuthorize_TenantInForwardedHeader_Sent(t *testing.T) {
	asked := make(chan http.Header, 1)
	auth := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { asked <- r.Header.Clone() }))
	defer auth.Close()
	s := play(t, created(), "scope: header:X-Forwarded-User\nprotected-headers: [X-Forwarded-Email, X-Forwarded-Uri]\nauthorize-url: "+auth.URL+"\n")
	headers := []string{"X-Forwarded-User", "ann", "X-Forwarded-Email", "ann@shop.example", "X-Forwarded-Groups", "admins", "X-Forwarded-Uri", "/public", "X-Forwarded-Method", "GET"}
	s.pay("k", headers...)
	if r := s.pay("k", headers...); !r.replayed() {
		t.Fatalf("%+v", r)
	}
	got := <-asked
	for name, want := range map[string]string{
		"X-Forwarded-User": "ann", "X-Forwarded-Email": "ann@shop.example", "X-Forwarded-Groups": "", "X-Forwarded-Uri": "/pay", "X-Forwarded-Method": "POST",
	} {
		if got.Get(name) != want || len(got[name]) > 1 {
			t.Errorf("%s: the authorizer got %q, want %q", name, got[name], want)
		}
	}
}

// Some gateways name the user in a header with an underscore.
func TestAuthorize_TenantInHeaderWithUnderscore_Sent(t *testing.T) {
	asked := make(chan http.Header, 1)
	auth := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { asked <- r.Header.Clone() }))
	defer auth.Close()
	s := play(t, created(), "scope: header:SM_USER\nprotected-headers: [SM_GROUP, X_Forwarded_Uri]\nauthorize-url: "+auth.URL+"\n")
	headers := []string{"SM_USER", "ann", "SM_GROUP", "sales", "X_Forwarded_Uri", "/public", "X_Other", "1"}
	s.pay("k", headers...)
	if r := s.pay("k", headers...); !r.replayed() {
		t.Fatalf("%+v", r)
	}
	got := <-asked
	for name, want := range map[string]string{"Sm_user": "ann", "Sm_group": "sales", "X_forwarded_uri": "", "X_other": "", "X-Forwarded-Uri": "/pay"} {
		if got.Get(name) != want {
			t.Errorf("%s: the authorizer got %q, want %q", name, got[name], want)
		}
	}
}

// oracle answers --reconcile-url as it is told.
type oracle struct {
	*httptest.Server
	mu     sync.Mutex
	answer string
	asked  []hook.Question
}

func newOracle(t *testing.T) *oracle {
	o := &oracle{answer: `{"happened":null}`}
	o.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var q hook.Question
		if err := json.NewDecoder(r.Body).Decode(&q); err != nil {
			t.Error(err)
		}
		o.mu.Lock()
		defer o.mu.Unlock()
		o.asked = append(o.asked, q)
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, o.answer)
	}))
	t.Cleanup(o.Close)
	return o
}

func (o *oracle) say(answer string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.answer = answer
}

func (o *oracle) last() (hook.Question, int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.asked) == 0 {
		return hook.Question{}, 0
	}
	return o.asked[len(o.asked)-1], len(o.asked)
}

// first fails and then succeeds.
func failsOnce() http.HandlerFunc {
	var n atomic.Int64
	ok := created()
	return func(w http.ResponseWriter, r *http.Request) {
		if n.Add(1) == 1 {
			w.WriteHeader(500)
			return
		}
		ok(w, r)
	}
}

func TestReconcile_DuplicateOfParked_AsksHook(t *testing.T) {
	for name, c := range map[string]struct {
		answer string
		status int
		body   string
		asked  int // of the service
	}{
		"it happened":    {`{"happened":true,"response":{"status":201,"headers":{"content-type":"text/x","Set-Cookie":"a=b"},"body":"found"}}`, 201, "found", 1},
		"not for good":   {`{"happened":false}`, 409, "", 1},
		"never happened": {`{"happened":false,"final":true}`, 201, "answer 1", 2},
		"not known":      {`{"happened":null}`, 409, "", 1},
		"not understood": {`what?`, 409, "", 1},
	} {
		t.Run(name, func(t *testing.T) {
			o := newOracle(t)
			s := play(t, failsOnce(), byTenant+"on-doubt: park\nreconcile-url: "+o.URL+"\n")
			if r := s.pay("k", "X-Tenant", "ann"); r.status != 500 || r.header.Get("Semel-Outcome") != "unknown" {
				t.Errorf("first: %+v", r)
			}
			o.say(c.answer)
			r := s.pay("k", "X-Tenant", "ann")
			if r.status != c.status || c.body != "" && r.body != c.body || s.backend.count() != c.asked || r.header.Get("Set-Cookie") != "" && c.asked == 1 {
				t.Errorf("again: %+v, the service was asked %d times", r, s.backend.count())
			}
			q, n := o.last()
			sent := s.backend.seen[0].Header
			if n != 1 || q.Operation != "http" || q.Tenant != "ann" || q.Key != "k" || q.Attempts != 1 || q.FirstSeen.IsZero() || q.RequestDigest != sent.Get("Semel-Request-Digest") {
				t.Errorf("asked %d times: %+v", n, q)
			}
			if c.asked == 2 {
				if fence := s.backend.seen[1].Header.Get("Semel-Fence"); fence <= sent.Get("Semel-Fence") {
					t.Errorf("fences %s, %s", sent.Get("Semel-Fence"), fence)
				}
			}
		})
	}
}

func TestReconcile_Background_AsksHook(t *testing.T) {
	o := newOracle(t)
	s := play(t, failsOnce(), "scope: single\nreconcile-url: "+o.URL+"\nreconcile-every: 100ms\nrules: [{match: POST /pay, on-doubt: park, operation: pay}]\n")
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- s.proxy.Run(ctx) }()
	s.pay("k")
	eventually(t, "two rounds", func() bool { _, n := o.last(); return n >= 2 })
	o.say(`{"happened":true,"response":{"status":201,"body":"found"}}`)
	eventually(t, "the record is completed", func() bool {
		f, err := s.store.Get(t.Context(), store.Key{Operation: "pay", Value: "k"})
		return err == nil && f.Record.State == store.Completed
	})
	if r := s.pay("k"); r.status != 201 || r.body != "found" || !r.replayed() {
		t.Errorf("%+v", r)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
