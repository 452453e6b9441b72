//go:build unix

package program_test

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/semel-go/semel/cmd/semel/internal/program"
	"github.com/semel-go/semel/internal/proctest"
)

// roleVar makes this binary a program that handles signals.
const roleVar = "SEMEL_PROGRAM_ROLE"

func TestMain(m *testing.M) {
	if os.Getenv(roleVar) != "" {
		drain()
		os.Exit(0)
	}
	proctest.PassSignals()
	os.Exit(m.Run())
}

// drain writes lines of a log until a signal comes, and then waits for the end of its standard
// input. It answers each line of its input with "running" or "draining".
func drain() {
	ctx := program.HandleSignals()
	asked := make(chan struct{})
	go func() {
		defer close(asked)
		for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
			if ctx.Err() != nil {
				fmt.Println("draining")
			} else {
				fmt.Println("running")
			}
		}
	}()
	for log := time.Tick(10 * time.Millisecond); ctx.Err() == nil; {
		select {
		case <-asked:
			return
		case <-ctx.Done():
		case <-log:
			if _, err := fmt.Fprintln(os.Stderr, "a log line"); err != nil {
				fmt.Println("log lost")
				log = nil
			}
		}
	}
	fmt.Println("draining")
	<-asked
	fmt.Println("drained")
}

// draining is the program under test.
type draining struct {
	t      *testing.T
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	stdout *bufio.Reader
	stderr io.Closer
}

// startDraining starts the program, by a command such as nohup if before has one.
func startDraining(t *testing.T, before ...string) *draining {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	args := append(before, path)
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Env = append(os.Environ(), roleVar+"=drain")
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	stderr, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = writer
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = writer.Close()
	t.Cleanup(func() { _, _, _ = stderr.Close(), cmd.Process.Kill(), cmd.Wait() })
	p := &draining{t, cmd, stdin, bufio.NewReader(stdout), stderr}
	p.ask("running")
	return p
}

// ask asks the program what it does.
func (p *draining) ask(want string) {
	p.t.Helper()
	if _, err := io.WriteString(p.stdin, "?\n"); err != nil {
		p.t.Fatal(err)
	}
	p.expect(want)
}

func (p *draining) expect(want string) {
	p.t.Helper()
	if line, err := p.stdout.ReadString('\n'); strings.TrimSpace(line) != want {
		p.t.Fatalf("the program wrote %q (%v), want %q", line, err, want)
	}
}

func (p *draining) send(s syscall.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.t.Fatal(err)
	}
}

// finish lets the program drain to its end.
func (p *draining) finish() {
	p.t.Helper()
	_ = p.stdin.Close()
	p.expect("drained")
	if err := p.cmd.Wait(); err != nil {
		p.t.Error(err)
	}
}

func TestHandleSignals_OneOrManyHangups_Drains(t *testing.T) {
	t.Parallel()
	for _, signals := range [][]syscall.Signal{{syscall.SIGTERM}, {syscall.SIGINT}, {syscall.SIGHUP}, {syscall.SIGHUP, syscall.SIGHUP}, {syscall.SIGTERM, syscall.SIGHUP}} {
		p := startDraining(t)
		for i, s := range signals {
			if p.send(s); i == 0 {
				p.expect("draining")
			}
		}
		p.finish()
	}
}

func TestHandleSignals_LaterInterrupt_EndsAtOnce(t *testing.T) {
	t.Parallel()
	for _, first := range []syscall.Signal{syscall.SIGTERM, syscall.SIGHUP} {
		p := startDraining(t)
		p.send(first)
		p.expect("draining")
		ended := make(chan error, 1)
		go func() { ended <- p.cmd.Wait() }()
		tick, limit := time.NewTicker(10*time.Millisecond), time.After(20*time.Second)
		defer tick.Stop()
		for done := false; !done; {
			select {
			case err := <-ended:
				if done = true; err == nil {
					t.Errorf("after %v and SIGINT the program has drained", first)
				}
			case <-tick.C: // the first one can come before the handler is removed
				_ = p.cmd.Process.Signal(syscall.SIGINT)
			case <-limit:
				t.Fatalf("after %v and SIGINT the program goes on", first)
			}
		}
	}
}

func TestHandleSignals_ReaderOfLogGone_GoesOn(t *testing.T) {
	t.Parallel()
	p := startDraining(t)
	_ = p.stderr.Close()
	p.expect("log lost")
	p.ask("running")
	p.send(syscall.SIGTERM)
	p.expect("draining")
	p.finish()
}

func TestHandleSignals_Nohup_HangupIsIgnored(t *testing.T) {
	t.Parallel()
	nohup, err := exec.LookPath("nohup")
	if err != nil {
		t.Skip(err)
	}
	p := startDraining(t, nohup)
	p.send(syscall.SIGHUP)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for range 40 { // a handler would run by then
		p.ask("running")
		<-tick.C
	}
	p.send(syscall.SIGTERM)
	p.expect("draining")
	p.finish()
}
