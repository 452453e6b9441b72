package pgstore

import (
	"errors"
	"strings"
	"testing"

	"github.com/semel-go/semel/store/pgstore/pgtest"
)

func safe() settings {
	return settings{synchronousCommit: "on", fsync: "on", fullPageWrites: "on", isolation: "read committed", version: 150000, maxConnections: 100}
}

func TestCheck_UnsafeSetting_IsNamed(t *testing.T) {
	t.Parallel()
	is := safe()
	if err := is.unsafe(13, 8); err != nil {
		t.Errorf("safe settings: %v", err)
	}
	for want, set := range map[string]func(*settings){
		"synchronous_commit is off":                             func(s *settings) { s.synchronousCommit = "off" },
		"fsync is off":                                          func(s *settings) { s.fsync = "off" },
		"full_page_writes is off":                               func(s *settings) { s.fullPageWrites = "off" },
		"the server is a replica":                               func(s *settings) { s.replica = true },
		"default_transaction_read_only is on":                   func(s *settings) { s.readOnly = true },
		`default_transaction_isolation is "repeatable read"`:    func(s *settings) { s.isolation = "repeatable read" },
		"server_version_num is 130000":                          func(s *settings) { s.version = 130000 },
		"max_connections is 20: this process alone may open 21": func(s *settings) { s.maxConnections = 20 },
	} {
		is := safe()
		set(&is)
		if err := is.unsafe(13, 8); !errors.Is(err, ErrUnsafe) || !strings.Contains(err.Error(), want) || strings.Count(err.Error(), "unsafe setting") != 1 {
			t.Errorf("%s: got %v", want, err)
		}
	}
	if err := is.unsafe(13, 2); !errors.Is(err, ErrUnsafe) || !strings.Contains(err.Error(), "2 connections") {
		t.Errorf("a pool of 2: %v", err)
	}
}

func TestCheck_ReadsServerSettings(t *testing.T) {
	t.Parallel()
	srv := pgtest.Start(t, "fsync=off", "synchronous_commit=off")
	err := openAt(t, srv.URL(), nil).Check(t.Context())
	if !errors.Is(err, ErrUnsafe) || !strings.Contains(err.Error(), "synchronous_commit is off") || !strings.Contains(err.Error(), "fsync is off") {
		t.Errorf("got %v", err)
	}
	srv.Stop()
	if err := srv.Start(); err != nil {
		t.Fatal(err)
	}
	s := openAt(t, srv.URL(), nil)
	mustExec(t, s.ownPool, "ALTER ROLE postgres SET default_transaction_isolation = 'serializable'")
	if err := openAt(t, srv.URL(), nil).Check(t.Context()); err == nil || strings.Contains(err.Error(), `"serializable"`) {
		t.Errorf("the role's setting, which the store's connections override: %v", err)
	}
	if err := openAt(t, srv.URL()+"&default_transaction_isolation=serializable", nil).Check(t.Context()); err == nil || !strings.Contains(err.Error(), `"serializable"`) {
		t.Errorf("the URL's setting: %v", err)
	}
	mustExec(t, s.ownPool, "DROP SCHEMA semel CASCADE")
	if err := s.Check(t.Context()); !errors.Is(err, ErrSchema) {
		t.Errorf("without the tables: %v", err)
	}
	if _, err := s.Claim(t.Context(), proposal("k")); !errors.Is(err, ErrSchema) {
		t.Errorf("a claim without the tables: %v", err)
	}
}

func TestCheck_DurableServer_Passes(t *testing.T) {
	t.Parallel()
	srv := pgtest.Start(t, pgtest.Durable...)
	if err := openAt(t, srv.URL()+"&pool_max_conns=8", nil).Check(t.Context()); err != nil {
		t.Error(err)
	}
}
