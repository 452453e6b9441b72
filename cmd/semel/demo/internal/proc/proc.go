// Package proc runs the processes of the demo, kills them, and starts them
// again. None outlives the one that started it.
package proc

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Group starts processes. Close it.
type Group struct {
	dir   string // of their logs and temporary files
	start chan func()
	ended chan struct{}

	mu     sync.Mutex
	all    []*Process
	closed bool
}

// NewGroup makes a group whose processes write their logs and temporary files to dir: a
// killed process leaves its temporary files behind, and who made dir can delete them.
func NewGroup(dir string) *Group {
	g := &Group{dir: dir, start: make(chan func()), ended: make(chan struct{})}
	go func() {
		// Linux ties a child's "die with your parent" to the thread that
		// forked it: so there is one thread that forks, and it stays.
		runtime.LockOSThread()
		defer close(g.ended)
		for f := range g.start {
			f()
		}
	}()
	return g
}

// Process is one that is started again whenever it dies.
type Process struct {
	g    *Group
	name string
	path string
	args []string
	env  []string // beside this process's

	mu      sync.Mutex
	cmd     *exec.Cmd
	killed  bool // by Kill: its death is no failure
	stopped bool // for good
	deaths  int  // that nobody asked for
	err     error
	over    chan struct{} // closed when it is not started again
	reaped  *sync.Cond    // told at each change
	starts  int
}

// maxDeaths is how often a process may die by itself: an address can be in
// use for a moment, but not for ever.
const maxDeaths = 20

// Start starts a program under a name, which its log gets too.
func (g *Group) Start(name, path string, args ...string) (*Process, error) {
	return g.StartWith(nil, name, path, args...)
}

// StartWith is Start with variables of the environment, for secrets that other
// users must not see in the arguments.
func (g *Group) StartWith(env []string, name, path string, args ...string) (*Process, error) {
	p := &Process{g: g, name: name, path: path, args: args, env: env, over: make(chan struct{})}
	p.reaped = sync.NewCond(&p.mu)
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return nil, fmt.Errorf("%s: the group is closed", name)
	}
	if err := p.spawn(); err != nil {
		return nil, err
	}
	g.all = append(g.all, p)
	go p.watch()
	return p, nil
}

// spawn forks on the group's thread.
func (p *Process) spawn() error {
	cmd := exec.Command(p.path, p.args...) //nolint:noctx // it lives until Kill or Stop, and dies with this process
	log, err := os.OpenFile(p.log(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }() // the child has its own
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr, cmd.Env = attributes(), append(p.g.environment(), p.env...)
	started := make(chan error)
	p.g.start <- func() { started <- cmd.Start() }
	if err := <-started; err != nil {
		return fmt.Errorf("%s: %w", p.name, err)
	}
	p.cmd = cmd
	p.starts++
	return nil
}

// environment is this process's, with another folder for temporary files and without what
// would configure a semel proxy.
func (g *Group) environment() []string {
	own := slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "SEMEL_") })
	return append(own, "TMPDIR="+g.dir, "TMP="+g.dir) // Windows reads TMP
}

func (p *Process) log() string { return filepath.Join(p.g.dir, p.name+".log") }

// watch starts it again until it is stopped.
func (p *Process) watch() {
	defer close(p.over)
	for {
		_ = p.cmd.Wait() // how it died is in its log; here only this goroutine sets cmd
		p.mu.Lock()
		if !p.killed && !p.stopped {
			p.deaths++
			if p.deaths > maxDeaths {
				p.err = fmt.Errorf("%s died %d times by itself; its log ends: %s", p.name, p.deaths, tail(p.log()))
				p.stopped = true
			}
		}
		if !p.stopped {
			if !p.killed {
				p.mu.Unlock()
				time.Sleep(50 * time.Millisecond) // it has failed, and would again
				p.mu.Lock()
			}
			p.killed = false
			if !p.stopped {
				p.err = p.spawn()
				p.stopped = p.err != nil
			}
		}
		over := p.stopped
		p.reaped.Broadcast()
		p.mu.Unlock()
		if over {
			return
		}
	}
}

// Freeze stops the process in its tracks, which is how to look at it before it
// is killed. Follow it by Kill or Thaw.
func (p *Process) Freeze() error { return p.signal(freeze) }

// Thaw lets a frozen process go on.
func (p *Process) Thaw() error { return p.signal(thaw) }

func (p *Process) signal(f func(*os.Process) error) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return f(p.cmd.Process)
}

// Kill kills the process with no warning, and returns when its successor was
// started.
func (p *Process) Kill() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stopped {
		return errors.Join(p.err, fmt.Errorf("%s: is stopped", p.name))
	}
	p.killed = true
	if err := p.cmd.Process.Kill(); err != nil {
		p.killed = false
		return fmt.Errorf("%s: %w", p.name, err)
	}
	for was := p.starts; p.starts == was && !p.stopped; {
		p.reaped.Wait()
	}
	return p.err
}

// Err says why the process was given up; nil while it was not.
func (p *Process) Err() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err
}

// Deaths counts the times that it died by itself.
func (p *Process) Deaths() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.deaths
}

// Stop asks the process to end, and kills it if it has not after the time.
func (p *Process) Stop(patience time.Duration) {
	p.end(syscall.SIGTERM)
	select {
	case <-p.over:
	case <-time.After(patience):
		p.end(os.Kill)
		<-p.over
	}
}

// end signals the process, and sees to it that it is not started again.
func (p *Process) end(how os.Signal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stopped = true
	_ = p.cmd.Process.Signal(how) // it may be dead already
}

// Close kills what is left of the group. Harmless when repeated.
func (g *Group) Close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return
	}
	for _, p := range g.all {
		p.end(os.Kill)
	}
	for _, p := range g.all {
		<-p.over
	}
	g.closed = true
	close(g.start)
	<-g.ended
}

// tail is the end of a log.
func tail(path string) string {
	b, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	const most = 2000
	if len(b) > most {
		b = b[len(b)-most:]
	}
	return string(b)
}
