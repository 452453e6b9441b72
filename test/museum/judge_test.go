package museum

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const sampleCode = `package m

func add(a, b int) int { return a + b }

func idle() int { return 1 }

func rest() (n int) {
	defer rescue(&n)
	panic("out of order")
}

func rescue(n *int) {
	if recover() != nil {
		*n = 7
	}
}

func twice(n *int) { *n *= 2 }

type pair[T any] struct{ first, second T }

func (p *pair[T]) swap() { p.first, p.second = p.second, p.first }

func (p pair[_]) size(int) int { return 2 }

const (
	columns = "a, b"
	query   = "SELECT " + columns + " FROM t"
	table   = "t"
	other   = table + "u"
)

var texts = []string{"one", "two"}

var limit = 4

func luck() int { return 1 }
`

const sampleTests = `package m

import (
	"os"
	"testing"
)

func TestAdd(t *testing.T) {
	if idle(); add(2, 3) != 5 {
		t.Fail()
	}
}

func TestOthers(t *testing.T) {
	n := 2
	twice(&n)
	p := pair[int]{1, 2}
	p.swap()
	if n != 4 || p.first != 2 || p.size(1) != 2 || rest() != 7 || limit != 4 || query != "SELECT a, b FROM t" || other != "tu" || texts[1] != "two" {
		t.Fail()
	}
}

func TestBroken(t *testing.T) { t.Fail() }

func TestRace(t *testing.T) {
	if luck() == 1 {
		return
	}
	if _, err := os.Stat("ran"); err == nil {
		t.Fatal("second run")
	}
	if err := os.WriteFile("ran", nil, 0o600); err != nil {
		t.Fatal(err)
	}
}
`

func newModule(t *testing.T) (root string) {
	t.Helper()
	root = t.TempDir()
	for name, text := range map[string]string{"go.mod": "module m\n\ngo 1.26\n", "code.go": sampleCode, "code_test.go": sampleTests} {
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func TestJury_SampleModule_TellsCaughtFromSurvived(t *testing.T) {
	mutants := []Mutant{
		{Name: "caught", Func: "add", Old: "a + b", New: "a - b", Run: "TestAdd"},
		{Name: "caught without result", Func: "twice", Old: "2", New: "3", Run: "TestOthers"},
		{Name: "caught in generic method", Func: "(*pair).swap", Old: "p.second, p.first", New: "p.first, p.second", Run: "TestOthers"},
		{Name: "caught without names of arguments", Func: "pair.size", Old: "2", New: "3", Run: "TestOthers"},
		{Name: "caught in function that recovers", Func: "rescue", Old: "7", New: "8", Run: "TestOthers"},
		{Name: "caught in literal of variable", Func: "var texts", Old: "two", New: "three", Run: "TestOthers"},
		{Name: "caught in constant of other constant", Func: "const table", Old: `"t"`, New: `"v"`, Run: "TestOthers"},
		{Name: "caught in constant", Func: "const query", Old: "FROM t", New: "FROM u", Run: "TestOthers"},
		{Name: "caught in variable", Func: "var limit", Old: "4", New: "5", Run: "TestOthers"},
		{Name: "panic", Func: "add", Old: "a + b", New: "a / (b - b)", Run: "TestAdd"},
		{Name: "escapes one run", Func: "luck", Old: "1", New: "2", Run: "TestRace"},
		{Name: "survived", Func: "idle", Old: "return 1", New: "return 2", Run: "TestAdd"},
		{Name: "harmless where recover matters", Func: "rescue", Old: "recover()", New: "any(recover())", Run: "TestOthers"},
		{Name: "does not compile", Func: "add", Old: "a + b", New: "a + c", Run: "TestAdd"},
		{Name: "does not parse", Func: "idle", Old: "1", New: "1 +", Run: "TestAdd"},
		{Name: "no such test", Func: "add", Old: "a + b", New: "a - b", Run: "TestSub"},
		{Name: "fails beforehand", Func: "add", Old: "a + b", New: "a - b", Run: "TestBroken|TestAdd"},
		{Name: "code has changed", Func: "add", Old: "a * b", New: "a - b", Run: "TestAdd"},
		{Name: "function is gone", Func: "sum", Old: "a + b", New: "a - b", Run: "TestAdd"},
	}
	want := map[string]verdict{
		"panic":                          {true, "TestAdd (panic)"},
		"escapes one run":                {true, "TestRace, in run 2"},
		"survived":                       {false, "SURVIVED"},
		"harmless where recover matters": {false, "SURVIVED"},
		"does not compile":               {false, "DOES NOT COMPILE"},
		"does not parse":                 {false, "DOES NOT COMPILE"},
		"no such test":                   {false, "NO TEST"},
		"fails beforehand":               {false, "FAILS WITHOUT"},
		"code has changed":               {false, "occurs 0 times"},
		"function is gone":               {false, "declares sum 0 times"},
	}
	var pointers []*Mutant
	for i := range mutants {
		mutants[i].Dir, mutants[i].Package = ".", "."
		pointers = append(pointers, &mutants[i])
	}
	got := map[string]verdict{}
	verdicts := make(chan func(), len(mutants))
	err := newJury(newModule(t), t.TempDir(), make([]slot, 2)).judge(t.Context(), pointers, func(m *Mutant, v verdict) {
		verdicts <- func() { got[m.Name] = v }
	})
	if err != nil {
		t.Fatal(err)
	}
	close(verdicts)
	for keep := range verdicts {
		keep()
	}
	for _, m := range mutants {
		w, special := want[m.Name]
		if !special {
			w = verdict{true, m.Run}
		}
		if g := got[m.Name]; g.caught != w.caught || !strings.Contains(g.text, w.text) {
			t.Errorf("%s: caught %v, %s; want %v, %s", m.Name, g.caught, g.text, w.caught, w.text)
		}
	}
}

func TestLocate_CommentsAndFormatDiffer_FindsOld(t *testing.T) {
	root := t.TempDir()
	code := "package m\n\nfunc f() int {\n\ta := 1 // one\n\t/* two */ b :=\n\t\t2\n\treturn a + b\n}\n\nfunc g() int { a := 1; b := 2; return b - a }\n\n" +
		"const query = `SELECT a,\n\tb FROM t`\n"
	for name, text := range map[string]string{"go.mod": "module m\n", "code.go": code} {
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range map[string]struct {
		m    Mutant
		want string // the text that is found, or a part of the error
	}{
		"comments and lines": {Mutant{Func: "f", Old: "a := 1\nb := 2", New: "x"}, "a := 1 // one\n\t/* two */ b :=\n\t\t2"},
		"comment in Old":     {Mutant{Func: "f", Old: "b := 2 // second", New: "x"}, "b :=\n\t\t2"},
		"white space in SQL": {Mutant{Func: "const query", Old: "a, b  FROM", New: "x"}, "a,\n\tb FROM"},
		"part of a word":     {Mutant{Func: "f", Old: "retur", New: "x"}, "occurs 0 times"},
		"twice":              {Mutant{Func: "f", Old: "a", New: "x"}, "occurs 2 times"},
		"other function":     {Mutant{Func: "g", Old: "a + b", New: "x"}, "occurs 0 times"},
		"white space only":   {Mutant{Func: "f", Old: " ", New: "x"}, "occurs 0 times"},
	} {
		c.m.Dir = "."
		e, err := newTree(root).locate(&c.m)
		switch {
		case err != nil && !strings.Contains(err.Error(), c.want):
			t.Errorf("%s: %v, want %q", name, err, c.want)
		case err == nil && e.source.text[e.start:e.end] != c.want:
			t.Errorf("%s: found %q, want %q", name, e.source.text[e.start:e.end], c.want)
		}
	}
}

func TestCheck_FieldIsMissing_Fails(t *testing.T) {
	whole := Mutant{Name: "m", Rule: "rule 1", Dir: ".", Func: "f", Old: "a", New: "b", Package: "p", Run: "TestA"}
	if err := whole.check(); err != nil {
		t.Error(err)
	}
	for field, spoil := range map[string]func(*Mutant){
		"Name": func(m *Mutant) { m.Name = "" },
		"Rule": func(m *Mutant) { m.Rule = "rule 99" },
		"Func": func(m *Mutant) { m.Func = "" },
		"Old":  func(m *Mutant) { m.Old = "" },
		"New":  func(m *Mutant) { m.New = m.Old },
		"Run":  func(m *Mutant) { m.Run = "" },
	} {
		m := whole
		if spoil(&m); m.check() == nil {
			t.Errorf("a mutant with a wrong %s is no error", field)
		}
	}
}

func TestParse_OutputOfTests_ReadsResults(t *testing.T) {
	for name, c := range map[string]struct {
		output string
		want   report
	}{
		"passes": {"\x16=== RUN   TestA\n\x16--- PASS: TestA (0.00s)\nPASS\n", report{passed: []string{"TestA"}}},
		"subtest fails": {
			"\x16=== RUN   TestA\n\x16=== RUN   TestA/b\n\x16--- FAIL: TestA/b (0.00s)\n\x16--- FAIL: TestA (0.00s)\nFAIL\n",
			report{failed: []string{"TestA", "TestA/b"}},
		},
		"skipped test is neither":        {"\x16=== RUN   TestA\n\x16--- SKIP: TestA (0.00s)\nPASS\n", report{}},
		"test prints the line of a test": {"\x16=== RUN   TestA\n--- FAIL: TestB (0.00s)\ntext\x16--- PASS: TestA (0.00s)\n", report{passed: []string{"TestA"}}},
		"times out":                      {"\x16=== RUN   TestA\npanic: test timed out after 60s\n", report{failed: []string{"TestA"}, how: "timeout"}},
		"hangs in a bubble":              {"\x16=== RUN   TestA\npanic: deadlock: all goroutines in bubble are blocked\n", report{failed: []string{"TestA"}, how: "deadlock"}},
	} {
		got := parse(c.output)
		if got.how != c.want.how || !slices.Equal(got.passed, c.want.passed) || !slices.Equal(got.failed, c.want.failed) {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
	if got := leaves([]string{"TestA", "TestA/b", "TestAB"}); !slices.Equal(got, []string{"TestA/b", "TestAB"}) {
		t.Errorf("the leaves are %q", got)
	}
}
