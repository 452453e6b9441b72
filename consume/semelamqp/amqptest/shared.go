package amqptest

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"
)

// shared is the node that the tests of a process have in common.
var shared struct {
	once   sync.Once
	server *Server
	err    error
}

// Main runs the tests of a package and removes the node that Shared may have
// started. For TestMain: os.Exit(amqptest.Main(m)).
func Main(m *testing.M) int {
	code := m.Run()
	if shared.server != nil {
		if err := shared.server.Remove(); err != nil {
			fmt.Fprintln(os.Stderr, "amqptest:", err)
		}
	}
	return code
}

// Shared is a node that all tests of the process share: keep to queues of your
// own, and do not kill it. It skips the test if there is no RabbitMQ.
func Shared(t testing.TB) *Server {
	t.Helper()
	shared.once.Do(func() { shared.server, shared.err = New() })
	need(t, shared.err)
	return shared.server
}

// Start makes a node that t alone uses, may kill, and removes in the end. It
// skips the test if there is no RabbitMQ.
func Start(t testing.TB) *Server {
	t.Helper()
	s, err := New()
	need(t, err)
	t.Cleanup(func() {
		if err := s.Remove(); err != nil {
			t.Errorf("amqptest: %v", err)
		}
	})
	return s
}

// need skips or fails a test that has no node.
func need(t testing.TB, err error) {
	t.Helper()
	if errors.Is(err, ErrNotInstalled) && os.Getenv("SEMEL_TEST_REQUIRE") != "1" {
		t.Skipf("SKIPPED, NOT TESTED: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
}
