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
)

// roleVar makes this binary a program that handles signals.
const roleVar = "SEMEL_PROGRAM_ROLE"

func TestMain(m *testing.M) {
	if os.Getenv(roleVar) != "" {
		os.Exit(drain())
	}
	os.Exit(m.Run())
}

// drain writes lines to standard error until a signal comes, and then works for a second.
func drain() int {
	ctx := program.HandleSignals()
	_, _ = fmt.Println("ready")
	for ctx.Err() == nil {
		_, _ = fmt.Fprintln(os.Stderr, "a log line")
		time.Sleep(10 * time.Millisecond)
	}
	_, _ = fmt.Println("draining")
	time.Sleep(time.Second)
	_, _ = fmt.Println("drained")
	return 0
}

// draining is the program under test, with a reader of its standard output.
type draining struct {
	t      *testing.T
	cmd    *exec.Cmd
	stdout *bufio.Reader
	stderr io.Closer
}

// startDraining starts the program; before is a command that starts it, such as nohup.
func startDraining(t *testing.T, before ...string) *draining {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	args := append(before, path)
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Env = append(os.Environ(), roleVar+"=drain")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = writer
	if err := cmd.Start(); err != nil {
		t.Skip("cannot start", args[0], err)
	}
	_ = writer.Close()
	t.Cleanup(func() { _, _, _ = reader.Close(), cmd.Process.Kill(), cmd.Wait() })
	p := &draining{t, cmd, bufio.NewReader(out), reader}
	p.expect("ready")
	return p
}

func (p *draining) expect(want string) {
	p.t.Helper()
	if line, err := p.stdout.ReadString('\n'); strings.TrimSpace(line) != want {
		p.t.Fatalf("the program wrote %q (%v), want %q; it ended with %v", line, err, want, p.cmd.Wait())
	}
}

func (p *draining) send(s syscall.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.t.Fatal(err)
	}
}

func TestHandleSignals_OneOrManyHangups_Drains(t *testing.T) {
	t.Parallel()
	for _, signals := range [][]syscall.Signal{{syscall.SIGTERM}, {syscall.SIGINT}, {syscall.SIGHUP}, {syscall.SIGHUP, syscall.SIGHUP}, {syscall.SIGTERM, syscall.SIGHUP}} {
		p := startDraining(t)
		p.send(signals[0])
		p.expect("draining")
		for _, s := range signals[1:] {
			p.send(s)
		}
		p.expect("drained")
		if err := p.cmd.Wait(); err != nil {
			t.Errorf("%v: %v", signals, err)
		}
	}
}

func TestHandleSignals_SecondInterrupt_EndsAtOnce(t *testing.T) {
	t.Parallel()
	for _, first := range []syscall.Signal{syscall.SIGTERM, syscall.SIGHUP} {
		p := startDraining(t)
		p.send(first)
		p.expect("draining")
		time.Sleep(100 * time.Millisecond) // the handler is removed
		p.send(syscall.SIGINT)
		if rest, _ := io.ReadAll(p.stdout); len(rest) > 0 {
			t.Errorf("after %v and SIGINT the program wrote %q", first, rest)
		}
	}
}

func TestHandleSignals_ReaderOfLogGone_GoesOn(t *testing.T) {
	t.Parallel()
	p := startDraining(t)
	_ = p.stderr.Close()
	time.Sleep(200 * time.Millisecond) // the program writes lines
	p.send(syscall.SIGTERM)
	p.expect("draining")
	p.expect("drained")
}

func TestHandleSignals_Nohup_HangupIsIgnored(t *testing.T) {
	t.Parallel()
	nohup, err := exec.LookPath("nohup")
	if err != nil {
		t.Skip(err)
	}
	p := startDraining(t, nohup)
	p.send(syscall.SIGHUP)
	ended := make(chan string, 1)
	go func() {
		line, _ := p.stdout.ReadString('\n')
		ended <- line
	}()
	select {
	case line := <-ended:
		t.Errorf("after SIGHUP the program wrote %q", line)
	case <-time.After(300 * time.Millisecond):
	}
}
