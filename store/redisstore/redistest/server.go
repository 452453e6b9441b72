package redistest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Durable are the settings of a server that keeps what it has confirmed. Fast
// are those of one that is never killed.
var (
	Durable = []string{"--appendonly", "yes", "--appendfsync", "always"}
	Fast    = []string{"--appendonly", "no"}
)

// Server is a private server. Safe for concurrent use. Make it with [New].
type Server struct {
	bin, dir string
	port     int
	tlsPort  int
	tls      bool // it speaks TLS, too
	args     []string
	env      []string // besides this process's
	file     string   // a Sentinel's configuration; else empty

	mu   sync.Mutex
	proc *process // nil: not running
}

// New makes a server with arguments such as "--appendonly", "yes", and starts
// it. Remove it in the end.
func New(args ...string) (*Server, error) {
	return newServer(&Server{args: slices.Clone(args)})
}

func newServer(s *Server) (_ *Server, err error) {
	if s.bin, err = Bin(); err != nil {
		return nil, err
	}
	if s.dir, err = os.MkdirTemp("", "semel-redis-"); err != nil {
		return nil, err
	}
	if err := s.Start(); err != nil {
		return nil, errors.Join(err, os.RemoveAll(s.dir))
	}
	return s, nil
}

// Start starts the server, after Kill or Stop, and returns when it answers and
// has read its data. The port stays the same.
func (s *Server) Start() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.proc != nil {
		return errors.New("redistest: the server runs already")
	}
	first := s.port == 0
	return until(func() (err error) {
		if first { // another may have taken the port meanwhile
			if s.port, err = freePort(); err != nil {
				return err
			}
			if s.tls {
				if s.tlsPort, err = freePort(); err != nil {
					return err
				}
			}
		}
		return s.start()
	})
}

func (s *Server) start() error {
	log, err := os.OpenFile(filepath.Join(s.dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }() // the server has its own
	args := append([]string{"--bind", "127.0.0.1", "--port", strconv.Itoa(s.port), "--dir", s.dir, "--save", "", "--databases", "1000"}, s.args...)
	if s.file != "" {
		args = []string{s.file, "--bind", "127.0.0.1", "--port", strconv.Itoa(s.port), "--sentinel"}
	}
	if s.tls {
		args = append(args, "--tls-port", strconv.Itoa(s.tlsPort))
	}
	p, err := run(s.bin, args, s.env, s.dir, log)
	if err != nil {
		return err
	}
	err = until(func() error {
		if p.over() {
			return nil
		}
		return ping(s.Addr(), p.cmd.Process.Pid)
	})
	if err == nil && p.over() {
		err = fmt.Errorf("redistest: the server ended: %s", s.lastLog())
	}
	if err != nil {
		p.end(syscall.SIGKILL)
		return err
	}
	s.proc = p
	return nil
}

// ping is nil if the server that is process pid answers, and has read its data.
func ping(addr string, pid int) error {
	conn, err := (&net.Dialer{Timeout: ready}).DialContext(context.Background(), "tcp", addr)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	if err := errors.Join(conn.SetDeadline(time.Now().Add(ready)), write(conn, "PING\r\nINFO server\r\n")); err != nil {
		return err
	}
	lines := bufio.NewScanner(conn)
	if !lines.Scan() || !strings.HasPrefix(lines.Text(), "+PONG") {
		return errors.Join(fmt.Errorf("redistest: PING is answered by %q", lines.Text()), lines.Err())
	}
	for lines.Scan() {
		if is, ok := strings.CutPrefix(lines.Text(), "process_id:"); ok {
			if is != strconv.Itoa(pid) {
				return fmt.Errorf("redistest: process %s answers for %d", is, pid)
			}
			return nil
		}
	}
	return errors.Join(errors.New("redistest: INFO tells no process"), lines.Err())
}

func write(conn net.Conn, text string) error {
	_, err := conn.Write([]byte(text))
	return err
}

// Addr is the server's address on the loopback interface.
func (s *Server) Addr() string { return "127.0.0.1:" + strconv.Itoa(s.port) }

// Port is the server's port on the loopback interface.
func (s *Server) Port() int { return s.port }

// TLSAddr is where a server of [StartTLS] speaks TLS.
func (s *Server) TLSAddr() string { return "127.0.0.1:" + strconv.Itoa(s.tlsPort) }

// URL is where the server answers.
func (s *Server) URL() string { return "redis://" + s.Addr() }

// Kill crashes the server (SIGKILL), and returns when it is gone.
func (s *Server) Kill() { s.end(syscall.SIGKILL) }

// Stop ends the server in order.
func (s *Server) Stop() { s.end(syscall.SIGTERM) }

// Freeze stops the server's process where it is (SIGSTOP), and Thaw lets it
// go on.
func (s *Server) Freeze() { s.signal(syscall.SIGSTOP) }

// Thaw is the end of Freeze.
func (s *Server) Thaw() { s.signal(syscall.SIGCONT) }

func (s *Server) signal(what syscall.Signal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.proc != nil {
		_ = s.proc.cmd.Process.Signal(what) // it may have ended
	}
}

func (s *Server) end(how syscall.Signal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.proc != nil {
		s.proc.end(how)
		s.proc = nil
	}
}

// Remove ends the server and deletes its data.
func (s *Server) Remove() error {
	s.end(syscall.SIGKILL)
	return until(func() error { return os.RemoveAll(s.dir) }) // a child that saved the data may have written until now
}

func (s *Server) lastLog() string {
	b, err := os.ReadFile(filepath.Join(s.dir, "log"))
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(b)), "\n")
	return strings.Join(lines[max(0, len(lines)-5):], "\n")
}
