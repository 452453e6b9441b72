package amqptest

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"
)

// process is a run of a program.
type process struct {
	cmd   *exec.Cmd
	ended chan struct{}
}

// run starts a program, which ends with this process at the latest.
func run(path string, args, env []string, dir string, log *os.File) (*process, error) {
	p := &process{cmd: exec.CommandContext(context.Background(), path, args...), ended: make(chan struct{})}
	p.cmd.SysProcAttr, p.cmd.Dir, p.cmd.Env = ownerAttr(), dir, env
	if log != nil {
		p.cmd.Stdout, p.cmd.Stderr = log, log
	}
	started := make(chan error)
	go func() {
		defer close(p.ended)
		// It is told to die with the thread that started it.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := p.cmd.Start()
		started <- err
		if err == nil {
			_ = p.cmd.Wait() // however it ends: that is for others to judge
		}
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("amqptest: %w", err)
	}
	return p, nil
}

func (p *process) alive() bool {
	select {
	case <-p.ended:
		return false
	default:
		return true
	}
}

func (p *process) end(how syscall.Signal) {
	_ = p.cmd.Process.Signal(how) // it may have ended
	select {
	case <-p.ended:
	case <-time.After(ready):
		_ = p.cmd.Process.Kill()
		<-p.ended
	}
}

func freePort() (int, error) {
	l, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	port := l.Addr().(*net.TCPAddr).Port
	return port, l.Close()
}

// pause is between two looks at a node that starts or ends.
func pause(d time.Duration) { <-time.After(d) }
