package amqptest

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/semel-go/semel/internal/proctest"
)

// ErrNotInstalled says that there is no RabbitMQ server on this machine.
var ErrNotInstalled = errors.New("amqptest: no RabbitMQ found in /usr/lib/rabbitmq/lib, or no epmd or erl in PATH; install rabbitmq-server")

// limit is how long a node may take to start, or to end.
const limit = 4 * time.Minute

// Server is a private node. Safe for concurrent use. Make it with [New].
type Server struct {
	script, token string
	port          int // of AMQP
	distPort      int // of Erlang's connections between nodes
	epmdPort      int
	evalPort      int
	proc          proctest.Server
	epmd          *proctest.Process // Erlang's port mapper; nil: not running
}

// Script is the program that starts a node. If RabbitMQ is not installed, Script
// returns [ErrNotInstalled].
func Script() (string, error) {
	found, _ := filepath.Glob("/usr/lib/rabbitmq/lib/rabbitmq_server-*/sbin/rabbitmq-server") // fails for a bad pattern only
	_, noEpmd := exec.LookPath("epmd")
	_, noErl := exec.LookPath("erl")
	if len(found) == 0 || noEpmd != nil || noErl != nil {
		return "", ErrNotInstalled
	}
	return found[len(found)-1], nil
}

// New makes a node and starts it. The caller removes it.
func New() (*Server, error) {
	script, err := Script()
	if err != nil {
		return nil, err
	}
	s := &Server{script: script, token: rand.Text()}
	for _, port := range []*int{&s.port, &s.distPort, &s.epmdPort, &s.evalPort} {
		if *port, err = proctest.FreePort(); err != nil {
			return nil, err
		}
	}
	dir, err := os.MkdirTemp("", "semel-amqp-")
	if err != nil {
		return nil, err
	}
	s.proc = proctest.Server{Name: "amqptest", Dir: dir, Limit: limit, Command: s.command, Ready: s.answers}
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
		"eval.erl":        fmt.Sprintf(evalServer, s.token, s.evalPort),
	} {
		errs = append(errs, os.WriteFile(filepath.Join(s.proc.Dir, name), []byte(text), 0o400))
	}
	return errors.Join(errs...)
}

// env is the environment of a node. With it the node writes only in its
// directory, and listens only on the loopback interface.
func (s *Server) env() []string {
	in := func(name string) string { return filepath.Join(s.proc.Dir, name) }
	args := fmt.Sprintf(`-noinput -start_epmd false -kernel inet_dist_use_interface {127,0,0,1} +S 2:2 +sbwt none -eval file:eval("%s")`, in("eval.erl"))
	return []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + s.proc.Dir, "LANG=C.UTF-8",
		fmt.Sprintf("RABBITMQ_NODENAME=n%d@localhost", s.port), fmt.Sprintf("RABBITMQ_DIST_PORT=%d", s.distPort),
		"RABBITMQ_MNESIA_BASE=" + in("mnesia"), "RABBITMQ_LOG_BASE=" + in("log"), "RABBITMQ_LOGS=" + in("rabbit.log"),
		"RABBITMQ_ENABLED_PLUGINS_FILE=" + in("enabled_plugins"), "RABBITMQ_CONF_ENV_FILE=/dev/null", "RABBITMQ_CONFIG_FILE=" + in("rabbitmq"),
		"RABBITMQ_PID_FILE=" + in("pid"), "RABBITMQ_ALLOW_INPUT=1", // so that the script becomes the node, and a signal to it reaches the node
		fmt.Sprintf("ERL_EPMD_PORT=%d", s.epmdPort), "ERL_EPMD_ADDRESS=127.0.0.1",
		"RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS=" + args,
	}
}

// Start starts the node after Kill or Stop, on the same port, and returns when
// it answers.
func (s *Server) Start() error { return s.proc.Start() }

// command is the node's own. It starts the node's epmd first.
func (s *Server) command(bool) (*exec.Cmd, error) {
	if s.epmd == nil || !s.epmd.Alive() {
		path, err := exec.LookPath("epmd")
		if err != nil {
			return nil, ErrNotInstalled
		}
		epmd := exec.Command(path, "-port", fmt.Sprint(s.epmdPort), "-address", "127.0.0.1") //nolint:noctx // it runs until it is ended
		if s.epmd, err = proctest.Start(epmd); err != nil {
			return nil, err
		}
	}
	cmd := exec.Command(s.script) //nolint:noctx // it runs until it is ended
	cmd.Dir, cmd.Env = s.proc.Dir, s.env()
	return cmd, nil
}

// answers is nil if the node takes connections.
func (s *Server) answers(*proctest.Process) error {
	conn, err := amqp.Dial(s.URL())
	if err != nil {
		return err
	}
	_, err = s.Eval("ok")
	return errors.Join(err, conn.Close())
}

// URL is the address of the node, with the credentials of its only user.
func (s *Server) URL() string { return fmt.Sprintf("amqp://guest:guest@127.0.0.1:%d/", s.port) }

// Pid is the number of the node's process; 0 if it does not run.
func (s *Server) Pid() int { return s.proc.Pid() }

// Kill crashes the node (SIGKILL), and returns when its process has ended.
//
// A quorum queue that was declared less than a second before may have no
// leader after the restart (RabbitMQ 3.10.8): wait 2 s after a declaration.
func (s *Server) Kill() { s.proc.End(syscall.SIGKILL) }

// Stop shuts the node down.
func (s *Server) Stop() { s.proc.End(syscall.SIGTERM) }

// Remove ends the node and its epmd, and deletes the node's data.
func (s *Server) Remove() error {
	s.Kill()
	if s.epmd != nil {
		s.epmd.Kill()
	}
	return s.proc.Remove(syscall.SIGKILL)
}
