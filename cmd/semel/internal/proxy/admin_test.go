package proxy_test

import (
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/semel-go/semel/store"
)

func TestReady_StoreAnswers_Ready(t *testing.T) {
	s := play(t, created(), "scope: single\n")
	ready := func() reply { return fetch(t, "GET", s.admin.URL+"/readyz", "") }
	if r := ready(); r.status != 200 || !strings.Contains(r.body, "ready") {
		t.Errorf("%+v", r)
	}
	s.store.down.Store(true)
	if r := ready(); r.status != 503 || !strings.Contains(r.body, "the store does not answer") {
		t.Errorf("store down: %+v", r)
	}
	if r := fetch(t, "GET", s.admin.URL+"/healthz", ""); r.status != 200 {
		t.Errorf("store down, healthz: %+v", r)
	}
	if r := s.pay("k"); r.status != 503 || !strings.Contains(r.body, "store_unavailable") || r.header.Get("Retry-After") == "" || s.backend.count() != 0 {
		t.Errorf("store down: %+v", r)
	}
	if r := s.send("GET", "/", ""); r.status != 201 {
		t.Errorf("what needs no store: %+v", r)
	}
	s.store.down.Store(false)
	if r := ready(); r.status != 200 {
		t.Errorf("store back: %+v", r)
	}
	if r := s.pay("k"); r.status != 201 {
		t.Errorf("store back: %+v", r)
	}
}

func TestReady_NoKeySet_NotReady(t *testing.T) {
	path := filepath.Join(t.TempDir(), "jwks.json")
	s := play(t, created(), "scope: jwt:sub\njwks: "+path+"\n")
	if r := fetch(t, "GET", s.admin.URL+"/readyz", ""); r.status != 503 || !strings.Contains(r.body, "key set") {
		t.Errorf("%+v", r)
	}
	if r := s.pay("k", "Authorization", "Bearer a.b.c"); r.status != 401 {
		t.Errorf("a token that cannot be read: %+v", r)
	}
	if r := s.pay("k", "Authorization", "Bearer eyJhbGciOiJFUzI1NiJ9.e30.AAAA"); r.status != 503 {
		t.Errorf("a token that cannot be judged: %+v", r)
	}
	if err := os.WriteFile(path, []byte(`{"keys":[]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if r := s.pay("k"); r.status != 401 || r.header.Get("WWW-Authenticate") != "Bearer" {
		t.Errorf("no token: %+v", r)
	}
}

func TestMetrics_TwoRules_CountedByRule(t *testing.T) {
	s := play(t, created(), byTenant+"rules: [{match: POST /pay, operation: pay}]\n")
	s.pay("canary-key", "X-Tenant", "canary-tenant")
	s.pay("canary-key", "X-Tenant", "canary-tenant")
	s.send("POST", "/other", "", "Idempotency-Key", "k", "X-Tenant", "canary-tenant")
	r := fetch(t, "GET", s.admin.URL+"/metrics", "")
	for _, want := range []string{
		`semel_events_total{kind="executed",operation="pay",rule="POST /pay"} 1`, `semel_events_total{kind="replayed",operation="pay",rule="POST /pay"} 1`,
		`semel_events_total{kind="executed",operation="http",rule="/"} 1`, "semel_ready 1", "semel_requests_in_flight 0", "semel_sweep_deleted_records_total 0",
	} {
		if !strings.Contains(r.body, want+"\n") {
			t.Errorf("no %s in\n%s", want, r.body)
		}
	}
	if strings.Contains(r.body, "canary") {
		t.Errorf("a key or a tenant is a label:\n%s", r.body)
	}
	for _, path := range []string{"/", "/debug/pprof/", "/readyz/x"} {
		if r := fetch(t, "GET", s.admin.URL+path, ""); r.status != 404 {
			t.Errorf("%s: %d", path, r.status)
		}
	}
	if r := fetch(t, "POST", s.admin.URL+"/metrics", ""); r.status != 405 {
		t.Errorf("POST: %d", r.status)
	}
}

func TestLog_Request_NoKeyTokenOrBody(t *testing.T) {
	s := play(t, func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(500)
		_, _ = w.Write([]byte("canary-answer"))
	}, "scope: jwt-unverified:sub\non-doubt: park\n")
	token := "Bearer eyJhbGciOiJFUzI1NiJ9.e30.canary-token"
	for _, auth := range []string{token, "Bearer eyJhbGciOiJFUzI1NiJ9.eyJzdWIiOiJhbm4ifQ.AAAA"} {
		for range 2 {
			s.send("POST", "/?canary-query", "canary-body", "Idempotency-Key", "canary-key", "Authorization", auth)
		}
	}
	if log := s.log.String(); strings.Contains(log, "canary") || !strings.Contains(log, "parked") {
		t.Errorf("the log:\n%s", log)
	}
}

func TestRun_ExpiredRecord_SweptAway(t *testing.T) {
	s := play(t, created(), "scope: single\nsweep-every: 100ms\nretention: 1s\n")
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- s.proxy.Run(ctx) }()
	s.pay("k")
	eventually(t, "the record is gone", func() bool {
		_, err := s.store.Get(t.Context(), store.Key{Operation: "http", Value: "k"})
		return errors.Is(err, store.ErrNotFound)
	})
	eventually(t, "it is counted", func() bool {
		return strings.Contains(fetch(t, "GET", s.admin.URL+"/metrics", "").body, "semel_sweep_deleted_records_total 1\n")
	})
	cancel()
	select {
	case err := <-done:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(time.Minute):
		t.Error("it does not end")
	}
}
