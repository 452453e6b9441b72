package redistest

import (
	"fmt"
	"os"
	"sync/atomic"
	"testing"

	"github.com/semel-go/semel/internal/proctest"
)

// The server and the authority that the tests of a process share, and the
// number of databases of the server that Database has given out.
var (
	shared    proctest.Shared[*Server]
	trusted   proctest.Shared[*Authority]
	databases atomic.Int64
)

// Main runs the tests of a package, and then removes what [URL] and [Trusted]
// may have made. Call it in TestMain: os.Exit(redistest.Main(m)).
func Main(m interface{ Run() int }) int { return proctest.Main(m, &shared, &trusted) }

// Trusted is an authority whose certificates this process trusts: Trusted sets
// SSL_CERT_FILE to the authority's file. Call it before anything in the process
// verifies a certificate, because crypto/x509 reads that variable once. [Main]
// removes the authority.
func Trusted(t testing.TB) *Authority {
	t.Helper()
	a, err := trusted.Get(func() (*Authority, error) {
		dir, err := os.MkdirTemp("", "semel-redis-ca-") //nolint:usetesting // for all tests of the process
		if err != nil {
			return nil, err
		}
		a, err := NewAuthority(dir)
		if err != nil {
			return nil, err
		}
		return a, os.Setenv("SSL_CERT_FILE", a.File) //nolint:usetesting // for all tests of the process
	})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// URL is the address of a server for the tests of this process:
// SEMEL_TEST_REDIS_URL if it is set, and otherwise a private server with the
// settings [Fast]. Tests share the server, so each uses a key prefix of its own. URL skips the test if there is no program.
func URL(t testing.TB) string {
	t.Helper()
	if url := os.Getenv("SEMEL_TEST_REDIS_URL"); url != "" {
		return url
	}
	s, err := shared.Get(func() (*Server, error) { return New(Fast...) })
	need(t, err)
	return s.URL()
}

// Database is URL with one of 999 databases of the private server, so that a
// test that reads all keys reads few keys of other tests. Each test uses a key
// prefix of its own all the same.
func Database(t testing.TB) string {
	t.Helper()
	url := URL(t)
	if os.Getenv("SEMEL_TEST_REDIS_URL") != "" {
		return url
	}
	return fmt.Sprintf("%s/%d", url, 1+databases.Add(1)%999)
}

// Start makes a server that only t uses and that t may kill, and removes it
// when t ends. It skips the test if there is no program.
func Start(t testing.TB, args ...string) *Server {
	t.Helper()
	return started(t, &Server{args: args})
}

// started makes a server that is removed when t ends.
func started(t testing.TB, s *Server) *Server {
	t.Helper()
	s, err := newServer(s)
	need(t, err)
	proctest.RemoveAtEnd(t, s)
	return s
}

// need skips the test if there is no program, or no compiler, and fails it for
// other errors.
func need(t testing.TB, err error) {
	t.Helper()
	proctest.Need(t, err, ErrNotInstalled, ErrNoCompiler)
}
