package redistest

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"testing"
)

// shared is what the tests of a process have in common.
var shared struct {
	once   sync.Once
	server *Server
	err    error
	db     atomic.Int64

	trust    sync.Once
	trusted  *Authority
	distrust error
}

// Main runs the tests of a package and removes what [URL] and [Trusted] may
// have made. For TestMain: os.Exit(redistest.Main(m)).
func Main(m interface{ Run() int }) int {
	code := m.Run()
	var errs []error
	if shared.server != nil {
		errs = append(errs, shared.server.Remove())
	}
	if shared.trusted != nil {
		errs = append(errs, os.RemoveAll(shared.trusted.dir))
	}
	if err := errors.Join(errs...); err != nil {
		fmt.Fprintln(os.Stderr, "redistest:", err)
	}
	return code
}

// Trusted is an authority that the process, which calls [Main], takes for one of
// the system's: SSL_CERT_FILE names it from now on. So nothing in the process
// may have looked at a certificate before.
func Trusted(t testing.TB) *Authority {
	t.Helper()
	shared.trust.Do(func() {
		dir, err := os.MkdirTemp("", "semel-redis-ca-") //nolint:usetesting // it is for all tests of the process
		if err == nil {
			shared.trusted, err = NewAuthority(dir)
		}
		if err == nil {
			err = os.Setenv("SSL_CERT_FILE", shared.trusted.File) //nolint:usetesting // the same
		}
		shared.distrust = err
	})
	if shared.distrust != nil {
		t.Fatal(shared.distrust)
	}
	return shared.trusted
}

// URL is that of SEMEL_TEST_REDIS_URL, or of a server that all tests of the
// process share, with the settings Fast: keep to a prefix of your own. It
// skips the test if there is none.
func URL(t testing.TB) string {
	t.Helper()
	if url := os.Getenv("SEMEL_TEST_REDIS_URL"); url != "" {
		return url
	}
	shared.once.Do(func() { shared.server, shared.err = New(Fast...) })
	need(t, shared.err)
	return shared.server.URL()
}

// Database is URL with a database of the shared server that few others use,
// so that who looks at all keys sees little of theirs. Keep to a prefix of
// your own all the same.
func Database(t testing.TB) string {
	t.Helper()
	url := URL(t)
	if os.Getenv("SEMEL_TEST_REDIS_URL") != "" {
		return url
	}
	return fmt.Sprintf("%s/%d", url, 1+shared.db.Add(1)%999)
}

// Start makes a server that t alone uses, may kill, and removes in the end. It
// skips the test if there is no program.
func Start(t testing.TB, args ...string) *Server {
	t.Helper()
	s, err := New(args...)
	need(t, err)
	removeWith(t, s)
	return s
}

func removeWith(t testing.TB, s *Server) {
	t.Cleanup(func() {
		if err := s.Remove(); err != nil {
			t.Errorf("remove the server: %v", err)
		}
	})
}

// need skips the test if there is no program, or compiler, and ends it for
// other errors.
func need(t testing.TB, err error) {
	t.Helper()
	if err == nil {
		return
	}
	if (errors.Is(err, ErrNotInstalled) || errors.Is(err, ErrNoCompiler)) && os.Getenv("SEMEL_TEST_REQUIRE") != "1" {
		t.Skipf("SKIPPED, NOT TESTED: %v", err)
	}
	t.Fatal(err)
}
