//go:build unix

package chaos

import (
	"encoding/json"
	"sync"
	"testing"
	"time"

	"github.com/semel-go/semel/internal/proctest"
)

// process is a worker, a child process of the test.
type process struct {
	*proctest.Process
	id   int // spec.ID of the worker
	once sync.Once
	dead chan struct{} // closed after kill
}

// kill ends the worker with SIGKILL, frozen or not, and waits until it has
// ended. Harmless when repeated.
func (p *process) kill() {
	p.once.Do(func() {
		p.Kill()
		close(p.dead)
	})
}

// eventually polls for an event.
func eventually(t testing.TB, limit time.Duration, event string, f func() bool) {
	t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(limit); !f(); <-tick.C {
		if time.Now().After(end) {
			t.Fatalf("not within %v: %s", limit, event)
		}
	}
}

// workerEnv is the variable whose value is a spec. It makes this binary a worker.
const workerEnv = "SEMEL_CHAOS_WORKER"

// startWorker starts a worker, which is killed when t ends.
func startWorker(t testing.TB, s spec) *process {
	t.Helper()
	text, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	p := &process{Process: proctest.Run(t, proctest.Self(t, workerEnv+"="+string(text))), id: s.ID, dead: make(chan struct{})}
	t.Cleanup(p.kill)
	return p
}
