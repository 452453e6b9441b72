package docs

import (
	"regexp"
	"testing"

	"github.com/semel-go/semel/test/internal/repo"
)

var (
	testName = regexp.MustCompile("`(Test[A-Za-z0-9_]+)`")
	testFunc = regexp.MustCompile(`(?m)^func (Test[A-Za-z0-9_]+)\(t \*testing\.T\)`)
)

// Each guarantee, each kind of fault and each pattern names the tests that show it, and
// these tests must exist.
func TestGuarantees_NamedTestsExist(t *testing.T) {
	files, err := repo.Files(".go")
	if err != nil {
		t.Fatal(err)
	}
	exist := map[string]bool{}
	for i := range files {
		if files[i].IsTest() {
			for _, m := range testFunc.FindAllStringSubmatch(files[i].Text, -1) {
				exist[m[1]] = true
			}
		}
	}
	named, rows := 0, 0
	for _, p := range pages(t, "docs/guarantees.md", "docs/faults.md", "docs/patterns.md") {
		for i, line := range p.prose {
			found := testName.FindAllStringSubmatch(line, -1)
			if len(line) > 0 && line[0] == '|' {
				if rows++; len(found) == 0 && !regexp.MustCompile(`^\|(-|\s*guaranteed|\s*kind|\s*pattern)`).MatchString(line) {
					t.Errorf("%s:%d: the line names no test", p.name, i+1)
				}
			}
			for _, m := range found {
				if named++; !exist[m[1]] {
					t.Errorf("%s:%d: there is no test %s", p.name, i+1, m[1])
				}
			}
		}
	}
	if named < 30 || rows < 15 {
		t.Errorf("%d tests are named in %d rows: the page was not read as it is written", named, rows)
	}
}
