package pgtest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
)

// ErrNotInstalled says that there are no server binaries on this machine.
var ErrNotInstalled = errors.New("pgtest: no PostgreSQL server found in /usr/lib/postgresql/*/bin, /usr/local/pgsql/bin or PATH; install postgresql, or set SEMEL_TEST_POSTGRES_BIN or SEMEL_TEST_POSTGRES_URL")

// ready is how long a server may take to be made, to start, or to end.
const ready = 3 * time.Minute

// Durable are the settings of a server that keeps what it has confirmed. Fast
// are those of one that is never killed.
var (
	Durable = []string{"fsync=on", "synchronous_commit=on"}
	Fast    = []string{"fsync=off", "synchronous_commit=off", "full_page_writes=off"}
)

// Server is a private server. Safe for concurrent use. Make it with [New].
type Server struct {
	bin, dir string
	port     int
	settings []string

	mu   sync.Mutex
	proc *process // nil: not running
}

// process is a run of the server.
type process struct {
	cmd   *exec.Cmd
	ended chan struct{}
}

// Bin is the directory of the server's binaries: that of
// SEMEL_TEST_POSTGRES_BIN, where they must be, or of the newest server of the
// machine, or ErrNotInstalled.
func Bin() (string, error) {
	if dir := os.Getenv("SEMEL_TEST_POSTGRES_BIN"); dir != "" {
		if !executable(dir, "postgres") || !executable(dir, "initdb") {
			return "", fmt.Errorf("pgtest: SEMEL_TEST_POSTGRES_BIN is %q, where postgres and initdb are not both to be found", dir)
		}
		return filepath.Abs(dir)
	}
	dirs, _ := filepath.Glob("/usr/lib/postgresql/*/bin") // fails for a bad pattern only
	version := func(dir string) int {
		n, _ := strconv.Atoi(filepath.Base(filepath.Dir(dir)))
		return n
	}
	slices.SortFunc(dirs, func(a, b string) int { return version(b) - version(a) })
	dirs = append(dirs, "/usr/local/pgsql/bin")
	for _, name := range []string{"postgres", "initdb"} {
		if path, err := exec.LookPath(name); err == nil {
			if path, err = filepath.EvalSymlinks(path); err == nil {
				dirs = append(dirs, filepath.Dir(path))
			}
		}
	}
	for _, dir := range dirs {
		if executable(dir, "postgres") && executable(dir, "initdb") {
			return dir, nil
		}
	}
	return "", ErrNotInstalled
}

func executable(dir, name string) bool {
	info, err := os.Stat(filepath.Join(dir, name))
	return err == nil && info.Mode()&0o111 != 0
}

// New makes a server with settings such as "fsync=off", and starts it. Remove
// it in the end.
func New(settings ...string) (*Server, error) {
	bin, err := Bin()
	if err != nil {
		return nil, err
	}
	s := &Server{bin: bin, settings: settings}
	if s.dir, err = os.MkdirTemp("", "semel-pg-"); err != nil {
		return nil, err
	}
	if err := s.create(); err != nil {
		return nil, errors.Join(err, os.RemoveAll(s.dir))
	}
	if err := s.Start(); err != nil {
		return nil, errors.Join(err, os.RemoveAll(s.dir))
	}
	return s, nil
}

func (s *Server) data() string { return filepath.Join(s.dir, "data") }

func (s *Server) create() error {
	attr, err := ownerAttr(s.dir)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), ready)
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(s.bin, "initdb"), "-D", s.data(), "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "-N")
	cmd.SysProcAttr, cmd.Dir = attr, s.dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("pgtest: initdb: %w\n%s", err, out)
	}
	return nil
}

// Start starts the server, after Kill or Stop, and returns when it answers.
// The port stays the same.
func (s *Server) Start() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.proc != nil {
		return errors.New("pgtest: the server runs already")
	}
	var err error
	first := s.port == 0
	for deadline := time.Now().Add(ready); time.Now().Before(deadline); {
		if first { // another may have taken the port meanwhile
			if s.port, err = freePort(); err != nil {
				return err
			}
		}
		if err = s.start(); err == nil {
			return nil
		}
		// The old server's processes may still be ending, or the port be taken.
		pause(20 * time.Millisecond)
	}
	return err
}

func (s *Server) start() error {
	attr, err := ownerAttr(s.dir)
	if err != nil {
		return err
	}
	log, err := os.OpenFile(filepath.Join(s.dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }() // the server has its own
	args := []string{"-D", s.data(), "-p", strconv.Itoa(s.port)}
	for _, set := range append([]string{"listen_addresses=127.0.0.1", "unix_socket_directories=", "max_connections=300"}, s.settings...) {
		args = append(args, "-c", set)
	}
	p, err := run(filepath.Join(s.bin, "postgres"), args, s.dir, attr, log)
	if err != nil {
		return err
	}
	if err := s.answers(p); err != nil {
		p.end(syscall.SIGKILL)
		return err
	}
	s.proc = p
	return nil
}

// run starts a program, which ends with this process at the latest.
func run(path string, args []string, dir string, attr *syscall.SysProcAttr, log *os.File) (*process, error) {
	p := &process{cmd: exec.CommandContext(context.Background(), path, args...), ended: make(chan struct{})}
	p.cmd.SysProcAttr, p.cmd.Dir = attr, dir
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
		return nil, fmt.Errorf("pgtest: %w", err)
	}
	return p, nil
}

// answers waits until the server takes connections.
func (s *Server) answers(p *process) error {
	own, err := filepath.Abs(s.data())
	if err != nil {
		return err
	}
	for deadline := time.Now().Add(ready); time.Now().Before(deadline); pause(5 * time.Millisecond) {
		select {
		case <-p.ended:
			return fmt.Errorf("pgtest: the server ended: %s", s.lastLog())
		default:
		}
		var dir string
		if dir, err = ping(s.URL()); err == nil && dir == own {
			return nil
		}
	}
	return fmt.Errorf("pgtest: the server does not answer: %w", err)
}

// ping asks who answers for the directory of its data.
func ping(url string) (dir string, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return "", err
	}
	err = conn.QueryRow(ctx, "SHOW data_directory").Scan(&dir)
	return dir, errors.Join(err, conn.Close(ctx))
}

// URL is where the server answers.
func (s *Server) URL() string {
	return fmt.Sprintf("postgres://postgres@127.0.0.1:%d/postgres?sslmode=disable", s.port)
}

// DataDir is the directory of the data.
func (s *Server) DataDir() string { return s.data() }

// Port is the server's port on the loopback interface.
func (s *Server) Port() int { return s.port }

// Kill crashes the server (SIGKILL), and returns when its main process is
// gone; its others follow by themselves.
func (s *Server) Kill() { s.end(syscall.SIGKILL) }

// Stop ends the server in order, and closes its connections.
func (s *Server) Stop() { s.end(syscall.SIGINT) }

func (s *Server) end(how syscall.Signal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.proc != nil {
		s.proc.end(how)
		s.proc = nil
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

// Remove ends the server and deletes its data.
func (s *Server) Remove() error {
	s.end(syscall.SIGQUIT)
	var err error
	for deadline := time.Now().Add(ready); time.Now().Before(deadline); pause(10 * time.Millisecond) {
		if err = os.RemoveAll(s.dir); err == nil {
			return nil // its last processes may have written until now
		}
	}
	return err
}

func (s *Server) lastLog() string {
	b, err := os.ReadFile(filepath.Join(s.dir, "log"))
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(b)), "\n")
	return strings.Join(lines[max(0, len(lines)-5):], "\n")
}

// freePort is one that nobody listens on, below those that the system hands out
// by itself (32768 and up on Linux): while a server is down, nobody else is
// given its port.
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

// pause is between two looks at a server that starts or ends.
func pause(d time.Duration) { <-time.After(d) }
