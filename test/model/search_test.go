package model

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

// verdict is what a search has found.
type verdict struct {
	output    string
	steps     string // the text of all steps of the model, reached or not
	complete  bool   // every state that can be reached was looked at
	violated  string // the assertion that was; empty: none
	errors    int    // of any kind
	states    int64
	took      time.Duration // of the search alone
	megabytes float64
}

// quick is the compiler for small searches. TinyCC takes 0.05 s for a checker, and gcc
// takes 1.5 s.
var quick = func() string {
	if _, err := exec.LookPath("tcc"); err == nil {
		return "tcc"
	}
	return "gcc"
}()

// search makes a checker of a model with spin and the C compiler, and runs it.
func search(t *testing.T, v *variant, callers int) verdict {
	t.Helper()
	dir := t.TempDir()
	files, err := filepath.Glob("*.pml")
	if err != nil || len(files) == 0 {
		t.Fatalf("the models: %v, error %v", files, err)
	}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, f), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	args := []string{"-a", "-DN=" + strconv.Itoa(callers)}
	for _, m := range macros(v, callers) {
		args = append(args, "-D"+m)
	}
	if v.fails != "" && v.fails != "never_reached" {
		args = append(args, "-DONLY=R_"+v.fails)
	}
	model := v.file
	if model == "" {
		model = "claim.pml"
	}
	run(t, dir, "spin", append(args, model)...)
	compiler, options := "gcc", []string{"-O1"} // a large search pays for an optimised checker
	if callers == 3 || v.fails != "" {
		compiler, options = quick, nil
	}
	run(t, dir, compiler, append(options, "-w", "-DSAFETY", "-DCOLLAPSE", "-DMEMLIM=2000", "-o", "pan", "pan.c")...)
	begun := time.Now()
	got := parse(run(t, dir, "./pan", "-m100000"))
	got.took = time.Since(begun)
	steps, err := os.ReadFile(filepath.Join(dir, "pan.t")) // spin's table of steps
	if err != nil {
		t.Fatal(err)
	}
	got.steps = string(steps)
	return got
}

// macros are the macros of a variant. Of macros with equal names the last counts.
func macros(v *variant, callers int) []string {
	all := v.set
	if callers > 3 {
		all = with(all, v.four...)
	}
	value := map[string]string{}
	var names []string
	for _, m := range all {
		name, is, set := strings.Cut(m, "=")
		if _, known := value[name]; !known {
			names = append(names, name)
		}
		if value[name] = ""; set {
			value[name] = "=" + is
		}
	}
	for i, name := range names {
		names[i] = name + value[name]
	}
	return names
}

func run(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %v: %v\n%s", name, args, err, out)
	}
	return string(out)
}

var (
	violation = regexp.MustCompile(`assertion violated (.+) \(at depth`)
	errorsRE  = regexp.MustCompile(`errors: (\d+)`)
	statesRE  = regexp.MustCompile(`(\d+) states, stored`)
	memoryRE  = regexp.MustCompile(`([\d.]+)\s+total actual memory usage`)
	truncated = regexp.MustCompile(`(?i)search not completed|max search depth too small|out of memory|memory limit|hash table.*full|resource limits`)
)

func parse(out string) verdict {
	got := verdict{output: out, errors: -1}
	got.complete = !truncated.MatchString(out) && strings.Contains(out, "Full statespace search") // not a sample
	if m := violation.FindStringSubmatch(out); m != nil {
		got.violated = m[1]
	}
	if m := errorsRE.FindStringSubmatch(out); m != nil {
		got.errors, _ = strconv.Atoi(m[1])
	}
	if m := statesRE.FindStringSubmatch(out); m != nil {
		got.states, _ = strconv.ParseInt(m[1], 10, 64)
	}
	if m := memoryRE.FindStringSubmatch(out); m != nil {
		got.megabytes, _ = strconv.ParseFloat(m[1], 64)
	}
	return got
}

// wrong says in which way a verdict is not the expected one, or nothing.
func (got *verdict) wrong(v *variant, callers int) string {
	switch {
	case v.fails != "" && got.violated != v.fails:
		return fmt.Sprintf("want a violation of %s, got %q with %d errors", v.fails, got.violated, got.errors)
	case v.fails != "":
		return ""
	case got.errors != 0:
		return fmt.Sprintf("%d errors, violated: %q", got.errors, got.violated)
	case !got.complete || got.states == 0:
		return "the search is not complete"
	}
	_, unreached, ok := strings.Cut(got.output, "unreached in ")
	if !ok {
		return "the checker does not say what it has not reached"
	}
	marks := v.marks
	if callers == 3 {
		marks = with(marks, v.rare...)
	}
	for _, m := range marks {
		mark := "printf('" + m + "')"
		if strings.Contains(unreached, mark) {
			return "never reached: " + m
		}
		if !strings.Contains(got.steps, mark) {
			return "left out by the macros of this variant: " + m
		}
	}
	return ""
}
