package pulsartest

import (
	"errors"
	"os"
	"testing"

	"github.com/semel-go/semel/internal/proctest"
)

// shared is the server of all tests of a process.
var shared proctest.Shared[*Server]

// Main runs the tests of a package, and then removes the server that [Shared] may have
// made. Call it in TestMain: os.Exit(pulsartest.Main(m)).
func Main(m interface{ Run() int }) int { return proctest.Main(m, &shared) }

// Shared is a server for the tests of this process. Tests share it, so each uses topics of
// its own. Shared skips the test if the server cannot be had.
func Shared(t testing.TB) *Server {
	t.Helper()
	s, err := shared.Get(New)
	need(t, err)
	return s
}

// Private is a server of the test's own, which it may kill.
func Private(t testing.TB) *Server {
	t.Helper()
	s, err := New()
	need(t, err)
	proctest.RemoveAtEnd(t, s)
	return s
}

// need fails the test if err is not nil. Pulsar is never required, because its 245 MB are
// not at hand everywhere: without it the test is skipped, unless SEMEL_TEST_PULSAR names
// its directory.
func need(t testing.TB, err error) {
	t.Helper()
	if errors.Is(err, ErrNotInstalled) && os.Getenv("SEMEL_TEST_PULSAR") == "" {
		t.Skipf("SKIPPED, NOT TESTED: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
}
