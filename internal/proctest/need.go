package proctest

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"
)

// Need fails the test if err is not nil. If err wraps one of missing, which say
// that a program is not installed, it skips the test instead, unless
// SEMEL_TEST_REQUIRE is 1.
func Need(t testing.TB, err error, missing ...error) {
	t.Helper()
	if err == nil {
		return
	}
	for _, m := range missing {
		if errors.Is(err, m) && os.Getenv("SEMEL_TEST_REQUIRE") != "1" {
			t.Skipf("SKIPPED, NOT TESTED: %v", err)
		}
	}
	t.Fatal(err)
}

// Removable is a server that a test removes.
type Removable interface{ Remove() error }

// RemoveAtEnd removes a server when t ends.
func RemoveAtEnd(t testing.TB, s Removable) {
	t.Cleanup(func() {
		if err := s.Remove(); err != nil {
			t.Errorf("remove the test's server: %v", err)
		}
	})
}

// Shared is a server that all tests of a process use. The zero value is ready.
type Shared[S Removable] struct {
	once   sync.Once
	server S
	err    error
}

// Get is the server, which the first call starts.
func (s *Shared[S]) Get(start func() (S, error)) (S, error) {
	s.once.Do(func() { s.server, s.err = start() })
	return s.server, s.err
}

// Remove removes the server, if Get has started it.
func (s *Shared[S]) Remove() error {
	started := true
	s.once.Do(func() { started = false })
	if !started || s.err != nil {
		return nil //nolint:nilerr // Get has reported it
	}
	return s.server.Remove()
}

// Main runs a package's tests, and then removes the servers that they share. It
// returns the process's exit code, for TestMain.
func Main(m Tests, shared ...Removable) int {
	code := m.Run()
	for _, s := range shared {
		if err := s.Remove(); err != nil {
			fmt.Fprintln(os.Stderr, "remove a server that tests share:", err)
		}
	}
	return code
}

// Tests runs a package's tests, as *testing.M does.
type Tests interface{ Run() int }

// TestFunc is a function that runs tests. With it the Main functions of two
// packages wrap the same tests:
//
//	pgtest.Main(proctest.TestFunc(func() int { return redistest.Main(m) }))
type TestFunc func() int

// Run implements [Tests].
func (f TestFunc) Run() int { return f() }
