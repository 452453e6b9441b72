package museum

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// report is what one run of go test says.
type report struct {
	built  bool
	passed []string // the names of the tests, subtests included
	failed []string
	how    string // "timeout", "deadlock" or "panic", if a test ended so
	output string
}

// goTest runs tests of one package. Vet is off, for bugs look odd to it.
func goTest(ctx context.Context, dir, overlay, run string) (report, error) {
	// The flags for compiler and linker only make building quicker.
	limit := "-timeout=30s" // a bug may make a test hang
	if overlay == "" {
		limit = "-timeout=20m" // all tests of a package, on a machine that may do much else
	}
	args := []string{"test", "-json", "-vet=off", "-count=1", limit, "-gcflags=-N -l -dwarf=false", "-ldflags=-s -w"}
	if overlay != "" {
		args = append(args, "-overlay="+overlay)
	}
	if run != "" {
		args = append(args, "-run="+run)
	}
	cmd := exec.CommandContext(ctx, "go", append(args, ".")...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOFLAGS=", "GOGC=400") // GOGC for compiler and linker, too
	var out, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &stderr
	err := cmd.Run()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		return report{}, err
	}
	rep := parse(out.Bytes())
	if err != nil && rep.built && len(rep.failed) == 0 {
		return rep, fmt.Errorf("go test in %s: %w, though no test failed:\n%s%s", dir, err, rep.output, stderr.String())
	}
	return rep, nil
}

// event is a line that go test -json prints.
type event struct {
	Action      string
	Test        string
	Output      string
	FailedBuild string
}

func parse(stream []byte) report {
	rep := report{built: true}
	running := map[string]bool{}
	var output strings.Builder
	lines := bufio.NewScanner(bytes.NewReader(stream))
	lines.Buffer(nil, 1<<24)
	for lines.Scan() {
		var e event
		if json.Unmarshal(lines.Bytes(), &e) != nil {
			output.WriteString(lines.Text() + "\n") // not an event: keep it for people
			continue
		}
		output.WriteString(e.Output)
		if e.Action == "build-fail" || e.FailedBuild != "" {
			rep.built = false
		}
		if e.Test == "" {
			continue
		}
		switch e.Action {
		case "run":
			running[e.Test] = true
		case "pass":
			delete(running, e.Test)
			rep.passed = append(rep.passed, e.Test)
		case "fail":
			delete(running, e.Test)
			rep.failed = append(rep.failed, e.Test)
		case "skip":
			delete(running, e.Test)
		}
	}
	for name := range running { // the process ended under them
		rep.failed = append(rep.failed, name)
	}
	slices.Sort(rep.failed)
	rep.output = output.String()
	switch {
	case strings.Contains(rep.output, "panic: test timed out"):
		rep.how = "timeout"
	case strings.Contains(rep.output, "deadlock!"), strings.Contains(rep.output, "panic: deadlock: "):
		rep.how = "deadlock"
	case strings.Contains(rep.output, "panic: "):
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

// overlay writes what go test -overlay reads, into a directory of the caller.
func overlay(dir, root string, m *Mutant) (string, error) {
	text, err := m.mutated(root)
	if err != nil {
		return "", err
	}
	source := filepath.Join(dir, filepath.Base(filepath.FromSlash(m.File)))
	if err := os.WriteFile(source, []byte(text), 0o600); err != nil {
		return "", err
	}
	doc, err := json.Marshal(map[string]map[string]string{
		"Replace": {filepath.Join(root, filepath.FromSlash(m.File)): source},
	})
	if err != nil {
		return "", err
	}
	name := filepath.Join(dir, "overlay.json")
	return name, os.WriteFile(name, doc, 0o600)
}
