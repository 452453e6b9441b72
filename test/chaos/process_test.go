//go:build unix

package chaos

import (
	"encoding/json"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"testing"
	"time"
)

// process is a child of the test.
type process struct {
	id   int // of a worker: its spec.ID
	cmd  *exec.Cmd
	once sync.Once
	dead chan struct{} // closed once it is gone by kill
}

// starts runs functions on one thread that lives as long as this process: a
// child that is to die with its parent dies with the parent's thread.
var starts = sync.OnceValue(func() chan<- func() {
	c := make(chan func())
	go func() {
		runtime.LockOSThread()
		for f := range c {
			f()
		}
	}()
	return c
})

// launch starts a child. It is killed when the test ends.
func launch(t testing.TB, cmd *exec.Cmd) *process {
	t.Helper()
	cmd.SysProcAttr = dieWithParent()
	started := make(chan error)
	starts() <- func() { started <- cmd.Start() }
	if err := <-started; err != nil {
		t.Fatal(err)
	}
	p := &process{cmd: cmd, dead: make(chan struct{})}
	t.Cleanup(p.kill)
	return p
}

func (p *process) signal(s syscall.Signal) error { return p.cmd.Process.Signal(s) }

// kill ends it as a power failure would, frozen or not, and waits until it is
// gone. Harmless when repeated.
func (p *process) kill() {
	p.once.Do(func() {
		_ = p.cmd.Process.Kill() // it may have ended
		_ = p.cmd.Wait()         // its error says that it was killed
		close(p.dead)
	})
}

// eventually polls for an event.
func eventually(t testing.TB, limit time.Duration, what string, f func() bool) {
	t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(limit); !f(); <-tick.C {
		if time.Now().After(end) {
			t.Fatalf("not within %v: %s", limit, what)
		}
	}
}

// workerEnv holds a spec, and makes this binary a worker.
const workerEnv = "SEMEL_CHAOS_WORKER"

func startWorker(t testing.TB, s spec) *process {
	t.Helper()
	text, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe, "-test.run=^$")
	cmd.Env = append(os.Environ(), workerEnv+"="+string(text))
	cmd.Stderr = os.Stderr
	p := launch(t, cmd)
	p.id = s.ID
	return p
}
