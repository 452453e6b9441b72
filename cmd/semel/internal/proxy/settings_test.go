package proxy_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/cmd/semel/internal/proxy"
	"github.com/semel-go/semel/store"
)

func TestMaxAttempts_Reached_NoMoreRuns(t *testing.T) {
	s := play(t, failing, "scope: single\nmax-attempts: 2\n")
	for range 2 {
		s.pay("k")
	}
	if r := s.pay("k"); !strings.Contains(r.body, "attempts_exhausted") || s.backend.count() != 2 {
		t.Errorf("the service was asked %d times: %+v", s.backend.count(), r)
	}
}

func TestLease_ClaimHeld_UntilLeaseEnds(t *testing.T) {
	var left time.Duration
	var s *stage
	s = play(t, func(w http.ResponseWriter, r *http.Request) {
		f, err := s.store.Get(r.Context(), store.Key{Operation: "http", Value: "k"})
		if err != nil {
			t.Error(err)
		}
		left = f.Record.Until.Sub(f.Now)
	}, "scope: single\nlease: 7s\n")
	if s.pay("k"); left <= 0 || left > 7*time.Second {
		t.Errorf("it holds for %v more", left)
	}
}

func TestKeyHeaders_OwnNames_KeyFound(t *testing.T) {
	s := play(t, created(), "scope: single\nkey-headers: [X-Once, X-Again]\nrequire-key: true\n")
	for _, name := range []string{"X-Once", "X-Again"} {
		s.send("POST", "/", "", name, "k"+name)
		if r := s.send("POST", "/", "", name, "k"+name); !r.replayed() {
			t.Errorf("%s: %+v", name, r)
		}
	}
	if r := s.pay("k"); r.status != 400 || !strings.Contains(r.body, "key_missing") {
		t.Errorf("under another name: %+v", r)
	}
}

// After rotation the old secret still compares the records that it keyed.
func TestSecrets_Rotated_OldStillCompares(t *testing.T) {
	s := play(t, created(), "scope: single\n")
	one, two := semel.Secret{ID: "one", Key: []byte("0123456789abcdef")}, semel.Secret{ID: "two", Key: []byte("fedcba9876543210")}
	with := func(secrets ...semel.Secret) {
		parts := s.proxy.Parts
		parts.Secrets = secrets
		p, err := proxy.New(parts)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(p.Close)
		s.Config.Handler = p.Handler()
	}
	with(one)
	s.pay("k")
	if f, err := s.store.Get(t.Context(), store.Key{Operation: "http", Value: "k"}); err != nil || f.Record.Fingerprint.KeyID != "one" {
		t.Errorf("keyed with %q, %v", f.Record.Fingerprint.KeyID, err)
	}
	with(two, one)
	if r := s.pay("k"); !r.replayed() {
		t.Errorf("rotated: %+v", r)
	}
	if r := s.send("POST", "/pay", "another body", "Idempotency-Key", "k"); r.status != 422 {
		t.Errorf("rotated, another body: %+v", r)
	}
	with(two)
	if r := s.pay("k"); r.status != 500 || !strings.Contains(r.body, "payload_unverifiable") || s.backend.count() != 1 {
		t.Errorf("without it: %+v", r)
	}
}

// A proxy's sweep recovers records of all programs of its store. It must not apply its own
// shorter retention or its limit of attempts to theirs.
func TestSweep_ProgramOfOtherOptions_KeepsItsRecord(t *testing.T) {
	for rule, want := range map[string]time.Duration{"1h": 7 * 24 * time.Hour, "30d": 30 * 24 * time.Hour} {
		recoverByProxy(t, "scope: single\nsweep-every: 100ms\nmax-attempts: 1\nretention: 1h\nrules: [{match: /long, retention: "+rule+"}]\n", want)
	}
}

// recoverByProxy requires that a proxy's sweep releases the claim of a dead consumer, and
// keeps the record for so long.
func recoverByProxy(t *testing.T, doc string, keep time.Duration) {
	t.Helper()
	s := play(t, created(), doc)
	key := store.Key{Operation: "consumer", Value: "k"}
	if f, err := s.store.Claim(t.Context(), store.Proposal{Key: key, State: store.Processing, Owner: store.Owner{1}, Attempt: 1, Lease: time.Millisecond}); err != nil || !f.Won {
		t.Fatalf("%+v, %v", f, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan error)
	go func() { done <- s.proxy.Run(ctx) }()
	var r store.Record
	eventually(t, "it is recovered", func() bool {
		f, err := s.store.Get(t.Context(), key)
		r = f.Record
		return err == nil && r.State != store.Processing
	})
	if r.State != store.Released || r.Expires.Sub(r.Updated) != keep {
		t.Errorf("it is %v, until %v after its end, want %v", r.State, r.Expires.Sub(r.Updated), keep)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// The upstream must compress only if the client accepts it.
func TestAcceptEncoding_ClientNamesNone_NoneSent(t *testing.T) {
	s := play(t, created(), "scope: single\n")
	raw(t, s.URL, "POST / HTTP/1.1\r\nHost: a\r\nIdempotency-Key: k\r\nContent-Length: 0\r\n\r\n")
	if got, ok := s.backend.seen[0].Header["Accept-Encoding"]; ok {
		t.Errorf("it was asked for %q", got)
	}
}
