package museum

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	// mutantLimit is the time that the tests of one mutant may take, because a
	// bug may make a test hang.
	mutantLimit = 30 * time.Second
	// packageLimit is the time that all tests of a package may take without a
	// mutant, on a machine that may do much besides.
	packageLimit = 20 * time.Minute
	// rounds is how often the tests of a mutant may run until one fails. A bug
	// that needs a race can escape a run; the verdict says in which run it was
	// caught.
	rounds = 3
)

// verdict says by which tests a mutant is caught, or why it is not.
type verdict struct {
	caught bool
	text   string
}

func notCaught(format string, args ...any) verdict {
	return verdict{false, fmt.Sprintf(format, args...)}
}

// A jury judges mutants. All mutants that can be switched on and off share one
// build of the tests of each package; the others have builds of their own.
type jury struct {
	root, scratch string
	slots         chan slot
	edits         map[*Mutant]*edit
	numbers       map[*Mutant]int // of those that share the builds: the number that switches the mutant on
	shared        *overlay
}

// tests is the test binary of a package, with the mutants that it has.
type tests struct {
	dir, binary string
	numbers     map[*Mutant]int
}

// slot is what one run of tests at a time has for itself.
type slot struct {
	environment []string
}

func newJury(root, scratch string, slots []slot) *jury {
	j := &jury{
		root: root, scratch: scratch, slots: make(chan slot, len(slots)),
		edits: map[*Mutant]*edit{}, numbers: map[*Mutant]int{}, shared: newOverlay(scratch),
	}
	for _, l := range slots {
		j.slots <- l
	}
	return j
}

// judge judges the mutants, of which each one's verdict is sent to tell.
func (j *jury) judge(ctx context.Context, mutants []*Mutant, tell func(*Mutant, verdict)) error {
	code := newTree(j.root)
	byPackage := map[string][]*Mutant{}
	for i, m := range mutants {
		e, err := code.locate(m)
		if err != nil {
			tell(m, notCaught("%v", err))
			continue
		}
		j.edits[m] = e
		if e.switchable() {
			j.numbers[m] = i + 1
		}
		byPackage[m.Package] = append(byPackage[m.Package], m)
	}
	var running sync.WaitGroup
	defer running.Wait()
	for _, dir := range mostFirst(byPackage) { // one build at a time keeps the processors busy
		some := byPackage[dir]
		built, err := j.build(ctx, dir)
		if build := (*errBuild)(nil); errors.As(err, &build) {
			for _, m := range some {
				tell(m, notCaught("%s %v", dir, err))
			}
			continue
		}
		if err != nil {
			return err
		}
		running.Go(func() { j.judgePackage(ctx, built, some, tell) })
	}
	return nil
}

// mostFirst are the packages, that with the most mutants first.
func mostFirst(byPackage map[string][]*Mutant) []string {
	return slices.SortedFunc(maps.Keys(byPackage), func(a, b string) int {
		if d := len(byPackage[b]) - len(byPackage[a]); d != 0 {
			return d
		}
		return strings.Compare(a, b)
	})
}

// build builds the tests of a package with all mutants that share a build. A
// mutant that does not compile there loses its place among them.
func (j *jury) build(ctx context.Context, dir string) (*tests, error) {
	binary := filepath.Join(j.scratch, strings.ReplaceAll(dir, "/", "_")+".test")
	for {
		bugs := map[int]*edit{}
		for m, n := range j.numbers {
			bugs[n] = j.edits[m]
		}
		if err := j.shared.addAll(bugs); err != nil {
			return nil, err
		}
		file, err := j.shared.file()
		if err != nil {
			return nil, err
		}
		err = buildTests(ctx, j.path(dir), file, binary)
		build := (*errBuild)(nil)
		if !errors.As(err, &build) {
			return &tests{dir, binary, maps.Clone(j.numbers)}, err
		}
		count, wrong := len(j.numbers), blamed(build.output)
		maps.DeleteFunc(j.numbers, func(m *Mutant, n int) bool {
			// The compiler can blame a constant that became a variable only where it is used.
			return slices.Contains(wrong, n) || len(wrong) == 0 && j.edits[m].function() == nil
		})
		if len(j.numbers) == count {
			return nil, err
		}
	}
}

func (j *jury) path(dir string) string { return filepath.Join(j.root, filepath.FromSlash(dir)) }

// buildAlone builds the tests of a mutant that shares no build.
func (j *jury) buildAlone(ctx context.Context, m *Mutant) (binary string, err error) {
	dir, err := os.MkdirTemp(j.scratch, "alone")
	if err != nil {
		return "", err
	}
	e, alone := j.edits[m], newOverlay(dir)
	if err := alone.add(e.path, e.mutated()); err != nil {
		return "", err
	}
	file, err := alone.file()
	if err != nil {
		return "", err
	}
	binary = filepath.Join(dir, "alone.test")
	return binary, buildTests(ctx, j.path(m.Package), file, binary)
}

// judgePackage judges the mutants with tests in one package.
func (j *jury) judgePackage(ctx context.Context, built *tests, mutants []*Mutant, tell func(*Mutant, verdict)) {
	var runs []string
	for _, m := range mutants {
		runs = append(runs, m.Run)
	}
	var base report
	var baseErr error
	baseEnded := make(chan struct{})
	var running sync.WaitGroup
	free := <-j.slots
	running.Go(func() {
		defer close(baseEnded)
		defer func() { j.slots <- free }()
		base, baseErr = runWithoutMutant(ctx, testRun{
			dir: j.path(built.dir), binary: built.binary,
			run: anyOf(runs), limit: packageLimit, environment: free.environment,
		})
	})
	for _, m := range mutants { // beside the run without a mutant, because that takes long
		free := <-j.slots
		running.Go(func() {
			v := j.try(ctx, free, built, m)
			j.slots <- free
			<-baseEnded
			if baseErr != nil {
				v = notCaught("THE TESTS FAIL WITHOUT A MUTANT: %v", baseErr)
			} else if reason := unfit(m, &base); reason != "" {
				v = notCaught("%s", reason)
			}
			tell(m, v)
		})
	}
	running.Wait()
}

// runWithoutMutant runs the tests of a package. Tests that fail run again, up to
// the number of rounds: what one failure of a test says about the code is for the
// test's own package to judge, and here only a test that cannot pass is unfit.
func runWithoutMutant(ctx context.Context, r testRun) (report, error) {
	rep, err := r.do(ctx)
	for round := 1; round < rounds && err == nil && len(rep.failed) > 0; round++ {
		fmt.Fprintf(os.Stderr, "FAILED WITHOUT A MUTANT, and run again: %s in %s\n%s\n", strings.Join(leaves(rep.failed), ", "), r.dir, rep.output)
		r.run = topLevel(rep.failed)
		var again report
		again, err = r.do(ctx)
		rep.passed = append(rep.passed, again.passed...)
		rep.failed, rep.output = again.failed, again.output
	}
	return rep, err
}

// topLevel is the -run pattern of the tests with these names and all their
// subtests.
func topLevel(names []string) string {
	var top []string
	for _, n := range names {
		n, _, _ = strings.Cut(n, "/")
		top = append(top, "^"+regexp.QuoteMeta(n)+"$")
	}
	slices.Sort(top)
	return strings.Join(slices.Compact(top), "|")
}

// unfit says why the run without a mutant leaves the tests of m without a
// meaning, or "".
func unfit(m *Mutant, base *report) string {
	meant, err := newSelector(m.Run)
	if err != nil {
		return err.Error()
	}
	if len(meant.among(base.passed)) == 0 {
		return fmt.Sprintf("NO TEST of %s that passes is selected by -run %q", m.Package, m.Run)
	}
	if failed := meant.among(base.failed); len(failed) > 0 {
		return fmt.Sprintf("FAILS WITHOUT THE MUTANT: %s", strings.Join(leaves(failed), ", "))
	}
	return ""
}

// try runs the tests of the mutant with it.
func (j *jury) try(ctx context.Context, free slot, built *tests, m *Mutant) verdict {
	r := &testRun{
		dir: j.path(m.Package), binary: built.binary, bug: built.numbers[m],
		run: m.Run, limit: mutantLimit, failFast: true, environment: free.environment,
	}
	if r.bug == 0 {
		var err error
		r.binary, err = j.buildAlone(ctx, m)
		if build := (*errBuild)(nil); errors.As(err, &build) {
			return notCaught("DOES NOT COMPILE:\n%s", build.output)
		}
		if err != nil {
			return notCaught("%v", err)
		}
	}
	var rep report
	for round := 1; round <= rounds; round++ {
		var err error
		rep, err = r.do(ctx)
		if err == nil && len(rep.failed) > 0 {
			return verdict{true, describe(&rep, round)}
		}
		if err != nil && round == rounds {
			return notCaught("%v", err)
		}
	}
	return notCaught("SURVIVED; the rule needs a test: -run %q passes %d times with this bug:\n%s", m.Run, rounds, rep.output)
}

// describe names the tests that caught a mutant, how, and in which round.
func describe(rep *report, round int) string {
	text := strings.Join(leaves(rep.failed), ", ")
	if rep.how != "" {
		text += " (" + rep.how + ")"
	}
	if round > 1 {
		text += fmt.Sprintf(", in run %d", round)
	}
	return text
}
