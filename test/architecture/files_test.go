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
	mostLines   = 500
	medianLines = 150
)

func TestFilesAreShort(t *testing.T) {
	var sizes []int
	for _, f := range goFiles(t) {
		n := strings.Count(f.Text, "\n")
		if n > mostLines {
			t.Errorf("%s:%d: has %d lines; at most %d", f.Name, mostLines+1, n, mostLines)
		}
		if !f.IsTest() {
			sizes = append(sizes, n)
		}
	}
	slices.Sort(sizes)
	if median := sizes[len(sizes)/2]; median >= medianLines {
		t.Errorf("half of the %d Go files that are no tests have %d lines or more; the median must be below %d", len(sizes), median, medianLines)
	}
}

// A test waits for an event. Only in a bubble of synctest is sleeping waiting.
func TestTestsDoNotSleep(t *testing.T) {
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

// unwanted is what no file of the repository may hold. The patterns are put
// together so that this file does not hold them either.
var unwanted = map[string]*regexp.Regexp{
	"an open end":                     regexp.MustCompile(`\b(TO` + `DO|FIX` + `ME)\b`),
	"an absolute path of one machine": regexp.MustCompile(`(^|[^\w.~*-])/(wo` + `rk|ro` + `ot|ho` + `me)/\w`),
}

func TestFilesHoldNoOpenEndsAndNoPathsOfOneMachine(t *testing.T) {
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

func TestUnwantedTextIsFound(t *testing.T) {
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
