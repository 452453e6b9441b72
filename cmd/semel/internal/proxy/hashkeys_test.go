package proxy_test

import (
	"encoding/base64"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/semel-go/semel/store"
)

// hashKeysFile writes a secret to a file.
func hashKeysFile(t *testing.T) (secret []byte, path string) {
	t.Helper()
	secret, path = []byte(strings.Repeat("s", 32)), filepath.Join(t.TempDir(), "hash-keys")
	if err := os.WriteFile(path, []byte(base64.StdEncoding.EncodeToString(secret)+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return secret, path
}

// With hash-keys-file the service gets the key of the client and its hash, and the hook
// is asked about the same hash. Neither the store nor the log has the key or the tenant.
func TestHashKeys_Parked_HookAsksAboutTheHashThatTheServiceGot(t *testing.T) {
	secret, path := hashKeysFile(t)
	o := newOracle(t)
	s := play(t, failsOnce(), byTenant+"on-doubt: park\nhash-keys-file: "+path+"\nreconcile-url: "+o.URL+"\n")
	if r := s.pay("canary-key", "X-Tenant", "canary-tenant", "Semel-Key-Hash", "of the client"); r.status != 500 {
		t.Errorf("first: %+v", r)
	}
	o.say(`{"happened":true,"response":{"status":201,"body":"found"}}`)
	if r := s.pay("canary-key", "X-Tenant", "canary-tenant"); r.status != 201 || r.body != "found" || s.backend.count() != 1 {
		t.Errorf("again: %+v, the service was asked %d times", r, s.backend.count())
	}
	want := store.Key{Operation: "http", Tenant: "canary-tenant", Value: "canary-key"}.Hashed(secret)
	sent := s.backend.seen[0].Header
	if sent.Get("Idempotency-Key") != "canary-key" || len(sent["Semel-Key-Hash"]) != 1 || sent.Get("Semel-Key-Hash") != want.Value {
		t.Errorf("the service got %v", sent)
	}
	if q, n := o.last(); n != 1 || q.Tenant != want.Tenant || q.Key != want.Value {
		t.Errorf("asked %d times: %+v", n, q)
	}
	if f, err := s.store.Get(t.Context(), want); err != nil || f.Record.State != store.Completed {
		t.Errorf("the record is %+v, %v", f.Record, err)
	}
	if log := s.log.String(); strings.Contains(log, "canary") || !strings.Contains(log, want.Short()) {
		t.Errorf("the log has a canary, or not the short hash: %s", log)
	}
}

func TestHashKeys_NotSet_ServiceGetsNoHash(t *testing.T) {
	s := play(t, created(), "scope: single\n")
	s.pay("k", "Semel-Key-Hash", "of the client")
	if sent := s.backend.seen[0].Header; sent["Semel-Key-Hash"] != nil {
		t.Errorf("the service got %v", sent)
	}
}

// The log names a tenant that a limit refuses by its hash.
func TestHashKeys_LimitRefuses_LogHasHashOfTenant(t *testing.T) {
	secret, path := hashKeysFile(t)
	s := play(t, created(), byTenant+"tenant-keys: 1\nhash-keys-file: "+path+"\n")
	for range 2 {
		s.pay("canary-key", "X-Tenant", "canary-tenant")
	}
	log, want := s.log.String(), store.Key{Tenant: "canary-tenant"}.Hashed(secret).Tenant
	for _, line := range []string{`level=WARN msg="a limit refuses`, "level=DEBUG msg=refused"} {
		_, rest, _ := strings.Cut(log, line)
		if line, _, _ = strings.Cut(rest, "\n"); !strings.Contains(line, " tenant="+want+" ") {
			t.Errorf("the line has not the hash: %s", log)
		}
	}
	if strings.Contains(log, "canary") {
		t.Errorf("the log has a canary: %s", log)
	}
}
