package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/semel-go/semel/test/internal/figure"
	"github.com/semel-go/semel/test/internal/repo"
)

func TestFigures_InLog_Found(t *testing.T) {
	for line, want := range map[string]struct {
		found, wrong bool
	}{
		`    sim_test.go:7: evidence: {"claim":"c","trials":3}`: {found: true},
		`evidence: {"claim":"c","trials":3}`:                    {found: true},
		`    sim_test.go:7: evidence: {"claim"`:                 {wrong: true},
		`    sim_test.go:7: the evidence: none`:                 {},
		`ok  	x`:                                                {},
	} {
		f, ok, err := parse(line)
		if ok != want.found || (err != nil) != want.wrong || ok && f != (figure.Figure{Claim: "c", Trials: 3}) {
			t.Errorf("%q: %+v, %v, %v", line, f, ok, err)
		}
	}
}

func TestPage_HasFigures(t *testing.T) {
	p := page{machine: machine{commit: "abc", goVersion: "go1", os: "linux/amd64", cpu: "CPU", cores: 2}, began: time.Date(2026, 11, 20, 1, 2, 3, 0, time.UTC)}
	p.sections = []done{
		{step: step{name: "simulation", about: "It simulates.", dir: "test/sim", args: []string{"-run=^A$"}, env: []string{"X=1"}}, took: 90 * time.Second, figures: []figure.Figure{
			{Claim: "a | b", Where: "memory", Trials: 20_000_000, Detail: "d", Seeds: "1-5"}, {Claim: "broken", Trials: 10, Failures: 10, Control: true}}},
		{step: step{name: "chaos", about: "It fails."}, err: errors.New("exit status 1")},
	}
	text := p.String()
	for _, want := range []string{
		"## Simulation", "It simulates. On 2026-11-20 at commit `abc`, with go1 on linux/amd64, 2 cores (CPU), it took 1m30s and passed.", "cd test/sim && X=1 go test -count=1 -v '-run=^A$' .",
		`| a \| b | memory | 20,000,000 | 0 | < 1.5e-07 | d; seeds 1-5 |`, "| broken |  | 10 | 10 | control |  |", "## Chaos", "FAILED: exit status 1",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
}

func TestPage_SectionsOfOtherSteps_Kept(t *testing.T) {
	first := page{machine: machine{commit: "abc"}, sections: []done{{step: step{name: "model", about: "A."}}, {step: step{name: "museum", about: "B."}}}}
	again := page{machine: machine{commit: "def"}, before: first.String(), sections: []done{{step: step{name: "museum", about: "C."}}, {step: step{name: "chaos", about: "D."}}}}
	text := again.String()
	at := -1
	for _, want := range []string{"## Model", "A.", "`abc`", "## Chaos", "D.", "`def`", "## Museum", "C.", "`def`"} {
		i := strings.Index(text[at+1:], want)
		if i < 0 {
			t.Fatalf("%q is not where it belongs in\n%s", want, text)
		}
		at += 1 + i
	}
	if strings.Contains(text, "B.") || strings.Count(text, "# Evidence") != 1 {
		t.Errorf("the old section, or a second head, is in\n%s", text)
	}
}

func TestThousands_Separated(t *testing.T) {
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", -1000: "-1,000", -100: "-100", 1234567: "1,234,567"} {
		if got := thousands(n); got != want {
			t.Errorf("%d is %q, want %q", n, got, want)
		}
	}
}

func TestSteps_ChosenByName(t *testing.T) {
	if all, err := choose(""); err != nil || len(all) != len(steps) {
		t.Errorf("all: %d, %v", len(all), err)
	}
	some, err := choose("museum,model")
	if err != nil || len(some) != 2 || some[0].name != "museum" || some[1].name != "model" {
		t.Errorf("some: %v, %v", some, err)
	}
	for _, st := range steps {
		if one, err := choose(st.name); err != nil || len(one) != 1 {
			t.Errorf("step %q cannot be chosen: %d steps, %v", st.name, len(one), err)
		}
	}
	if _, err := choose("museum,nothing"); err == nil {
		t.Error("a step that does not exist was chosen")
	}
}

func TestRunAll_TwoAtATime_SlowFirstMeasuringAlone(t *testing.T) {
	some := []step{{name: "a"}, {name: "b", alone: true}, {name: "c"}, {name: "d", slow: true}, {name: "e", alone: true}}
	var mu sync.Mutex
	running, most := 0, 0
	var began []string
	both := make(chan struct{})
	runAll(some, 2, func(s step) {
		mu.Lock()
		running++
		now := running
		most = max(most, now)
		if s.alone && now != 1 {
			t.Errorf("%s runs beside another step", s.name)
		}
		began = append(began, s.name)
		if now == 2 && len(began) == 2 {
			close(both)
		}
		mu.Unlock()
		if !s.alone {
			<-both
		}
		mu.Lock()
		defer mu.Unlock()
		running--
	})
	if !slices.Contains(began[:2], "d") || began[3] != "b" || began[4] != "e" {
		t.Errorf("they began in the order %v", began)
	}
	if most != 2 {
		t.Errorf("%d steps ran at a time, want 2", most)
	}
}

func TestSteps_DirectoriesHaveTheirTests(t *testing.T) {
	root, err := repo.Root()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range steps {
		if found, err := filepath.Glob(filepath.Join(root, s.dir, "*_test.go")); err != nil || len(found) == 0 {
			t.Errorf("%s: no tests in %s", s.name, s.dir)
		}
	}
}

// Each alternative of a step's -run pattern matches a test, so that a renamed test
// is not left out.
func TestSteps_RunPatterns_MatchTests(t *testing.T) {
	root, err := repo.Root()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range steps {
		for _, arg := range s.args {
			pattern, ok := strings.CutPrefix(arg, "-run=")
			if !ok {
				continue
			}
			tests := testsIn(t, filepath.Join(root, s.dir))
			for _, alternative := range alternatives(pattern) {
				top, _, _ := strings.Cut(alternative, "/") // without the subtest
				if !slices.ContainsFunc(tests, regexp.MustCompile(top).MatchString) {
					t.Errorf("%s: -run %s matches no test in %s", s.name, alternative, s.dir)
				}
			}
		}
	}
}

// testsIn returns the names of the tests in a directory.
func testsIn(t *testing.T, dir string) (names []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`(?m)^func (Test\w+)\(`).FindAllSubmatch(text, -1) {
			names = append(names, string(m[1]))
		}
	}
	return names
}

// alternatives splits a pattern of the form ^x(a|b)y into ^xay and ^xby. A group
// inside a or b must have no alternatives.
func alternatives(pattern string) (all []string) {
	first, last := strings.Index(pattern, "("), strings.LastIndex(pattern, ")")
	if first < 0 || last < first {
		return []string{pattern}
	}
	for _, alternative := range strings.Split(pattern[first+1:last], "|") {
		all = append(all, pattern[:first]+alternative+pattern[last+1:])
	}
	return all
}

// A step that runs nothing, or cannot be built, is not a step that passed.
func TestStep_NoFigures_Fails(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	file("go.mod", "module x\n\ngo 1.26.0\n")
	file("x_test.go", "package x\n\nimport \"testing\"\n\nfunc TestNone(t *testing.T) {}\n\nfunc TestOne(t *testing.T) { t.Log(`evidence: {\"claim\":\"c\",\"trials\":1}`) }\n\n"+
		"func TestBad(t *testing.T) { t.Error(`evidence: {\"claim\":\"c\",\"trials\":1,\"failures\":1}`) }\n")
	for only, want := range map[string]struct {
		figures int
		wrong   bool
	}{"-run=TestNone": {0, true}, "-run=TestOne": {1, false}, "-run=TestBad": {1, true}, "-nonsense": {0, true}} {
		var progress strings.Builder
		d := run(t.Context(), dir, step{dir: ".", args: []string{only}, env: []string{"GOWORK=off"}}, &teller{to: &progress})
		if len(d.figures) != want.figures || (d.err != nil) != want.wrong {
			t.Errorf("%s: %d figures, %v\n%s", only, len(d.figures), d.err, progress.String())
		}
	}
}

func TestMissing_StepsThatPassedWithThisCode_NotRunAgain(t *testing.T) {
	root := t.TempDir()
	git := func(args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "git", append([]string{"-C", root, "-c", "user.name=a", "-c", "user.email=a@b"}, args...)...)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("git %s: %v\n%s", args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	commit := func(name, text string) string {
		t.Helper()
		file := filepath.Join(root, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
		git("add", ".")
		git("commit", "-qm", "c")
		return git("rev-parse", "--short=10", "HEAD")
	}
	git("init", "-q")
	old := commit("a.go", "package a")
	code := commit("a.go", "package b")
	commit("docs/a.md", "text")
	at := func(commit, name string, err error) string {
		p := page{machine: machine{commit: commit}, sections: []done{{step: step{name: name}, err: err}}}
		return p.String()
	}
	text := at(code, "museum", nil) + at(code+"-dirty", "model", nil) + at(code, "chaos", errNothing) + at(old, "storms", nil)
	all := []step{{name: "museum"}, {name: "model"}, {name: "chaos"}, {name: "storms"}, {name: "redis"}}
	var names []string
	for _, s := range missing(t.Context(), root, text, all) {
		names = append(names, s.name)
	}
	if want := []string{"model", "chaos", "storms", "redis"}; !slices.Equal(names, want) {
		t.Errorf("left are %v, want %v", names, want)
	}
}
