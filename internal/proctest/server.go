package proctest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Server is a private server, with a directory of its own. Safe for concurrent
// use. Set the exported fields, call [Server.Start], and [Server.Remove] at the
// end.
type Server struct {
	Name  string        // the prefix of the server's errors, such as "pgtest"
	Dir   string        // the server's files; Remove deletes it
	Limit time.Duration // for a start, an end and the removal of Dir

	// Command makes the command for one attempt to start. Until the server has
	// been ready once, first is set: choose a port then, because another process
	// may have taken the port of the attempt before.
	Command func(first bool) (*exec.Cmd, error)
	// Ready returns nil when p, and no other process, answers. It is called
	// repeatedly.
	Ready func(p *Process) error

	mu       sync.Mutex
	running  *Process // nil: not running
	wasReady bool     // once or more
}

// Start starts the server, and returns when it is ready. If the process ends or
// does not become ready, Start tries again: the port may be taken, or processes
// of an earlier run, which are about to end, may still use the files.
func (s *Server) Start() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running != nil {
		return fmt.Errorf("%s: the server runs already", s.Name)
	}
	var broken error // another attempt would fail too
	err := Until(s.Limit, 20*time.Millisecond, func() error {
		var p *Process
		if p, broken = s.spawn(); broken != nil {
			return nil //nolint:nilerr // the error is in broken, which ends the attempts
		}
		if err := s.await(p); err != nil {
			p.Kill()
			return err
		}
		s.running, s.wasReady = p, true
		return nil
	})
	return errors.Join(err, broken)
}

func (s *Server) spawn() (*Process, error) {
	cmd, err := s.Command(!s.wasReady)
	if err != nil {
		return nil, err
	}
	log, err := os.OpenFile(s.logFile(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer func() { _ = log.Close() }() // the process has a descriptor of its own
	cmd.Stdout, cmd.Stderr = log, log
	p, err := Start(cmd)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.Name, err)
	}
	return p, nil
}

// await returns nil when p is ready.
func (s *Server) await(p *Process) error {
	ended := false
	err := Until(s.Limit, 5*time.Millisecond, func() error {
		if ended = !p.Alive(); ended {
			return nil
		}
		return s.Ready(p)
	})
	switch {
	case ended:
		return fmt.Errorf("%s: the server ended: %s", s.Name, s.LogEnd())
	case err != nil:
		return fmt.Errorf("%s: the server does not answer within %v: %w\n%s", s.Name, s.Limit, err, s.LogEnd())
	}
	return nil
}

// Pid is the number of the server's process; 0 if it does not run.
func (s *Server) Pid() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running == nil {
		return 0
	}
	return s.running.Pid()
}

// Signal sends the server a signal, if it runs.
func (s *Server) Signal(sig syscall.Signal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running != nil {
		_ = s.running.Signal(sig) // fails if the process has ended
	}
}

// End sends the server a signal that ends it, and returns when its process has
// ended. [Server.Start] starts it again.
func (s *Server) End(sig syscall.Signal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running != nil {
		s.running.End(sig, s.Limit)
		s.running = nil
	}
}

// Remove ends the server with a signal, and deletes its directory.
func (s *Server) Remove(sig syscall.Signal) error {
	s.End(sig)
	// Processes that the server has started may write until they end, too.
	return Until(s.Limit, 10*time.Millisecond, func() error { return os.RemoveAll(s.Dir) })
}

func (s *Server) logFile() string { return filepath.Join(s.Dir, "output.log") }

// LogEnd is the last lines that the server has written, for error messages.
func (s *Server) LogEnd() string {
	text, err := os.ReadFile(s.logFile())
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return strings.Join(lines[max(0, len(lines)-8):], "\n")
}

// Until calls f again and again, with pauses, until it returns nil. After the
// limit it returns f's last error.
func Until(limit, pause time.Duration, f func() error) error {
	for deadline := time.Now().Add(limit); ; <-time.After(pause) {
		err := f()
		if err == nil || time.Now().After(deadline) {
			return err
		}
	}
}
