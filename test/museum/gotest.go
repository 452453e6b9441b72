package museum

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// errBuild is the output of a build that failed.
type errBuild struct{ output string }

func (e *errBuild) Error() string { return "does not compile:\n" + e.output }

// buildTests builds the tests of the package in dir into the file binary. Vet
// is off, because bugs look odd to it; the flags for compiler and linker make
// building quicker.
func buildTests(ctx context.Context, dir, overlay, binary string) error {
	cmd := exec.CommandContext(ctx, "go", "test", "-c", "-vet=off", "-overlay="+overlay,
		"-gcflags=-e -N -l -dwarf=false", "-ldflags=-s -w", "-o", binary, ".")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOFLAGS=-trimpath", "GOGC=400")
	out, err := cmd.CombinedOutput()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		return &errBuild{string(out)}
	}
	return err
}

// report is what one run of tests says.
type report struct {
	passed []string // the names of the tests, subtests included
	failed []string
	how    string // "timeout", "deadlock" or "panic", if a test ended so
	output string
}

// testRun is one run of a test binary.
type testRun struct {
	dir, binary string
	run         string // as go test -run
	bug         int    // 0: none
	limit       time.Duration
	failFast    bool
	environment []string
}

// do runs the tests. The count of allocations is not that of the code without
// instruments, so the tests of it are left out.
func (r *testRun) do(ctx context.Context) (report, error) {
	// A binary that does not end at its own limit is killed.
	ctx, cancel := context.WithTimeout(ctx, r.limit+20*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, r.binary, "-test.v=test2json", "-test.run="+r.run, "-test.skip=Allocate",
		"-test.timeout="+r.limit.String(), "-test.failfast="+strconv.FormatBool(r.failFast))
	cmd.Dir = r.dir
	cmd.Env = append(append(os.Environ(), switchVariable+"="+strconv.Itoa(r.bug)), r.environment...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = &out, &out, 5*time.Second
	err := cmd.Run()
	rep := parse(out.String())
	switch exit := (*exec.ExitError)(nil); {
	case err == nil, errors.As(err, &exit) && len(rep.failed) > 0:
		return rep, nil
	default:
		return rep, fmt.Errorf("%w, though no test failed:\n%s", err, rep.output)
	}
}

// progress is a line of a test binary that runs with -test.v=test2json: the
// mark 0x16 tells it from what a test prints.
var progress = regexp.MustCompile("\x16 *(?:=== (RUN)|--- (PASS|FAIL|SKIP):) +(\\S+)")

func parse(output string) report {
	rep := report{output: output}
	running := map[string]bool{}
	for _, line := range progress.FindAllStringSubmatch(output, -1) {
		name := line[3]
		running[name] = line[1] == "RUN"
		switch line[2] {
		case "PASS":
			rep.passed = append(rep.passed, name)
		case "FAIL":
			rep.failed = append(rep.failed, name)
		}
	}
	for name, still := range running {
		if still { // the process ended before the test
			rep.failed = append(rep.failed, name)
		}
	}
	slices.Sort(rep.failed)
	switch {
	case strings.Contains(output, "panic: test timed out"):
		rep.how = "timeout"
	case strings.Contains(output, "deadlock!"), strings.Contains(output, "panic: deadlock: "):
		rep.how = "deadlock"
	case strings.Contains(output, "panic: "):
		rep.how = "panic"
	}
	return rep
}

// leaves drops the tests that failed only because a subtest did.
func leaves(names []string) []string {
	var ls []string
	for _, n := range names {
		if !slices.ContainsFunc(names, func(m string) bool { return strings.HasPrefix(m, n+"/") }) {
			ls = append(ls, n)
		}
	}
	return ls
}
