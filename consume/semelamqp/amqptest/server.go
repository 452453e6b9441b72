package amqptest

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// ErrNotInstalled says that there is no RabbitMQ server on this machine.
var ErrNotInstalled = errors.New("amqptest: no RabbitMQ found in /usr/lib/rabbitmq/lib, or no epmd or erl in PATH; install rabbitmq-server")

// ready is how long a node may take to start, or to end.
const ready = 4 * time.Minute

// Server is a private node. Safe for concurrent use. Make it with [New].
type Server struct {
	script, dir, token string
	port, dist, names  int // of AMQP, of the node to its like, of epmd
	eval               int // of Eval

	mu   sync.Mutex
	epmd *process // nil: not running
	proc *process // nil: not running
}

// Script is the program that starts a node, or ErrNotInstalled.
func Script() (string, error) {
	found, _ := filepath.Glob("/usr/lib/rabbitmq/lib/rabbitmq_server-*/sbin/rabbitmq-server") // fails for a bad pattern only
	_, noEpmd := exec.LookPath("epmd")
	_, noErl := exec.LookPath("erl")
	if len(found) == 0 || noEpmd != nil || noErl != nil {
		return "", ErrNotInstalled
	}
	return found[len(found)-1], nil
}

// New makes a node and starts it. Remove it in the end.
func New() (*Server, error) {
	script, err := Script()
	if err != nil {
		return nil, err
	}
	s := &Server{script: script, token: rand.Text()}
	for _, port := range []*int{&s.port, &s.dist, &s.names, &s.eval} {
		if *port, err = freePort(); err != nil {
			return nil, err
		}
	}
	if s.dir, err = os.MkdirTemp("", "semel-amqp-"); err != nil {
		return nil, err
	}
	if err := errors.Join(s.configure(), s.Start()); err != nil {
		return nil, errors.Join(err, s.Remove())
	}
	return s, nil
}

func (s *Server) configure() error {
	var errs []error
	for name, text := range map[string]string{
		"enabled_plugins": "[].\n",
		".erlang.cookie":  s.token,
		"rabbitmq.conf":   fmt.Sprintf("listeners.tcp.default = 127.0.0.1:%d\ndisk_free_limit.absolute = 50MB\n", s.port),
		"eval.erl":        fmt.Sprintf(evalServer, s.token, s.eval),
	} {
		errs = append(errs, os.WriteFile(filepath.Join(s.dir, name), []byte(text), 0o400))
	}
	return errors.Join(errs...)
}

// env is the environment of a node: all that it writes is in its directory,
// and all that it listens on is of the loopback interface.
func (s *Server) env() []string {
	in := func(name string) string { return filepath.Join(s.dir, name) }
	args := fmt.Sprintf(`-noinput -start_epmd false -kernel inet_dist_use_interface {127,0,0,1} +S 2:2 +sbwt none -eval file:eval("%s")`, in("eval.erl"))
	return []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + s.dir, "LANG=C.UTF-8",
		fmt.Sprintf("RABBITMQ_NODENAME=n%d@localhost", s.port), fmt.Sprintf("RABBITMQ_DIST_PORT=%d", s.dist),
		"RABBITMQ_MNESIA_BASE=" + in("mnesia"), "RABBITMQ_LOG_BASE=" + in("log"), "RABBITMQ_LOGS=" + in("rabbit.log"),
		"RABBITMQ_ENABLED_PLUGINS_FILE=" + in("enabled_plugins"), "RABBITMQ_CONF_ENV_FILE=/dev/null", "RABBITMQ_CONFIG_FILE=" + in("rabbitmq"),
		"RABBITMQ_PID_FILE=" + in("pid"), "RABBITMQ_ALLOW_INPUT=1", // the script becomes the node, and is killed with it
		fmt.Sprintf("ERL_EPMD_PORT=%d", s.names), "ERL_EPMD_ADDRESS=127.0.0.1",
		"RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS=" + args,
	}
}

// Start starts the node, after Kill or Stop, and returns when it answers. The
// port stays the same.
func (s *Server) Start() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.proc != nil {
		return errors.New("amqptest: the node runs already")
	}
	log, err := os.OpenFile(filepath.Join(s.dir, "out.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }() // the node has its own
	for deadline := time.Now().Add(ready); time.Now().Before(deadline); pause(100 * time.Millisecond) {
		if s.epmd == nil || !s.epmd.alive() {
			path, err := exec.LookPath("epmd")
			if err != nil {
				return ErrNotInstalled
			}
			if s.epmd, err = run(path, []string{"-port", fmt.Sprint(s.names), "-address", "127.0.0.1"}, nil, s.dir, log); err != nil {
				return err
			}
		}
		p, e := run(s.script, nil, s.env(), s.dir, log)
		if e != nil {
			return e
		}
		if err = s.answers(p, deadline); err == nil {
			s.proc = p
			return nil
		}
		p.end(syscall.SIGKILL) // the name of a killed node may still be known, or a port be taken
	}
	return err
}

// answers waits until the node takes connections.
func (s *Server) answers(p *process, deadline time.Time) error {
	var err error
	for ; time.Now().Before(deadline); pause(20 * time.Millisecond) {
		if !p.alive() {
			return fmt.Errorf("amqptest: the node ended: %s", s.lastLog())
		}
		var conn *amqp.Connection
		if conn, err = amqp.Dial(s.URL()); err != nil {
			continue
		}
		if _, err = s.Eval("ok"); err == nil {
			return conn.Close()
		}
		_ = conn.Close() // it is tried again
	}
	return fmt.Errorf("amqptest: the node does not answer: %w", err)
}

// URL is where the node answers, with its one user.
func (s *Server) URL() string { return fmt.Sprintf("amqp://guest:guest@127.0.0.1:%d/", s.port) }

// Pid is the process of the node; zero: it does not run.
func (s *Server) Pid() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.proc == nil {
		return 0
	}
	return s.proc.cmd.Process.Pid
}

// Kill crashes the node (SIGKILL), and returns when its process is gone.
//
// A quorum queue that was declared less than a second before may have no
// leader after the restart (RabbitMQ 3.10.8): wait 2 s after a declaration.
func (s *Server) Kill() { s.end(syscall.SIGKILL) }

// Stop ends the node in order.
func (s *Server) Stop() { s.end(syscall.SIGTERM) }

func (s *Server) end(how syscall.Signal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.proc != nil {
		s.proc.end(how)
		s.proc = nil
	}
}

// Remove ends the node and deletes its data.
func (s *Server) Remove() error {
	s.Kill()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.epmd != nil {
		s.epmd.end(syscall.SIGKILL)
		s.epmd = nil
	}
	var err error
	for deadline := time.Now().Add(ready); time.Now().Before(deadline); pause(10 * time.Millisecond) {
		if err = os.RemoveAll(s.dir); err == nil {
			return nil // processes of the node may have written until now
		}
	}
	return err
}

func (s *Server) lastLog() string {
	b, err := os.ReadFile(filepath.Join(s.dir, "out.log"))
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(b)), "\n")
	return strings.Join(lines[max(0, len(lines)-8):], "\n")
}
