package proctest

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"testing"
	"time"
)

// Process is a child process of the test. Safe for concurrent use. Make it
// with [Start].
type Process struct {
	cmd   *exec.Cmd
	ended chan struct{}
	err   error // of Wait, once ended is closed
}

// Start starts cmd. The caller ends the process with [Process.End], and does
// not call cmd.Wait.
func Start(cmd *exec.Cmd) (*Process, error) {
	p := &Process{cmd: cmd, ended: make(chan struct{})}
	dieWithParent(cmd)
	started := make(chan error)
	go func() {
		defer close(p.ended)
		// Linux kills the child when the thread that started it ends, so this
		// goroutine keeps its thread until the child has ended.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			p.err = cmd.Wait()
		}
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("proctest: start %s: %w", cmd.Path, err)
	}
	return p, nil
}

// Run starts cmd, and kills the process when t ends.
func Run(t testing.TB, cmd *exec.Cmd) *Process {
	t.Helper()
	p, err := Start(cmd)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Kill)
	return p
}

// Self is a command that runs this test binary again, with more variables in
// its environment, and with its errors on this process's standard error. The
// binary's TestMain has to recognize one of the variables.
func Self(t testing.TB, env ...string) *exec.Cmd {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(path, "-test.run=^$") //nolint:noctx // the process lives until it is killed
	cmd.Env = append(os.Environ(), env...)
	cmd.Stderr = os.Stderr
	return cmd
}

// Pid is the process's number.
func (p *Process) Pid() int { return p.cmd.Process.Pid }

// Ended is closed when the process has ended.
func (p *Process) Ended() <-chan struct{} { return p.ended }

// Alive reports whether the process has not ended.
func (p *Process) Alive() bool {
	select {
	case <-p.ended:
		return false
	default:
		return true
	}
}

// Wait waits until the process has ended, and returns the error of its exit.
func (p *Process) Wait() error {
	<-p.ended
	return p.err
}

// Signal sends the process a signal.
func (p *Process) Signal(s os.Signal) error { return p.cmd.Process.Signal(s) }

// Kill kills the process, stopped or not, and waits until it has ended.
// Harmless when repeated.
func (p *Process) Kill() {
	_ = p.cmd.Process.Kill() // fails if the process has ended
	<-p.ended
}

// End sends the process a signal that ends it, kills it if it has not ended
// after the given time, and waits until it has ended.
func (p *Process) End(s syscall.Signal, limit time.Duration) {
	_ = p.Signal(s) // fails if the process has ended
	select {
	case <-p.ended:
	case <-time.After(limit):
		p.Kill()
	}
}
