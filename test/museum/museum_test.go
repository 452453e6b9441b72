package museum

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/semel-go/semel/test/internal/figure"
	"github.com/semel-go/semel/test/internal/repo"
)

// missed are the mutants that were not caught. TestMain names them in the last
// lines, which a log that is cut short in its middle keeps.
var missed struct {
	sync.Mutex
	verdicts []string
}

func TestMain(m *testing.M) {
	code := m.Run()
	for _, v := range missed.verdicts {
		fmt.Fprintln(os.Stderr, "NOT CAUGHT:", v)
	}
	os.Exit(code)
}

// TestMuseum applies each mutant and requires that its tests catch it. With
// -short, or -race, which sees nothing new here, it does so for a third of
// them, another one each day, or that which SEMEL_MUSEUM_THIRD (0, 1 or 2)
// names.
func TestMuseum(t *testing.T) {
	root, err := repo.Root()
	if err != nil {
		t.Fatal(err)
	}
	mutants := All()
	if testing.Short() || raceEnabled {
		n := third(t)
		t.Logf("third %d of 0, 1, 2 only; set SEMEL_MUSEUM_THIRD to choose", n)
		var some []Mutant
		for i := n; i < len(mutants); i += 3 {
			some = append(some, mutants[i])
		}
		mutants = some
	}
	base := baselines(root, mutants)

	var mu sync.Mutex
	rows := map[string]string{}
	t.Cleanup(func() {
		t.Log(table(mutants, rows))
		figure.Report(t, figure.Figure{Claim: "a seeded bug is caught by the tests", Trials: int64(len(mutants)), Failures: int64(len(missed.verdicts))})
	})
	lanes := make(chan struct{}, 2) // two at a time, whatever -parallel says
	for _, m := range mutants {
		t.Run(m.Name, func(t *testing.T) {
			t.Parallel()
			lanes <- struct{}{}
			defer func() { <-lanes }()
			verdict, caught := judge(t, root, &m, base[m.Package])
			mu.Lock()
			defer mu.Unlock()
			rows[m.Name] = verdict
			if !caught {
				t.Errorf("%s: %s", m.File, verdict)
				missed.Lock()
				defer missed.Unlock()
				missed.verdicts = append(missed.verdicts, fmt.Sprintf("%s, in %s: %s", m.Name, m.File, verdict))
			}
		})
	}
}

func third(t *testing.T) int {
	t.Helper()
	s := os.Getenv("SEMEL_MUSEUM_THIRD")
	if s == "" {
		return time.Now().UTC().YearDay() % 3
	}
	n, err := strconv.Atoi(s)
	if err != nil || n < 0 || n > 2 {
		t.Fatalf("SEMEL_MUSEUM_THIRD is %q; it must be 0, 1 or 2", s)
	}
	return n
}

// baselines are for each package what the tests that its mutants mean do without
// any of them: run when the first is judged.
func baselines(root string, mutants []Mutant) map[string]func() (report, error) {
	runs := map[string][]string{}
	for _, m := range mutants {
		runs[m.Package] = append(runs[m.Package], m.Run)
	}
	base := map[string]func() (report, error){}
	for dir, of := range runs {
		base[dir] = sync.OnceValues(func() (report, error) {
			rep, err := goTest(context.Background(), filepath.Join(root, filepath.FromSlash(dir)), "", anyOf(of))
			if err == nil && !rep.built {
				err = fmt.Errorf("%s does not build without a mutant:\n%s", dir, rep.output)
			}
			return rep, err
		})
	}
	return base
}

// judge says whether the mutant is caught, and by what.
func judge(t *testing.T, root string, m *Mutant, without func() (report, error)) (verdict string, caught bool) {
	t.Helper()
	meant, err := newSelector(m.Run)
	if err != nil {
		t.Fatal(err)
	}
	base, err := without()
	if err != nil {
		t.Fatal(err)
	}
	if len(meant.among(base.passed)) == 0 {
		return fmt.Sprintf("NO TEST of %s that passes is selected by -run %q", m.Package, m.Run), false
	}
	if failed := meant.among(base.failed); len(failed) > 0 {
		return fmt.Sprintf("FAILS WITHOUT THE MUTANT: %s", strings.Join(leaves(failed), ", ")), false
	}
	o, err := overlay(t.TempDir(), root, m)
	if err != nil {
		return err.Error(), false
	}
	rep, err := goTest(t.Context(), filepath.Join(root, filepath.FromSlash(m.Package)), o, m.Run)
	switch {
	case err != nil:
		t.Fatal(err)
	case !rep.built:
		return "DOES NOT COMPILE:\n" + rep.output, false
	case len(rep.failed) == 0:
		return fmt.Sprintf("SURVIVED; the rule needs a test: -run %q passes with this bug", m.Run), false
	}
	verdict = strings.Join(leaves(rep.failed), ", ")
	if rep.how != "" {
		verdict += " (" + rep.how + ")"
	}
	return verdict, true
}

// table lists what became of each mutant.
func table(mutants []Mutant, rows map[string]string) string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 1, ' ', tabwriter.Debug)
	fmt.Fprintf(w, "\n mutant\t rule\t parent\t caught by\n")
	for _, m := range mutants {
		verdict, _, _ := strings.Cut(rows[m.Name], "\n")
		fmt.Fprintf(w, " %s\t %s\t %s\t %s\n", m.Name, m.Rule, m.Parent, verdict)
	}
	_ = w.Flush()
	return fmt.Sprintf("%s %d mutants, %d judged\n", b.String(), len(mutants), len(rows))
}
