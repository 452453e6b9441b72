package pgtest

import (
	"os"
	"testing"

	"github.com/semel-go/semel/internal/proctest"
)

// shared is the server that the tests of a process share.
var shared proctest.Shared[*Server]

// Main runs the tests of a package, and then removes the server that [URL] may
// have started. Call it in TestMain: os.Exit(pgtest.Main(m)), with a
// *testing.M.
func Main(m interface{ Run() int }) int { return proctest.Main(m, &shared) }

// URL is the address of a server for the tests of this process:
// SEMEL_TEST_POSTGRES_URL if it is set, and otherwise a private server with the
// settings [Fast]. Tests share the server, so each uses a schema of its own.
// URL skips the test if there are no binaries.
func URL(t testing.TB) string {
	t.Helper()
	if url := os.Getenv("SEMEL_TEST_POSTGRES_URL"); url != "" {
		return url
	}
	s, err := shared.Get(func() (*Server, error) { return New(Fast...) })
	proctest.Need(t, err, ErrNotInstalled)
	return s.URL()
}

// Start makes a server that only t uses and that t may kill, and removes it
// when t ends. It skips the test if there are no binaries.
func Start(t testing.TB, settings ...string) *Server {
	t.Helper()
	s, err := New(settings...)
	proctest.Need(t, err, ErrNotInstalled)
	proctest.RemoveAtEnd(t, s)
	return s
}
