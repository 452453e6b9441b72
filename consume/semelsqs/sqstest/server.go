package sqstest

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/semel-go/semel/internal/proctest"
)

// ErrNotInstalled says that there is no emulator on this machine.
var ErrNotInstalled = errors.New("sqstest: no ElasticMQ or no java; install java and run scripts/elasticmq/elasticmq, or set SEMEL_TEST_ELASTICMQ_JARS or SEMEL_TEST_SQS_URL")

// limit is how long a server may take to start, or to end.
const limit = 3 * time.Minute

// Jars is the directory of the emulator's jars. Without it, or without java, Jars
// returns [ErrNotInstalled].
func Jars() (string, error) {
	if _, err := exec.LookPath("java"); err != nil {
		return "", ErrNotInstalled
	}
	if jars := os.Getenv("SEMEL_TEST_ELASTICMQ_JARS"); jars != "" {
		return jars, nil
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", ErrNotInstalled
	}
	jars := filepath.Join(cache, "semel", "elasticmq-1.6.14")
	if _, err := os.Stat(jars); err != nil {
		return "", ErrNotInstalled
	}
	return jars, nil
}

// Server is a private emulator. Safe for concurrent use. Make it with [New].
type Server struct {
	jars string
	port int
	proc proctest.Server
}

// New starts a server without queues. The caller removes it.
func New() (*Server, error) {
	jars, err := Jars()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "semel-sqs-")
	if err != nil {
		return nil, err
	}
	s := &Server{jars: jars}
	s.proc = proctest.Server{Name: "sqstest", Dir: dir, Limit: limit, Command: s.command, Ready: s.ready}
	if err := s.proc.Start(); err != nil {
		return nil, errors.Join(err, s.Remove())
	}
	return s, nil
}

const config = `include classpath("application.conf")
node-address { protocol = http, host = "127.0.0.1", port = %[1]d, context-path = "" }
rest-sqs { enabled = true, bind-port = %[1]d, bind-hostname = "127.0.0.1", sqs-limits = relaxed }
rest-stats { enabled = false }
`

func (s *Server) command(first bool) (_ *exec.Cmd, err error) {
	if first {
		if s.port, err = proctest.FreePort(); err != nil {
			return nil, err
		}
	}
	file := filepath.Join(s.proc.Dir, "elasticmq.conf")
	if err := os.WriteFile(file, fmt.Appendf(nil, config, s.port), 0o600); err != nil {
		return nil, err
	}
	//nolint:noctx // it runs until it is ended
	cmd := exec.Command("java", "-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Dconfig.file="+file,
		"-cp", filepath.Join(s.jars, "*"), "org.elasticmq.server.Main")
	cmd.Dir = s.proc.Dir
	return cmd, nil
}

// ready is nil if the emulator answers.
func (s *Server) ready(*proctest.Process) error {
	reply, err := (&http.Client{Timeout: limit}).PostForm(s.URL(), url.Values{"Action": {"ListQueues"}}) //nolint:noctx // the client has a timeout
	if err != nil {
		return err
	}
	_ = reply.Body.Close()
	if reply.StatusCode != http.StatusOK {
		return fmt.Errorf("sqstest: ListQueues is answered by %s", reply.Status)
	}
	return nil
}

// URL is the server's endpoint.
func (s *Server) URL() string { return "http://127.0.0.1:" + strconv.Itoa(s.port) }

// Remove ends the server and deletes its data.
func (s *Server) Remove() error { return s.proc.Remove(syscall.SIGKILL) }
