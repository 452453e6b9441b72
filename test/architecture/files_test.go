package architecture

import (
	"go/ast"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/semel-go/semel/test/internal/repo"
)

// A file is one idea.
const (
	mostLines    = 300
	longestLines = 500 // of the files that have a reason
	medianLines  = 150
)

// manyTests is the reason for which a file may have more than mostLines.
const manyTests = "many short tests of one subject"

// longFiles are the files with a reason.
var longFiles = map[string]string{
	"cmd/semel/internal/cli/inspect_test.go":         manyTests,
	"cmd/semel/internal/verify/sick_test.go":         manyTests,
	"consume/drain_test.go":                          manyTests,
	"consume/outage_test.go":                         manyTests,
	"consume/regression_test.go":                     manyTests,
	"consume/semelamqp/puppet_test.go":               manyTests,
	"consume/semelkafka/kafkapg/offsets_test.go":     manyTests,
	"consume/semelkafka/kafkatest/bankfault_test.go": manyTests,
	"consume/semelkafka/kafkatest/compare_test.go":   manyTests,
	"consume/semelkafka/kafkatest/faults_test.go":    manyTests,
	"consume/serve_test.go":                          manyTests,
	"consume/settle_test.go":                         manyTests,
	"semelhttp/body_test.go":                         manyTests,
	"semelhttp/parity_test.go":                       manyTests,
	"semelhttp/stream_test.go":                       manyTests,
	"semelhttp/transport_test.go":                    manyTests,
	"store/nearcache/store_test.go":                  manyTests,
	"store/pgstore/atomic_test.go":                   manyTests,
	"store/pgstore/batch_test.go":                    manyTests,
	"store/pgstore/dosql_test.go":                    manyTests,
	"store/pgstore/lock_test.go":                     manyTests,
	"store/pgstore/prefetch_test.go":                 manyTests,
	"store/pgstore/regression_atomic_test.go":        manyTests,
	"store/sqlitestore/atomictx_test.go":             manyTests,
}

func TestFiles_Lines_WithinLimit(t *testing.T) {
	var sizes []int
	for _, f := range goFiles(t) {
		n, limit := strings.Count(f.Text, "\n"), mostLines
		reason := longFiles[f.Name]
		if reason != "" {
			limit = longestLines
		}
		if n > limit {
			t.Errorf("%s:%d: has %d lines; at most %d", f.Name, limit+1, n, limit)
		}
		if reason != "" && n <= mostLines {
			t.Logf("%s: has %d lines; its entry in longFiles is not needed any more", f.Name, n)
		}
		if !f.IsTest() {
			sizes = append(sizes, n)
		}
	}
	slices.Sort(sizes)
	if median := sizes[len(sizes)/2]; median >= medianLines {
		t.Errorf("half of the %d Go files that are not tests have %d lines or more; the median must be below %d", len(sizes), median, medianLines)
	}
}

// A test waits for an event. Only in a bubble of synctest is sleeping waiting.
func TestTestFiles_DoNotSleep(t *testing.T) {
	for _, f := range goFiles(t) {
		if !f.IsTest() || f.imports("testing/synctest") {
			continue
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			sel, ok := n.(*ast.SelectorExpr)
			if !ok || sel.Sel.Name != "Sleep" {
				return true
			}
			if pkg, ok := sel.X.(*ast.Ident); ok && pkg.Name == "time" {
				t.Errorf("%s: a test sleeps; wait for the event, or use testing/synctest", f.at(sel))
			}
			return true
		})
	}
}

// unwanted are texts that no file of the repository may contain. The patterns are
// joined from parts so that this file does not contain them.
var unwanted = map[string]*regexp.Regexp{
	"an open end":                     regexp.MustCompile(`\b(TO` + `DO|FIX` + `ME)\b`),
	"an absolute path of one machine": regexp.MustCompile(`(^|[^\w.~*-])/(wo` + `rk|ro` + `ot|ho` + `me)/\w`),
}

func TestFiles_NoOpenTasksAndNoMachinePaths(t *testing.T) {
	files, err := repo.Files("")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		for what, re := range unwanted {
			for _, at := range re.FindAllStringIndex(f.Text, -1) {
				t.Errorf("%s: holds %s: %q", f.At(at[1]-1), what, strings.TrimSpace(f.Text[at[0]:at[1]]))
			}
		}
	}
}

func TestUnwantedPatterns_MatchSamples(t *testing.T) {
	for text, want := range map[string]bool{
		"// TO" + "DO: later":             true,
		"see /ho" + "me/ann/x":            true,
		"\"/wo" + "rk/main\"":             true,
		"https://example.org/ho" + "me/x": false,
		"./wo" + "rk/x":                   false,
		"a todo list, /work":              false,
	} {
		found := false
		for _, re := range unwanted {
			found = found || re.MatchString(text)
		}
		if found != want {
			t.Errorf("%q: found %v", text, found)
		}
	}
}
