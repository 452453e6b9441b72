package amqptest

import (
	"context"
	"fmt"
	"math/rand/v2"
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

// freePort returns a port without a listener, below the ports that the system
// assigns (32768 and up on Linux), so that no other process gets the port while
// a node starts or is down.
func freePort() (int, error) {
	var err error
	for range 100 {
		port := 10000 + rand.IntN(22000)
		var l net.Listener
		if l, err = (&net.ListenConfig{}).Listen(context.Background(), "tcp", fmt.Sprint("127.0.0.1:", port)); err == nil {
			return port, l.Close()
		}
	}
	return 0, err
}

// pause is between two looks at a node that starts or ends.
func pause(d time.Duration) { <-time.After(d) }
