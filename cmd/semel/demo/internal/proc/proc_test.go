package proc

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestMain lets the test binary be its own children.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "child" {
		child(os.Args[2], os.Args[3:])
		return
	}
	os.Exit(m.Run())
}

func child(what string, args []string) {
	switch what {
	case "serve": // polite, at an address, and tells its number
		ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
		defer stop()
		l, err := net.Listen("tcp", args[0])
		if err != nil {
			os.Exit(1)
		}
		go http.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, os.Getpid()) }))
		<-ctx.Done()
		fmt.Fprintln(os.Stderr, "goodbye")
	case "deaf": // does not end when it is asked to
		signal.Ignore(syscall.SIGTERM)
		fmt.Fprintln(os.Stderr, "deaf")
		select {}
	case "tell": // a variable
		fmt.Fprint(os.Stderr, os.Getenv(args[0]))
		select {}
	case "die":
		fmt.Fprintln(os.Stderr, "something is wrong")
		os.Exit(1)
	case "parent": // has a child of its own, and does nothing for it
		g := NewGroup(args[0])
		if _, err := g.Start("grandchild", os.Args[0], "child", "serve", args[1]); err != nil {
			os.Exit(1)
		}
		select {}
	}
}

func group(t *testing.T) *Group {
	g := NewGroup(t.TempDir())
	t.Cleanup(g.Close)
	return g
}

func start(t *testing.T, g *Group, args ...string) *Process {
	t.Helper()
	p, err := g.Start("p", os.Args[0], append([]string{"child"}, args...)...)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func address(t *testing.T) string {
	t.Helper()
	a, err := Address()
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func ready(t *testing.T, p *Process, address string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	if err := p.Ready(ctx, "http://"+address); err != nil {
		t.Fatal(err)
	}
}

// eventually waits for something that another process does.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); !is(); runtime.Gosched() {
		if time.Now().After(deadline) {
			t.Fatalf("%s: not within 2 minutes", what)
		}
	}
}

// pid asks the server at an address; 0: it does not answer.
func pid(address string) int {
	c := &http.Client{Timeout: 2 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	r, err := c.Get("http://" + address)
	if err != nil {
		return 0
	}
	defer r.Body.Close()
	var n int
	fmt.Fscan(r.Body, &n)
	return n
}

// dead tells zombies, which nobody has waited for yet, from the living.
func dead(pid int) bool {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return true
	}
	_, state, _ := strings.Cut(string(stat), ") ")
	return strings.HasPrefix(state, "Z")
}

func TestProcess_Killed_IsStartedAgain(t *testing.T) {
	a := address(t)
	p := start(t, group(t), "serve", a)
	ready(t, p, a)
	first := pid(a)
	for range 3 {
		if err := p.Kill(); err != nil {
			t.Fatal(err)
		}
		ready(t, p, a)
	}
	if last := pid(a); last == 0 || last == first || p.Deaths() != 0 || p.starts != 4 {
		t.Errorf("first %d, last %d; %d deaths, %d starts", first, last, p.Deaths(), p.starts)
	}
	if log, err := os.ReadFile(p.log()); err != nil || len(log) != 0 {
		t.Errorf("it was told that it would be killed: %q, %v", log, err)
	}
}

func TestProcess_Frozen_DoesNotAnswer(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("nothing can be frozen here")
	}
	a := address(t)
	p := start(t, group(t), "serve", a)
	ready(t, p, a)
	first := pid(a)
	if err := p.Freeze(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it stops answering", func() bool { return pid(a) == 0 })
	if err := p.Thaw(); err != nil {
		t.Fatal(err)
	}
	ready(t, p, a)
	if pid(a) != first {
		t.Error("another process answers")
	}
	if err := p.Freeze(); err != nil {
		t.Fatal(err)
	}
	if err := p.Kill(); err != nil {
		t.Errorf("a frozen process cannot be killed: %v", err)
	}
	ready(t, p, a)
}

func TestProcess_KeepsDying_IsGivenUp(t *testing.T) {
	p := start(t, group(t), "die")
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	err := p.Ready(ctx, "http://127.0.0.1:1")
	if err == nil || !strings.Contains(err.Error(), "something is wrong") || p.Err() == nil || p.Deaths() != maxDeaths+1 {
		t.Errorf("got %v after %d deaths", err, p.Deaths())
	}
	if p.Kill() == nil {
		t.Error("what is dead for good could be killed")
	}
}

func TestStop_ProcessListens_LetsItEnd(t *testing.T) {
	a := address(t)
	p := start(t, group(t), "serve", a)
	ready(t, p, a)
	p.Stop(2 * time.Minute)
	if log := tail(p.log()); log != "goodbye\n" || p.Err() != nil || pid(a) != 0 {
		t.Errorf("log %q, %v", log, p.Err())
	}
}

func TestStop_ProcessDoesNotListen_KillsIt(t *testing.T) {
	p := start(t, group(t), "deaf")
	eventually(t, "it is deaf", func() bool { return tail(p.log()) == "deaf\n" })
	p.Stop(time.Millisecond)
	if p.cmd.ProcessState == nil || p.cmd.ProcessState.Success() {
		t.Errorf("it ended with %v", p.cmd.ProcessState)
	}
}

func TestClose_ProcessesRun_EndsThem(t *testing.T) {
	g := NewGroup(t.TempDir())
	var all []*Process
	for range 3 {
		all = append(all, start(t, g, "deaf"))
	}
	g.Close()
	g.Close()
	for _, p := range all {
		if p.cmd.ProcessState == nil {
			t.Error("a process is still there")
		}
	}
	if _, err := g.Start("late", os.Args[0], "child", "deaf"); err == nil {
		t.Error("a closed group started a process")
	}
}

func TestStart_NoProgram_IsAnError(t *testing.T) {
	if _, err := group(t).Start("absent", filepath.Join(t.TempDir(), "absent")); err == nil {
		t.Error("a program that is not there was started")
	}
}

func TestProcess_ParentDies_Dies(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux ends a child with its parent")
	}
	a := address(t)
	parent := exec.Command(os.Args[0], "child", "parent", t.TempDir(), a)
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	grandchild := 0
	eventually(t, "the grandchild answers", func() bool { grandchild = pid(a); return grandchild != 0 })
	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	parent.Wait()
	eventually(t, "the grandchild is dead", func() bool { return dead(grandchild) })
}

func TestAddress_Port_IsBelowThoseOfClients(t *testing.T) {
	a := address(t)
	_, port, err := net.SplitHostPort(a)
	if n, _ := strconv.Atoi(port); err != nil || n < 20_000 || n >= 32_000 {
		t.Errorf("got %s, %v", a, err)
	}
	l, err := net.Listen("tcp", a)
	if err != nil {
		t.Fatalf("it is not free: %v", err)
	}
	l.Close()
}

func TestReady_ContextEnds_Returns(t *testing.T) {
	p := start(t, group(t), "deaf")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(fmt.Errorf("no time left"))
	if err := p.Ready(ctx, "http://127.0.0.1:1"); err == nil || !strings.Contains(err.Error(), "no time left") {
		t.Errorf("got %v", err)
	}
}

func TestEnvironment_ProxySettings_NotInherited(t *testing.T) {
	t.Setenv("SEMEL_UPSTREAM", "http://elsewhere")
	t.Setenv("SEMELION", "a flower")
	env := group(t).environment()
	if slices.Contains(env, "SEMEL_UPSTREAM=http://elsewhere") || !slices.Contains(env, "SEMELION=a flower") {
		t.Errorf("got %q", env)
	}
}

func TestEnvironment_Variable_ReachesProcess(t *testing.T) {
	p, err := group(t).StartWith([]string{"SEMEL_STORE=there"}, "p", os.Args[0], "child", "tell", "SEMEL_STORE")
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "it tells the variable", func() bool { return tail(p.log()) == "there" })
}

func TestStart_TemporaryFiles_AreInTheFolderOfTheGroup(t *testing.T) {
	g := group(t)
	p := start(t, g, "tell", "TMPDIR")
	eventually(t, "it tells its folder", func() bool { return tail(p.log()) == g.dir })
}
