package museum

import (
	"fmt"
	"regexp"
	"slices"
	"testing"

	"github.com/semel-go/semel/test/internal/repo"
)

// Quick: it shows a mutant that the code has left behind, without a build.
func TestMutants_CodeOfToday_EachFits(t *testing.T) {
	root, err := repo.Root()
	if err != nil {
		t.Fatal(err)
	}
	code := newTree(root)
	seen := map[string]bool{}
	for _, m := range All() {
		if seen[m.Name] {
			t.Errorf("two mutants have the name %q", m.Name)
		}
		seen[m.Name] = true
		if err := m.check(); err != nil {
			t.Error(err)
		}
		if _, err := code.locate(&m); err != nil {
			t.Errorf("mutant %q: %v", m.Name, err)
		}
	}
}

// Each rule has an exhibit, and so has each known bug of other projects
// (M1 to M24 of the list that the project began with) that can be built into
// what there is: M22, the highest offset committed, needs an adapter of a log.
func TestRules_OfTheProtocol_EachHasAMutant(t *testing.T) {
	has := map[string]bool{}
	for _, m := range All() {
		has[m.Rule] = true
		if known := regexp.MustCompile(`^M\d+`).FindString(m.Parent); known != "" {
			has[known] = true
		}
	}
	for rule := range rules {
		if !has[rule] {
			t.Errorf("no exhibit breaks %s", rule)
		}
	}
	for n := 1; n <= 24; n++ {
		if known := fmt.Sprintf("M%d", n); !has[known] && n != 22 {
			t.Errorf("no exhibit is %s", known)
		}
	}
}

func TestRun_Level_SelectsMutants(t *testing.T) {
	names := []string{"TestA", "TestA/claim", "TestA/claim/of_a_pack", "TestA/swap", "TestAB", "TestAB/claim"}
	for run, want := range map[string][]string{
		"TestA":              names,
		"TestA$/claim":       {"TestA/claim", "TestA/claim/of_a_pack"},
		"TestA//of a pack":   {"TestA/claim/of_a_pack"},
		"TestA$/(swap|none)": {"TestA/swap"},
		"TestAB|TestA$/swap": {"TestA/swap", "TestAB", "TestAB/claim"},
		"TestC":              nil,
	} {
		s, err := newSelector(run)
		if err != nil {
			t.Fatal(err)
		}
		if got := s.among(names); !slices.Equal(got, want) {
			t.Errorf("-run %q selects %q, want %q", run, got, want)
		}
	}
	if got, want := anyOf([]string{"TestB", "TestA$/claim", "TestB"}), "TestA$/claim|TestB"; got != want {
		t.Errorf("any of them is %q, want %q", got, want)
	}
	if _, err := newSelector("Test("); err == nil {
		t.Error("a pattern that is none is no error")
	}
}
