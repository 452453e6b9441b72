package museum

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestTheOutputOfGoTestIsRead(t *testing.T) {
	for name, c := range map[string]struct {
		stream string
		want   report
	}{
		"passes": {
			`{"Action":"run","Test":"TestA"}` + "\n" + `{"Action":"pass","Test":"TestA"}` + "\n" + `{"Action":"pass"}`,
			report{built: true, passed: []string{"TestA"}},
		},
		"a subtest fails": {
			`{"Action":"run","Test":"TestA"}` + "\n" + `{"Action":"run","Test":"TestA/b"}` + "\n" +
				`{"Action":"fail","Test":"TestA/b"}` + "\n" + `{"Action":"fail","Test":"TestA"}` + "\n" + `{"Action":"fail"}`,
			report{built: true, failed: []string{"TestA", "TestA/b"}},
		},
		"a skipped test is neither": {
			`{"Action":"run","Test":"TestA"}` + "\n" + `{"Action":"skip","Test":"TestA"}`,
			report{built: true},
		},
		"does not build": {
			`{"ImportPath":"x","Action":"build-output","Output":"x.go:1: syntax error\n"}` + "\n" +
				`{"ImportPath":"x","Action":"build-fail"}` + "\n" + `{"Action":"fail","FailedBuild":"x"}`,
			report{},
		},
		"times out": {
			`{"Action":"run","Test":"TestA"}` + "\n" + `{"Action":"output","Test":"TestA","Output":"panic: test timed out after 60s\n"}` + "\n" + `{"Action":"fail"}`,
			report{built: true, failed: []string{"TestA"}, how: "timeout"},
		},
		"hangs in a bubble": {
			`{"Action":"run","Test":"TestA"}` + "\n" + `{"Action":"output","Output":"panic: deadlock: all goroutines in bubble are blocked\n"}` + "\n" + `{"Action":"fail","Test":"TestA"}`,
			report{built: true, failed: []string{"TestA"}, how: "deadlock"},
		},
	} {
		got := parse([]byte(c.stream))
		if got.built != c.want.built || got.how != c.want.how || !slices.Equal(got.passed, c.want.passed) || !slices.Equal(got.failed, c.want.failed) {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
	if got := leaves([]string{"TestA", "TestA/b", "TestAB"}); !slices.Equal(got, []string{"TestA/b", "TestAB"}) {
		t.Errorf("the leaves are %q", got)
	}
}

// The museum itself is tried on a small module: a bug that is caught, one that
// survives, one that does not compile, and one whose tests do not exist.
func TestTheJudgeTellsCaughtFromSurvived(t *testing.T) {
	root := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":      "module m\n\ngo 1.26\n",
		"add.go":      "package m\n\nfunc add(a, b int) int { return a + b }\n\nfunc idle() int { return 1 }\n",
		"add_test.go": "package m\n\nimport \"testing\"\n\nfunc TestAdd(t *testing.T) {\n\tif idle(); add(2, 3) != 5 {\n\t\tt.Fail()\n\t}\n}\n\nfunc TestBroken(t *testing.T) { t.Fail() }\n",
	} {
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	base := baselines(root, []Mutant{{Package: ".", Run: "TestAdd"}, {Package: ".", Run: "TestBroken|TestAdd"}})["."]
	for name, c := range map[string]struct {
		m       Mutant
		caught  bool
		verdict string
	}{
		"caught":             {Mutant{Old: "a + b", New: "a - b", Run: "TestAdd"}, true, "TestAdd"},
		"a panic":            {Mutant{Old: "a + b", New: "a / (b - b)", Run: "TestAdd"}, true, "TestAdd (panic)"},
		"survived":           {Mutant{Old: "return 1", New: "return 2", Run: "TestAdd"}, false, "SURVIVED"},
		"does not compile":   {Mutant{Old: "a + b", New: "a +", Run: "TestAdd"}, false, "DOES NOT COMPILE"},
		"no such test":       {Mutant{Old: "a + b", New: "a - b", Run: "TestSub"}, false, "NO TEST"},
		"broken beforehand":  {Mutant{Old: "a + b", New: "a - b", Run: "TestBroken|TestAdd"}, false, "FAILS WITHOUT"},
		"the code has moved": {Mutant{Old: "a * b", New: "a - b", Run: "TestAdd"}, false, "occurs 0 times"},
	} {
		c.m.Name, c.m.File, c.m.Package = name, "add.go", "."
		if verdict, caught := judge(t, root, &c.m, base); caught != c.caught || !strings.Contains(verdict, c.verdict) {
			t.Errorf("%s: caught %v, %s", name, caught, verdict)
		}
	}
}
