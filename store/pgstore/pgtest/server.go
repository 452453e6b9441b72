package pgtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/semel-go/semel/internal/proctest"
)

// ErrNotInstalled says that there are no server binaries on this machine.
var ErrNotInstalled = errors.New("pgtest: no PostgreSQL server found in /usr/lib/postgresql/*/bin, /usr/local/pgsql/bin or PATH; install postgresql, or set SEMEL_TEST_POSTGRES_BIN or SEMEL_TEST_POSTGRES_URL")

// limit is how long a server may take to be made, to start, or to end.
const limit = 3 * time.Minute

// Durable are the settings of a server that keeps all commits that it has
// confirmed. Fast are the settings of a server that no test kills.
var (
	Durable = []string{"fsync=on", "synchronous_commit=on"}
	Fast    = []string{"fsync=off", "synchronous_commit=off", "full_page_writes=off"}
)

// Server is a private server. Safe for concurrent use. Make it with [New].
type Server struct {
	bin      string
	port     int
	settings []string
	proc     proctest.Server
}

// Bin is the directory of the server's binaries. If SEMEL_TEST_POSTGRES_BIN is
// set, it is that directory, and the binaries must be there. If not, Bin finds
// the newest server of this machine, or returns [ErrNotInstalled].
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

// New makes a server with settings such as "fsync=off", and starts it. The
// caller removes it.
func New(settings ...string) (*Server, error) {
	bin, err := Bin()
	if err != nil {
		return nil, err
	}
	return start(bin, settings, (*Server).createData)
}

// start makes a server, whose data create writes, and starts it.
func start(bin string, settings []string, create func(*Server) error) (*Server, error) {
	dir, err := os.MkdirTemp(dataRoot(settings), "semel-pg-")
	if err != nil {
		return nil, err
	}
	s := &Server{bin: bin, settings: settings, proc: proctest.Server{Name: "pgtest", Dir: dir, Limit: limit}}
	s.proc.Command, s.proc.Ready = s.command, s.answers
	if err = create(s); err == nil {
		err = s.Start()
	}
	if err != nil {
		return nil, errors.Join(err, s.Remove())
	}
	return s, nil
}

// tool runs one of PostgreSQL's programs to its end.
func (s *Server) tool(name string, args ...string) error {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(s.bin, name), args...)
	if err := ownData(cmd, s.proc.Dir); err != nil {
		return err
	}
	return finish(cmd)
}

// finish runs a program to its end. An error has the program's output.
func finish(cmd *exec.Cmd) error {
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("pgtest: %s: %w\n%s", filepath.Base(cmd.Path), err, out)
	}
	return nil
}

// Start starts the server after Kill or Stop, on the same port, and returns
// when it answers.
func (s *Server) Start() error { return s.proc.Start() }

// command is the server's own, with the owner of its data.
func (s *Server) command(first bool) (*exec.Cmd, error) {
	if first {
		var err error
		if s.port, err = proctest.FreePort(); err != nil {
			return nil, err
		}
	}
	args := []string{"-D", s.DataDir(), "-p", strconv.Itoa(s.port)}
	// Shared memory in files of the data directory is deleted with it, also after a kill.
	for _, set := range append([]string{"listen_addresses=127.0.0.1", "unix_socket_directories=", "max_connections=300", "dynamic_shared_memory_type=mmap"}, s.settings...) {
		args = append(args, "-c", set)
	}
	cmd := exec.Command(filepath.Join(s.bin, "postgres"), args...) //nolint:noctx // it runs until it is ended
	return cmd, ownData(cmd, s.proc.Dir)
}

// answers is nil if this server, and no other one, takes connections.
func (s *Server) answers(*proctest.Process) error {
	dir, err := ping(s.URL())
	if err == nil && dir != s.DataDir() {
		err = fmt.Errorf("pgtest: the server of %s answers on port %d", dir, s.port)
	}
	return err
}

// ping connects to a server, and returns the directory of its data.
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

// URL is the address of the server.
func (s *Server) URL() string {
	return fmt.Sprintf("postgres://postgres@127.0.0.1:%d/postgres?sslmode=disable", s.port)
}

// DataDir is the directory of the data.
func (s *Server) DataDir() string { return filepath.Join(s.proc.Dir, "data") }

// Port is the server's port on the loopback interface.
func (s *Server) Port() int { return s.port }

// Kill crashes the server (SIGKILL), and returns when its main process has
// ended. The server's other processes end soon after.
func (s *Server) Kill() { s.proc.End(syscall.SIGKILL) }

// Stop shuts the server down, and closes its connections.
func (s *Server) Stop() { s.proc.End(syscall.SIGINT) }

// Remove ends the server and deletes its data.
func (s *Server) Remove() error { return s.proc.Remove(syscall.SIGQUIT) }
