//go:build unix

package cli

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/semel-go/semel/internal/proctest"
)

// binary is the command, built once for all tests of this package.
var binary = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "semel-test-")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "semel")
	args := []string{"build", "-o", path}
	if raceEnabled {
		args = append(args, "-race")
	}
	out, err := exec.Command("go", append(args, "github.com/semel-go/semel/cmd/semel")...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("go build: %w\n%s", err, out)
	}
	return path, nil
})

func TestMain(m *testing.M) {
	if role := os.Getenv(roleVar); role != "" {
		os.Exit(play(role))
	}
	slog.SetDefault(slog.New(slog.DiscardHandler)) // a Guard of a test must not log into a command of another test
	proctest.PassSignals()
	code := m.Run()
	if built.Load() {
		path, _ := binary()
		_ = os.RemoveAll(filepath.Dir(path))
	}
	os.Exit(code)
}

// built is set once the binary is there.
var built atomic.Bool

// starts runs functions on one thread that lives as long as this process: a
// child that is to die with its parent dies with the parent's thread.
var starts = sync.OnceValue(func() chan<- func() {
	c := make(chan func())
	go func() {
		runtime.LockOSThread()
		for f := range c {
			f()
		}
	}()
	return c
})

// proc is a running semel.
type proc struct {
	t     testing.TB
	cmd   *exec.Cmd
	Addr  string // of the clients' listener
	Admin string // of the admin's; "" if there is none

	mu     sync.Mutex
	log    strings.Builder
	done   chan struct{}
	err    error
	killed bool
}

var (
	listening = regexp.MustCompile(`msg=listening addr=(\S+)`)
	adminAt   = regexp.MustCompile(`msg="admin listening" addr=(\S+)`)
)

// start starts semel proxy, and waits until it listens.
func start(t testing.TB, args ...string) *proc {
	t.Helper()
	p := spawn(t, append([]string{"proxy"}, args...)...)
	p.waitLog(listening)
	p.Addr = listening.FindStringSubmatch(p.Log())[1]
	if m := adminAt.FindStringSubmatch(p.Log()); m != nil {
		p.Admin = "http://" + m[1]
	}
	return p
}

// spawn starts semel.
func spawn(t testing.TB, args ...string) *proc {
	t.Helper()
	path, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	built.Store(true)
	return launch(t, exec.Command(path, args...))
}

// launch starts a process. It is killed when the test ends.
func launch(t testing.TB, cmd *exec.Cmd) *proc {
	t.Helper()
	p := &proc{t: t, cmd: cmd, done: make(chan struct{})}
	p.cmd.SysProcAttr = dieWithParent()
	stderr, err := p.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.cmd.Stdout = io.Discard
	started := make(chan error)
	starts() <- func() { started <- p.cmd.Start() }
	if err := <-started; err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(p.done)
		lines := bufio.NewReader(stderr)
		for {
			line, err := lines.ReadString('\n')
			p.mu.Lock()
			p.log.WriteString(line)
			p.mu.Unlock()
			if err != nil {
				break
			}
		}
		p.err = p.cmd.Wait()
	}()
	t.Cleanup(func() {
		mid := p.killed // its words are of no interest then
		p.kill()
		if t.Failed() && !mid {
			t.Logf("semel %s said:\n%s", strings.Join(cmd.Args[1:], " "), tail(p.Log(), 4000))
		}
		if log := p.Log(); strings.Contains(log, "DATA RACE") || strings.Contains(log, "panic:") {
			t.Errorf("semel %s said:\n%s", strings.Join(cmd.Args[1:], " "), tail(log, 10000))
		}
	})
	return p
}

func tail(s string, n int) string {
	if len(s) > n {
		return "…" + s[len(s)-n:]
	}
	return s
}

// Log is what it has written to standard error.
func (p *proc) Log() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.log.String()
}

func (p *proc) waitLog(re *regexp.Regexp) {
	p.t.Helper()
	eventually(p.t, 3*time.Minute, "log "+re.String(), func() bool {
		select {
		case <-p.done:
			if !re.MatchString(p.Log()) {
				p.t.Fatalf("semel ended: %v\n%s", p.err, p.Log())
			}
		default:
		}
		return re.MatchString(p.Log())
	})
}

func (p *proc) signal(s syscall.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.t.Fatalf("signal %v: %v", s, err)
	}
}

// kill ends it as a power failure would, and waits until it is gone.
func (p *proc) kill() {
	p.killed = true
	_ = p.cmd.Process.Kill() // it may be gone
	<-p.done
}

// exit waits for the end, and returns the exit code.
func (p *proc) exit(limit time.Duration) int {
	p.t.Helper()
	select {
	case <-p.done:
	case <-time.After(limit):
		p.t.Fatalf("still running after %v\n%s", limit, p.Log())
	}
	return p.cmd.ProcessState.ExitCode()
}

// eventually polls for an event.
func eventually(t testing.TB, limit time.Duration, what string, f func() bool) {
	t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(limit); !f(); <-tick.C {
		if time.Now().After(end) {
			t.Fatalf("not within %v: %s", limit, what)
		}
	}
}

// freeAddr is an address that a process can listen on again and again: its port
// is below those that the system hands out by itself (32768 and up on Linux), so
// nobody else is given it while the process is down.
func freeAddr(t testing.TB) string {
	t.Helper()
	for range 100 {
		addr := fmt.Sprint("127.0.0.1:", 10000+rand.IntN(22000))
		if l, err := net.Listen("tcp", addr); err == nil {
			_ = l.Close()
			return addr
		}
	}
	t.Fatal("no port is free")
	return ""
}

// reply is an answer that was read to its end.
type reply struct {
	status int
	header http.Header
	body   string
}

func (r reply) replayed() bool { return r.header.Get("Idempotent-Replayed") == "true" }

// wire is a client's transport that sends nothing again by itself.
func wire(t testing.TB) *http.Transport {
	tr := &http.Transport{MaxIdleConnsPerHost: 256}
	t.Cleanup(tr.CloseIdleConnections)
	return tr
}

// post sends one request with a key.
func post(ctx context.Context, tr http.RoundTripper, addr, path, key, body string, headers ...string) (reply, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+addr+path, strings.NewReader(body))
	if err != nil {
		return reply{}, err
	}
	req.GetBody = nil
	if key != "" {
		req.Header.Set("Idempotency-Key", key)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Add(headers[i], headers[i+1])
	}
	res, err := tr.RoundTrip(req)
	if err != nil {
		return reply{}, err
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	return reply{res.StatusCode, res.Header, string(b)}, err
}
