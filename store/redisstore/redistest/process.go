package redistest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"
)

// ErrNotInstalled says that there is no server program on this machine.
var ErrNotInstalled = errors.New("redistest: no redis-server or valkey-server in PATH; install redis-server, or set SEMEL_TEST_REDIS_BIN or SEMEL_TEST_REDIS_URL")

// ready is how long a server may take to start, or to end.
const ready = 3 * time.Minute

// process is a run of a program.
type process struct {
	cmd   *exec.Cmd
	ended chan struct{}
}

// Bin is the server's program, or ErrNotInstalled.
func Bin() (string, error) {
	if bin := os.Getenv("SEMEL_TEST_REDIS_BIN"); bin != "" {
		return bin, nil
	}
	for _, name := range []string{"redis-server", "valkey-server"} {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", ErrNotInstalled
}

// run starts a program, which ends with this process at the latest.
func run(bin string, args, env []string, dir string, log *os.File) (*process, error) {
	p := &process{cmd: exec.CommandContext(context.Background(), bin, args...), ended: make(chan struct{})}
	p.cmd.SysProcAttr, p.cmd.Dir = ownAttr(), dir
	p.cmd.Env = append(os.Environ(), env...)
	p.cmd.Stdout, p.cmd.Stderr = log, log
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
		return nil, fmt.Errorf("redistest: %w", err)
	}
	return p, nil
}

// over reports whether it has ended.
func (p *process) over() bool {
	select {
	case <-p.ended:
		return true
	default:
		return false
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

// freePort is one that nobody listens on, and neither on the one 10000 above
// it, which a cluster's nodes talk on. Both are below those that the system
// hands out by itself (32768 and up on Linux): while a server is down, nobody
// else is given its port.
func freePort() (int, error) {
	var err error
	for range 100 {
		port := 10000 + rand.IntN(12000)
		if err = errors.Join(listenOnce(port), listenOnce(port+10000)); err == nil {
			return port, nil
		}
	}
	return 0, err
}

func listenOnce(port int) error {
	l, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", fmt.Sprint("127.0.0.1:", port))
	if err != nil {
		return err
	}
	return l.Close()
}

// pause is between two looks at a server that starts or ends.
func pause(d time.Duration) { <-time.After(d) }

// until looks again and again, until is says nil.
func until(is func() error) error {
	for deadline := time.Now().Add(ready); ; pause(5 * time.Millisecond) {
		err := is()
		if err == nil || time.Now().After(deadline) {
			return err
		}
	}
}
