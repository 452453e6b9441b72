package redistest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/semel-go/semel/internal/proctest"
)

// ErrNotInstalled says that there is no server program on this machine.
var ErrNotInstalled = errors.New("redistest: no redis-server or valkey-server in PATH; install redis-server, or set SEMEL_TEST_REDIS_BIN or SEMEL_TEST_REDIS_URL")

// limit is how long a server may take to start, or to end.
const limit = 3 * time.Minute

// Durable are the settings of a server that keeps all writes that it has
// confirmed. Fast are the settings of a server that no test kills.
var (
	Durable = []string{"--appendonly", "yes", "--appendfsync", "always"}
	Fast    = []string{"--appendonly", "no"}
)

// Bin is the server's program: SEMEL_TEST_REDIS_BIN, or redis-server or
// valkey-server of PATH. Without any of them, Bin returns [ErrNotInstalled].
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

// Server is a private server. Safe for concurrent use. Make it with [New].
type Server struct {
	bin     string
	port    int
	tlsPort int
	tls     bool // it speaks TLS, too
	args    []string
	env     []string // in addition to the environment of this process
	config  string   // the file of a Sentinel's settings; "" for a server
	proc    proctest.Server
}

// New makes a server with arguments such as "--appendonly", "yes", and starts
// it. The caller removes it.
func New(args ...string) (*Server, error) {
	return newServer(&Server{args: slices.Clone(args)})
}

func newServer(s *Server) (*Server, error) {
	var err error
	if s.bin, err = Bin(); err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "semel-redis-")
	if err != nil {
		return nil, err
	}
	s.proc = proctest.Server{Name: "redistest", Dir: dir, Limit: limit, Command: s.command, Ready: func(p *proctest.Process) error {
		return ping(s.Addr(), p.Pid())
	}}
	if err := s.Start(); err != nil {
		return nil, errors.Join(err, s.Remove())
	}
	return s, nil
}

// Start starts the server after Kill or Stop, on the same port, and returns
// when it answers and has read its data.
func (s *Server) Start() error { return s.proc.Start() }

func (s *Server) command(first bool) (_ *exec.Cmd, err error) {
	if first {
		// The nodes of a cluster connect to each other 10000 ports above.
		if s.port, err = proctest.FreePort(10000); err != nil {
			return nil, err
		}
		if s.tlsPort, err = proctest.FreePort(10000); err != nil {
			return nil, err
		}
	}
	args := []string{"--bind", "127.0.0.1", "--port", strconv.Itoa(s.port)}
	if s.config != "" {
		args = append(append([]string{s.config}, args...), "--sentinel")
	} else {
		args = append(append(args, "--dir", s.proc.Dir, "--save", "", "--databases", "1000"), s.args...)
	}
	if s.tls {
		args = append(args, "--tls-port", strconv.Itoa(s.tlsPort))
	}
	cmd := exec.Command(s.bin, args...) //nolint:noctx // it runs until it is ended
	cmd.Dir, cmd.Env = s.proc.Dir, append(os.Environ(), s.env...)
	return cmd, nil
}

// ping is nil if the server that is process pid answers, and has read its data.
func ping(addr string, pid int) error {
	conn, err := (&net.Dialer{Timeout: limit}).DialContext(context.Background(), "tcp", addr)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	_, err = conn.Write([]byte("PING\r\nINFO server\r\n"))
	if err := errors.Join(err, conn.SetDeadline(time.Now().Add(limit))); err != nil {
		return err
	}
	lines := bufio.NewScanner(conn)
	if !lines.Scan() || !strings.HasPrefix(lines.Text(), "+PONG") {
		return errors.Join(fmt.Errorf("redistest: PING is answered by %q", lines.Text()), lines.Err())
	}
	for lines.Scan() {
		if id, ok := strings.CutPrefix(lines.Text(), "process_id:"); ok {
			if id != strconv.Itoa(pid) {
				return fmt.Errorf("redistest: process %s answers on the port of process %d", id, pid)
			}
			return nil
		}
	}
	return errors.Join(errors.New("redistest: INFO has no process_id"), lines.Err())
}

// Addr is the server's address on the loopback interface.
func (s *Server) Addr() string { return "127.0.0.1:" + strconv.Itoa(s.port) }

// Port is the server's port on the loopback interface.
func (s *Server) Port() int { return s.port }

// TLSAddr is the address where a server of [StartTLS] speaks TLS.
func (s *Server) TLSAddr() string { return "127.0.0.1:" + strconv.Itoa(s.tlsPort) }

// URL is the address of the server for redisstore.Open.
func (s *Server) URL() string { return "redis://" + s.Addr() }

// Kill crashes the server (SIGKILL), and returns when it has ended.
func (s *Server) Kill() { s.proc.End(syscall.SIGKILL) }

// Stop shuts the server down.
func (s *Server) Stop() { s.proc.End(syscall.SIGTERM) }

// Freeze suspends the server's process (SIGSTOP). [Server.Thaw] resumes it.
func (s *Server) Freeze() { s.proc.Signal(signalFreeze) }

// Thaw resumes the server's process after Freeze.
func (s *Server) Thaw() { s.proc.Signal(signalThaw) }

// Remove ends the server and deletes its data.
func (s *Server) Remove() error { return s.proc.Remove(syscall.SIGKILL) }

// until calls f again and again until it returns nil, for as long as a server
// may take to start.
func until(f func() error) error { return proctest.Until(limit, 5*time.Millisecond, f) }
