package pulsartest

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/semel-go/semel/internal/proctest"
)

// ErrNotInstalled says that there is no broker on this machine.
var ErrNotInstalled = errors.New("pulsartest: no Apache Pulsar or no java; install java 17 and run scripts/pulsar/pulsar, or set SEMEL_TEST_PULSAR to the directory of Pulsar")

// limit is how long a server may take to start, or to end. On a busy machine the start takes
// minutes.
const limit = 10 * time.Minute

// Home is the directory of Pulsar. Without it, or without java, Home returns
// [ErrNotInstalled].
func Home() (string, error) {
	if _, err := exec.LookPath("java"); err != nil {
		return "", ErrNotInstalled
	}
	if home := os.Getenv("SEMEL_TEST_PULSAR"); home != "" {
		return home, nil
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", ErrNotInstalled
	}
	home := filepath.Join(cache, "semel", "pulsar-4.0.8")
	if _, err := os.Stat(home); err != nil {
		return "", ErrNotInstalled
	}
	return home, nil
}

// Proxied is the name of a listener that the broker advertises, and on whose port,
// [Server.ProxyPort], a test may listen: a client with this ListenerName reaches the
// broker through the test's proxy only.
const Proxied = "proxied"

// Server is a private broker. Safe for concurrent use. Make it with [New].
type Server struct {
	home                       string
	settings                   map[string]string // of the broker, beside those of every server
	binary, web, bookie, proxy int               // ports
	proc                       proctest.Server
}

// New starts a server without topics. The caller removes it.
func New() (*Server, error) { return newServer(nil) }

func newServer(settings map[string]string) (*Server, error) {
	home, err := Home()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "semel-pulsar-")
	if err != nil {
		return nil, err
	}
	s := &Server{home: home, settings: settings}
	s.proc = proctest.Server{Name: "pulsartest", Dir: dir, Limit: limit, Command: s.command, Ready: s.ready}
	if err := s.proc.Start(); err != nil {
		return nil, errors.Join(err, s.Remove())
	}
	return s, nil
}

func (s *Server) command(first bool) (*exec.Cmd, error) {
	if first {
		port, err := proctest.FreePort(1, 2, 3)
		if err != nil {
			return nil, err
		}
		s.binary, s.web, s.bookie, s.proxy = port, port+1, port+2, port+3
	}
	file := filepath.Join(s.proc.Dir, "standalone.conf")
	if err := s.configure(file); err != nil {
		return nil, err
	}
	//nolint:noctx // it runs until it is ended
	cmd := exec.Command(filepath.Join(s.home, "bin", "pulsar"), "standalone", "-nfw", "-nss", "-a", "127.0.0.1", "-c", file,
		"--bookkeeper-port", strconv.Itoa(s.bookie),
		"--metadata-dir", filepath.Join(s.proc.Dir, "metadata"), "--bookkeeper-dir", filepath.Join(s.proc.Dir, "bookkeeper"))
	cmd.Dir = s.proc.Dir
	cmd.Env = append(os.Environ(), "PULSAR_MEM=-Xms192m -Xmx512m -XX:MaxDirectMemorySize=384m", "PULSAR_GC=-XX:+UseSerialGC",
		"PULSAR_GC_LOG=-Xlog:disable", "PULSAR_LOG_DIR="+filepath.Join(s.proc.Dir, "logs"), "PULSAR_LOG_ROOT_LEVEL=warn", "PULSAR_LOG_LEVEL=warn",
		"PULSAR_EXTRA_OPTS=-XX:TieredStopAtLevel=1")
	return cmd, nil
}

// configure writes the broker's configuration: Pulsar's own for a single broker, with
// other ports, and without waiting for the disk, because no test cuts the power.
func (s *Server) configure(file string) error {
	text, err := os.ReadFile(filepath.Join(s.home, "conf", "standalone.conf"))
	if err != nil {
		return fmt.Errorf("pulsartest: %w", err)
	}
	settings := map[string]string{
		"bindAddress": "127.0.0.1", "brokerServicePort": strconv.Itoa(s.binary), "webServicePort": strconv.Itoa(s.web),
		"advertisedAddress":                     "",
		"advertisedListeners":                   fmt.Sprintf("direct:pulsar://127.0.0.1:%d,%s:pulsar://127.0.0.1:%d", s.binary, Proxied, s.proxy),
		"internalListenerName":                  "direct",
		"listeningInterface":                    "lo", // else the bookie listens on all interfaces
		"journalSyncData":                       "false",
		"activeConsumerFailoverDelayTimeMillis": "100",
	}
	maps.Copy(settings, s.settings)
	for name, value := range settings {
		line := regexp.MustCompile(`(?m)^` + name + `=.*$`)
		if !line.Match(text) {
			text = append(text, "\n"+name+"=\n"...)
		}
		text = line.ReplaceAllLiteral(text, []byte(name+"="+value))
	}
	return os.WriteFile(file, text, 0o600)
}

// ready is nil if the broker can store and deliver a message.
func (s *Server) ready(*proctest.Process) error {
	reply, err := (&http.Client{Timeout: limit}).Get(s.Admin() + "/brokers/health") //nolint:noctx // the client has a timeout
	if err != nil {
		return err
	}
	_ = reply.Body.Close()
	if reply.StatusCode != http.StatusOK {
		return fmt.Errorf("pulsartest: the health of the broker is answered by %s", reply.Status)
	}
	return nil
}

// URL is where clients connect.
func (s *Server) URL() string { return "pulsar://127.0.0.1:" + strconv.Itoa(s.binary) }

// Admin is the address of the admin API, of version 2.
func (s *Server) Admin() string { return fmt.Sprintf("http://127.0.0.1:%d/admin/v2", s.web) }

// ProxyPort is the port of the listener [Proxied].
func (s *Server) ProxyPort() int { return s.proxy }

// Start starts the server again.
func (s *Server) Start() error { return s.proc.Start() }

// Kill ends the server as kill -9 does. Its topics survive.
func (s *Server) Kill() { s.proc.End(syscall.SIGKILL) }

// Remove ends the server and deletes its data.
func (s *Server) Remove() error { return s.proc.Remove(syscall.SIGKILL) }

// Request makes a request of the admin API, such as PUT "/persistent/public/default/x",
// and returns the body of the answer, which must be a success.
func (s *Server) Request(method, path, body string) (string, error) {
	r, err := http.NewRequest(method, s.Admin()+path, strings.NewReader(body)) //nolint:noctx // the client has a timeout
	if err != nil {
		return "", err
	}
	r.Header.Set("Content-Type", "application/json")
	reply, err := (&http.Client{Timeout: limit}).Do(r)
	if err != nil {
		return "", err
	}
	defer func() { _ = reply.Body.Close() }()
	answer, err := io.ReadAll(reply.Body)
	if err != nil {
		return "", err
	}
	if reply.StatusCode/100 != 2 {
		return "", fmt.Errorf("pulsartest: %s %s is answered by %s: %s", method, path, reply.Status, answer)
	}
	return string(answer), nil
}
