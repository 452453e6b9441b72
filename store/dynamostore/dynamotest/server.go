package dynamotest

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/semel-go/semel/internal/proctest"
)

// ErrNotInstalled says that there is no emulator on this machine.
var ErrNotInstalled = errors.New("dynamotest: no ministack; run scripts/ministack, or set SEMEL_TEST_MINISTACK_BIN or SEMEL_TEST_DYNAMODB_URL")

// limit is how long a server may take to start, or to end.
const limit = 3 * time.Minute

// Bin is the emulator's program: SEMEL_TEST_MINISTACK_BIN, or ministack of PATH or
// of the folder where scripts/ministack installs it. Without any of them, Bin
// returns [ErrNotInstalled].
func Bin() (string, error) {
	if bin := os.Getenv("SEMEL_TEST_MINISTACK_BIN"); bin != "" {
		return bin, nil
	}
	if path, err := exec.LookPath("ministack"); err == nil {
		return path, nil
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", ErrNotInstalled
	}
	path := filepath.Join(cache, "semel", "ministack", "bin", "ministack")
	if _, err := os.Stat(path); err != nil {
		return "", ErrNotInstalled
	}
	return path, nil
}

// Server is a private emulator. Safe for concurrent use. Make it with [New].
type Server struct {
	bin  string
	port int
	proc proctest.Server
}

// New starts a server without tables. The caller removes it.
func New() (*Server, error) {
	bin, err := Bin()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "semel-dynamo-")
	if err != nil {
		return nil, err
	}
	s := &Server{bin: bin}
	s.proc = proctest.Server{Name: "dynamotest", Dir: dir, Limit: limit, Command: s.command, Ready: s.ready}
	if err := s.proc.Start(); err != nil {
		return nil, errors.Join(err, s.Remove())
	}
	return s, nil
}

func (s *Server) command(first bool) (_ *exec.Cmd, err error) {
	if first {
		if s.port, err = proctest.FreePort(); err != nil {
			return nil, err
		}
	}
	cmd := exec.Command(s.bin) //nolint:noctx // it runs until it is ended
	cmd.Dir = s.proc.Dir
	cmd.Env = append(os.Environ(), "BIND_HOST=127.0.0.1", "GATEWAY_PORT="+strconv.Itoa(s.port), "SERVICES=dynamodb,s3", "LOG_LEVEL=WARNING",
		"TMPDIR="+s.proc.Dir, "HOME="+s.proc.Dir)
	return cmd, nil
}

// ready is nil if the emulator answers. The emulator does not tell its process
// number; another emulator on its port would make its start fail.
func (s *Server) ready(*proctest.Process) error {
	req, err := http.NewRequest(http.MethodPost, s.URL(), strings.NewReader("{}")) //nolint:noctx // the client has a timeout
	if err != nil {
		return err
	}
	req.Header.Set("X-Amz-Target", "DynamoDB_20120810.ListTables")
	req.Header.Set("Content-Type", "application/x-amz-json-1.0")
	reply, err := (&http.Client{Timeout: limit}).Do(req)
	if err != nil {
		return err
	}
	_ = reply.Body.Close()
	if reply.StatusCode != http.StatusOK {
		return fmt.Errorf("dynamotest: ListTables is answered by %s", reply.Status)
	}
	return nil
}

// URL is the server's endpoint.
func (s *Server) URL() string { return "http://127.0.0.1:" + strconv.Itoa(s.port) }

// Remove ends the server and deletes its data.
func (s *Server) Remove() error { return s.proc.Remove(syscall.SIGKILL) }
