package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// TestMain lets the test binary be the demo's payment service, a consumer or a worker.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case roleLedger, roleConsumer, roleWorker:
			ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
			code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
			stop()
			os.Exit(code)
		case roleProxy:
			os.Stderr.WriteString("there is no proxy here")
			os.Exit(1)
		}
	}
	code := m.Run()
	if built.Load() {
		path, _ := binary()
		_ = os.RemoveAll(filepath.Dir(path))
	}
	os.Exit(code)
}

// built is set once the binary is there.
var built atomic.Bool

// binary is the real demo, built once for all tests.
var binary = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "semel-demo-test-")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "demo")
	if runtime.GOOS == "windows" {
		path += ".exe"
	}
	out, err := exec.Command("go", "build", "-o", path, ".").CombinedOutput()
	if err != nil {
		return "", errors.Join(err, errors.New(string(out)), os.RemoveAll(dir))
	}
	return path, nil
})

// command is a demo that keeps its files in dir.
func command(t *testing.T, dir string, args ...string) *exec.Cmd {
	t.Helper()
	if testing.Short() {
		t.Skip("it builds and runs the whole demo")
	}
	path, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	built.Store(true)
	ctx, cancel := context.WithTimeout(t.Context(), 8*time.Minute)
	t.Cleanup(cancel)
	c := exec.CommandContext(ctx, path, args...)
	c.Env = append(os.Environ(), "TMPDIR="+dir, "SEMEL_LEASE=1h", "SEMEL_REQUIRE_KEY=x") // which the demo does not heed
	return c
}

// result runs the demo of requests or messages to its end.
func result(t *testing.T, args ...string) (r Report, code int, stderr string) {
	t.Helper()
	code, stderr = into(t, &r, append([]string{"--orders=200"}, args...)...)
	return r, code, stderr
}

// into runs a demo to its end, and reads its report.
func into(t *testing.T, r any, args ...string) (code int, stderr string) {
	t.Helper()
	var out, told bytes.Buffer
	dir := t.TempDir()
	c := command(t, dir, append([]string{"--json"}, args...)...)
	c.Stdout, c.Stderr = &out, &told
	if err := c.Run(); err != nil {
		if _, ok := errors.AsType[*exec.ExitError](err); !ok {
			t.Fatal(err)
		}
	}
	d := json.NewDecoder(&out)
	d.DisallowUnknownFields()
	if err := d.Decode(r); err != nil {
		t.Fatalf("%v; told: %s", err, &told)
	}
	if rest, _ := io.ReadAll(io.MultiReader(d.Buffered(), &out)); strings.TrimSpace(string(rest)) != "" {
		t.Errorf("there is more than one object: %s", rest)
	}
	leftNothing(t, dir)
	return c.ProcessState.ExitCode(), told.String()
}

// leftNothing checks that neither files nor processes are left.
func leftNothing(t *testing.T, dir string) {
	t.Helper()
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 0 {
		t.Errorf("left in its directory: %v, %v", left, err)
	}
	if pids := running(t, dir); len(pids) != 0 {
		t.Errorf("still running: %v", pids)
	}
}

// running are the processes whose command line has the text.
func running(t *testing.T, text string) (pids []string) {
	t.Helper()
	lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range lines {
		if line, err := os.ReadFile(path); err == nil && strings.Contains(string(line), text) {
			pids = append(pids, strings.Split(path, "/")[2])
		}
	}
	return pids
}

func TestCampaign_Demo_PromisesHold(t *testing.T) {
	r, code, told := result(t)
	if code != 0 || len(r.Broken) != 0 {
		t.Fatalf("exit code %d, broken %q; told: %s", code, r.Broken, told)
	}
	s, u := r.With, r.Without
	if r.Orders != 200 || r.Deliveries < 260 || r.Changes != 4 {
		t.Errorf("%d orders, %d deliveries, %d changes", r.Orders, r.Deliveries, r.Changes)
	}
	if u.DoubleCharges == 0 || u.Lost != 0 || u.ServiceKills != 8 || u.InFlightAtKills < 8 || u.Accepted != 4 {
		t.Errorf("without Semel: %+v", u)
	}
	if s.DoubleCharges != 0 || s.Lost != 0 || s.UnequalReplays != 0 || s.Stuck != 0 || s.Charges != 200 {
		t.Errorf("with Semel: %+v", s)
	}
	if s.ServiceKills != 8 || s.ProxyKills != 8 || s.Kills != 16 || s.InFlightAtKills < 16 {
		t.Errorf("with Semel: %d + %d kills with %d in flight", s.ServiceKills, s.ProxyKills, s.InFlightAtKills)
	}
	if s.Replays == 0 || s.Refused != 4 || s.Parked == 0 || s.Reconciled != s.Parked || s.Executions < 200 || s.Conflicts == 0 {
		t.Errorf("with Semel: %+v", s)
	}
	if u.Samples == 0 || s.Samples == 0 || u.P50 <= 0 || s.P50 <= 0 || u.P99 < u.P50 || s.P99 < s.P50 {
		t.Errorf("latencies %+v and %+v", u, s)
	}
}

// If the demo could not see a double charge, its zero would mean nothing.
func TestCampaign_DemoUnprotected_SeesDoubleCharges(t *testing.T) {
	r, code, told := result(t, "--on-doubt=retry")
	if code != 1 || r.With.DoubleCharges == 0 || len(r.Broken) == 0 || !strings.Contains(told, "double charges") {
		t.Errorf("exit code %d, %d double charges, broken %q; told: %s", code, r.With.DoubleCharges, r.Broken, told)
	}
}

func TestCampaign_DemoWithoutKills_ProvesNothing(t *testing.T) {
	r, code, _ := result(t, "--kills=0")
	if code != 1 || len(r.Broken) != 1 || !strings.Contains(r.Broken[0], "not every kind of process was killed") {
		t.Errorf("exit code %d, broken %q", code, r.Broken)
	}
}

func TestCampaign_DemoWrongOption_IsUsageError(t *testing.T) {
	c := command(t, t.TempDir(), "--orders=3")
	out, err := c.CombinedOutput()
	if err == nil || c.ProcessState.ExitCode() != 2 || !strings.Contains(string(out), `--orders: "3"`) {
		t.Errorf("%v: %s", err, out)
	}
}

// demos are the arguments of each.
var demos = map[string][]string{"requests": nil, "events": {"--events"}, "saga": {"--saga"}}

// interrupted starts a large demo, and signals it when its processes are at
// work.
func interrupted(t *testing.T, dir string, how os.Signal, args ...string) (*exec.Cmd, error) {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("its processes are found by /proc")
	}
	c := command(t, dir, append([]string{"--orders=300", "--clients=4", "--kills=0"}, args...)...)
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- c.Wait() }()
	for deadline := time.Now().Add(3 * time.Minute); len(running(t, dir)) < 2; runtime.Gosched() {
		if time.Now().After(deadline) {
			t.Fatal("its processes were not started within 3 minutes")
		}
	}
	if err := c.Process.Signal(how); err != nil {
		t.Fatal(err)
	}
	return c, <-ended
}

func TestCampaign_DemoInterrupted_LeavesNothing(t *testing.T) {
	for name, args := range demos {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			c, err := interrupted(t, dir, os.Interrupt, args...)
			if err == nil || c.ProcessState.ExitCode() != 1 {
				t.Errorf("it ended with %v", err)
			}
			leftNothing(t, dir)
		})
	}
}

func TestCampaign_DemoKilled_LeavesNoProcess(t *testing.T) {
	for name, args := range demos {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			_, _ = interrupted(t, dir, os.Kill, args...)
			for deadline := time.Now().Add(2 * time.Minute); len(running(t, dir)) > 0; runtime.Gosched() {
				if time.Now().After(deadline) {
					t.Fatalf("still running after 2 minutes: %v", running(t, dir))
				}
			}
		})
	}
}
