package pgtest

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"
)

// shared is the server that the tests of a process have in common.
var shared struct {
	once   sync.Once
	server *Server
	err    error
}

// Main runs the tests of a package and removes the server that URL may have
// started. For TestMain: os.Exit(pgtest.Main(m)), with a *testing.M.
func Main(m interface{ Run() int }) int {
	code := m.Run()
	if shared.server != nil {
		if err := shared.server.Remove(); err != nil {
			fmt.Fprintln(os.Stderr, "pgtest:", err)
		}
	}
	return code
}

// URL is that of SEMEL_TEST_POSTGRES_URL, or of a server that all tests of the
// process share, with the settings Fast: keep to a schema of your own. It
// skips the test if there is none.
func URL(t testing.TB) string {
	t.Helper()
	if url := os.Getenv("SEMEL_TEST_POSTGRES_URL"); url != "" {
		return url
	}
	shared.once.Do(func() { shared.server, shared.err = New(Fast...) })
	need(t, shared.err)
	return shared.server.URL()
}

// Start makes a server that t alone uses, may kill, and removes in the end. It
// skips the test if there are no binaries.
func Start(t testing.TB, settings ...string) *Server {
	t.Helper()
	s, err := New(settings...)
	need(t, err)
	t.Cleanup(func() {
		if err := s.Remove(); err != nil {
			t.Errorf("pgtest: %v", err)
		}
	})
	return s
}

// need skips or fails a test that has no server.
func need(t testing.TB, err error) {
	t.Helper()
	if errors.Is(err, ErrNotInstalled) && os.Getenv("SEMEL_TEST_REQUIRE") != "1" {
		t.Skipf("SKIPPED, NOT TESTED: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
}
