package model

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/semel-go/semel/test/internal/figure"
)

// need skips the test, and says so, if a tool is missing. Where everything is
// required that is a failure.
func need(t *testing.T, tools ...string) {
	t.Helper()
	for _, tool := range tools {
		if _, err := exec.LookPath(tool); err == nil {
			continue
		}
		if os.Getenv("SEMEL_TEST_REQUIRE") != "" {
			t.Fatalf("%s is missing; on Debian: apt-get install -y spin gcc", tool)
		}
		t.Skipf("NOT CHECKED: the model of the protocol needs %s; on Debian: apt-get install -y spin gcc", tool)
	}
}

// row is one line of the table that is printed at the end.
type row struct {
	variant
	callers int
	verdict
}

// check asks each variant, for 3 callers and in the long form for 4, and
// returns the answers.
func check(t *testing.T, vs []variant) []row {
	t.Helper()
	need(t, "spin", "gcc")
	callers := []int{3}
	if figure.Long() {
		callers = append(callers, 4)
	}
	var mu sync.Mutex
	var rows []row
	t.Run("of", func(t *testing.T) { // ends when all that run in parallel have
		for _, n := range callers {
			for _, v := range vs {
				t.Run(fmt.Sprintf("%d callers/%s", n, v.name), func(t *testing.T) {
					t.Parallel()
					got := search(t, &v, n)
					if why := got.wrong(&v, n); why != "" {
						t.Errorf("%s\n%s", why, got.output)
					}
					mu.Lock()
					defer mu.Unlock()
					rows = append(rows, row{v, n, got})
				})
			}
		}
	})
	slices.SortFunc(rows, func(a, b row) int {
		return strings.Compare(fmt.Sprint(a.callers, a.file, a.name), fmt.Sprint(b.callers, b.file, b.name))
	})
	return rows
}

// print writes the table, and returns the sum of all states.
func print(t *testing.T, rows []row) (states int64) {
	t.Helper()
	var b strings.Builder
	fmt.Fprintf(&b, "\n%-60s %-20s %7s %-30s %10s %6s %6s\n", "variant", "rule", "callers", "verdict", "states", "s", "MB")
	for _, r := range rows {
		said := "holds"
		if r.violated != "" {
			said = "violates " + r.violated
		}
		states += r.states
		fmt.Fprintf(&b, "%-60s %-20s %7d %-30s %10d %6.1f %6.0f\n", r.name, r.rule, r.callers, said, r.states, r.took.Seconds(), r.megabytes)
	}
	t.Log(b.String())
	return states
}

func report(t *testing.T, claim string, control bool, rows []row) {
	t.Helper()
	states := print(t, rows)
	var failures, slow int64
	for _, r := range rows {
		if r.violated != "" {
			failures++
		}
		slow = max(slow, int64(r.took/time.Millisecond))
	}
	figure.Report(t, figure.Figure{
		Claim: claim, Where: "Promela model", Trials: int64(len(rows)), Failures: failures, Control: control,
		Detail: fmt.Sprintf("%d states explored, the slowest search %d ms", states, slow),
	})
}

func TestProtocol_EveryState_RulesHold(t *testing.T) {
	report(t, "each rule of the protocol holds in every order of steps", false, check(t, holds))
}

func TestBugs_EachFound(t *testing.T) {
	report(t, "a protocol without one of its comparisons breaks the rule", true, check(t, bugs))
}

func TestReachability_EachStateReached(t *testing.T) {
	report(t, "what is claimed never to happen happens", true, check(t, reached))
}
