package proctest

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

// childVariable makes this test binary a child: its value is what the child
// does.
const childVariable = "SEMEL_PROCTEST_CHILD"

func TestMain(m *testing.M) {
	switch child := os.Getenv(childVariable); child {
	case "":
		os.Exit(m.Run())
	case "exit":
		fmt.Fprintln(os.Stderr, "the child's last words")
		os.Exit(7)
	case "parent": // starts a grandchild, tells its number, and waits for its own death
		cmd := exec.Command("sleep", "600")
		p, err := Start(cmd)
		if err != nil {
			panic(err)
		}
		fmt.Println(p.Pid())
		<-p.Ended()
	default: // listens on an address until it is killed
		l, err := net.Listen("tcp", child)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		for {
			if _, err := l.Accept(); err != nil {
				panic(err)
			}
		}
	}
}

// limit is how long anything here may take.
const limit = time.Minute

// listener is a Server whose program listens on a port.
func listener(t *testing.T, port *int) *Server {
	t.Helper()
	s := &Server{Name: "listener", Dir: t.TempDir(), Limit: limit}
	s.Command = func(first bool) (*exec.Cmd, error) {
		if first {
			var err error
			if *port, err = FreePort(); err != nil {
				return nil, err
			}
		}
		return Self(t, fmt.Sprintf("%s=127.0.0.1:%d", childVariable, *port)), nil
	}
	s.Ready = func(*Process) error { return dial(*port) }
	t.Cleanup(func() {
		if err := s.Remove(syscall.SIGKILL); err != nil {
			t.Error(err)
		}
	})
	return s
}

func dial(port int) error {
	conn, err := net.Dial("tcp", fmt.Sprint("127.0.0.1:", port))
	if err != nil {
		return err
	}
	return conn.Close()
}

func TestServer_KilledAndStarted_SamePort(t *testing.T) {
	port := 0
	s := listener(t, &port)
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	first, pid := port, s.Pid()
	if err := s.Start(); err == nil {
		t.Error("Start of a server that runs succeeded")
	}
	s.End(syscall.SIGKILL)
	if dial(port) == nil {
		t.Error("the server answers after its end")
	}
	if s.Pid() != 0 {
		t.Errorf("after the end Pid is %d, want 0", s.Pid())
	}
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	if port != first || s.Pid() == pid || s.Pid() == 0 {
		t.Errorf("after a restart the port is %d and was %d; the process is %d and was %d", port, first, s.Pid(), pid)
	}
}

func TestServer_PortTaken_ChoosesAnother(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }()
	port, attempts := 0, 0
	s := listener(t, &port)
	command := s.Command
	s.Command = func(first bool) (*exec.Cmd, error) {
		if attempts++; attempts == 1 {
			return Self(t, fmt.Sprintf("%s=%s", childVariable, taken.Addr())), nil
		}
		return command(first)
	}
	s.Ready = func(*Process) error {
		if port == 0 {
			return errors.New("not this server's port")
		}
		return dial(port)
	}
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	if attempts != 2 {
		t.Errorf("%d attempts, want 2", attempts)
	}
}

func TestServer_ProgramEnds_ErrorHasItsOutput(t *testing.T) {
	s := listener(t, new(int))
	s.Limit = 0 // one attempt
	s.Command = func(bool) (*exec.Cmd, error) { return Self(t, childVariable+"=exit"), nil }
	s.Ready = func(p *Process) error {
		<-p.Ended()
		return errors.New("not ready")
	}
	err := s.Start()
	if err == nil || !strings.Contains(err.Error(), "the child's last words") {
		t.Errorf("error %v, want one with the output of the program", err)
	}
}

func TestServer_NoProgram_FailsAtOnce(t *testing.T) {
	s := listener(t, new(int))
	attempts := 0
	s.Command = func(bool) (*exec.Cmd, error) {
		attempts++
		return exec.Command("no-such-program-of-semel"), nil
	}
	if err := s.Start(); !errors.Is(err, exec.ErrNotFound) || attempts != 1 {
		t.Errorf("error %v after %d attempts, want ErrNotFound after one", err, attempts)
	}
}

func TestProcess_Exits_WaitReturnsItsError(t *testing.T) {
	cmd := Self(t, childVariable+"=exit")
	cmd.Stderr = nil
	p := Run(t, cmd)
	var exit *exec.ExitError
	if err := p.Wait(); !errors.As(err, &exit) || exit.ExitCode() != 7 {
		t.Errorf("error %v, want exit status 7", err)
	}
	if p.Alive() {
		t.Error("Alive after the end")
	}
	p.Kill() // must not block
}

func TestFreePort_Offsets_AllFree(t *testing.T) {
	port, err := FreePort(1, 5000)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range []int{port, port + 1, port + 5000} {
		if p < firstPort || p > lastPort {
			t.Errorf("port %d is not between %d and %d", p, firstPort, lastPort)
		}
		if err := listenOnce(p); err != nil {
			t.Errorf("port %d: %v", p, err)
		}
	}
}

// fakeTB records how Need ends a test.
type fakeTB struct {
	testing.TB
	ended string
}

func (*fakeTB) Helper()                {}
func (f *fakeTB) Fatal(...any)         { f.ended = "failed"; panic(f) }
func (f *fakeTB) Skipf(string, ...any) { f.ended = "skipped"; panic(f) }
func (f *fakeTB) need(err, missing error) string {
	defer func() {
		if v := recover(); v != nil && v != any(f) {
			panic(v)
		}
	}()
	Need(f, err, missing)
	return f.ended
}

func TestNeed_NotInstalled_SkipsUnlessRequired(t *testing.T) {
	missing := errors.New("not installed")
	for _, c := range []struct {
		require string
		err     error
		want    string
	}{
		{"", nil, ""},
		{"1", nil, ""},
		{"", fmt.Errorf("redis: %w", missing), "skipped"},
		{"1", fmt.Errorf("redis: %w", missing), "failed"},
		{"", errors.New("another error"), "failed"},
	} {
		t.Setenv("SEMEL_TEST_REQUIRE", c.require)
		f := &fakeTB{}
		f.need(c.err, missing)
		if f.ended != c.want {
			t.Errorf("SEMEL_TEST_REQUIRE=%q, error %v: the test is %q, want %q", c.require, c.err, f.ended, c.want)
		}
	}
}

// removable counts its removals.
type removable struct{ removed int }

func (r *removable) Remove() error { r.removed++; return nil }

func TestShared_TwoCallers_OneServerRemovedOnce(t *testing.T) {
	var used, unused, failed Shared[*removable]
	starts := 0
	start := func() (*removable, error) { starts++; return &removable{}, nil }
	a, _ := used.Get(start)
	b, _ := used.Get(start)
	if a != b || starts != 1 {
		t.Errorf("two callers have the same server: %v; it was started %d times, want 1", a == b, starts)
	}
	if _, err := failed.Get(func() (*removable, error) { return nil, errors.New("no") }); err == nil {
		t.Error("the error of the start is lost")
	}
	code := Main(TestFunc(func() int { return 3 }), &used, &unused, &failed)
	if code != 3 || a.removed != 1 {
		t.Errorf("exit code %d, %d removals; want 3 and 1", code, a.removed)
	}
}
