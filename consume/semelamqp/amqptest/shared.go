package amqptest

import (
	"testing"

	"github.com/semel-go/semel/internal/proctest"
)

// shared is the node that the tests of a process share.
var shared proctest.Shared[*Server]

// Main runs the tests of a package, and then removes the node that [Shared] may
// have started. Call it in TestMain: os.Exit(amqptest.Main(m)).
func Main(m interface{ Run() int }) int { return proctest.Main(m, &shared) }

// Shared is a node that all tests of the process share, so each uses queues of
// its own and does not kill the node. Shared skips the test if there is no
// RabbitMQ.
func Shared(t testing.TB) *Server {
	t.Helper()
	s, err := shared.Get(New)
	proctest.Need(t, err, ErrNotInstalled)
	return s
}

// Start makes a node that only t uses and that t may kill, and removes it when t
// ends. It skips the test if there is no RabbitMQ.
func Start(t testing.TB) *Server {
	t.Helper()
	s, err := New()
	proctest.Need(t, err, ErrNotInstalled)
	proctest.RemoveAtEnd(t, s)
	return s
}
