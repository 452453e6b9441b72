package model

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const finished = `Full statespace search for:
State-vector 96 byte, depth reached 206, errors: 0
   805149 states, stored
  173.184	total actual memory usage
unreached in proctype Caller
	caller.pml:9, state 15, "printf('parked')"
unreached in init
	(0 of 12 states)
`

const broken = `pan:1: assertion violated one_outcome (at depth 130)
Warning: Search not completed
Full statespace search for:
State-vector 96 byte, depth reached 158, errors: 1
      435 states, stored
`

func TestVerdict_SearchIncomplete_NotCounted(t *testing.T) {
	hold, bug := &variant{marks: []string{"replayed"}}, &variant{fails: "one_outcome"}
	for name, c := range map[string]struct {
		of    *variant
		out   string
		right bool
	}{
		"a finished search":                        {hold, finished, true},
		"a place that was not reached":             {&variant{marks: []string{"parked"}}, finished, false},
		"a place that the model does not have":     {&variant{marks: []string{"resolved"}}, finished, false},
		"a search that was cut off":                {hold, "error: max search depth too small\n" + finished, false},
		"no memory":                                {hold, "pan: reached -DMEMLIM bound: out of memory\n" + finished, false},
		"a sample of the states":                   {hold, strings.Replace(finished, "Full statespace", "Bit statespace", 1), false},
		"a deadlock":                               {hold, strings.Replace(finished, "errors: 0", "errors: 1", 1), false},
		"nothing at all":                           {hold, "", false},
		"no list of what was not reached":          {hold, finished[:strings.Index(finished, "unreached")], false},
		"a violation where none may be":            {hold, broken, false},
		"the violation that was to be found":       {bug, broken, true},
		"another violation":                        {&variant{fails: "told_alike"}, broken, false},
		"no violation where one was to be found":   {bug, finished, false},
		"a deadlock where a violation had to come": {bug, strings.Replace(broken, "assertion violated one_outcome", "invalid end state", 1), false},
	} {
		got := parse(c.out)
		got.steps = "printf('parked') printf('replayed')"
		if why := got.wrong(c.of, 3); (why == "") != c.right {
			t.Errorf("%s: %q", name, why)
		}
	}
}

// A name that no model knows would silently set nothing, or never be missed.
func TestVariants_NamesExistInModels(t *testing.T) {
	var text string
	files, err := filepath.Glob("*.pml")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		text += string(b)
	}
	has := func(pattern string) bool { return regexp.MustCompile(pattern).MatchString(text) }
	var set []string
	for _, v := range slices.Concat(holds, bugs, reached) {
		for _, m := range append(v.set, v.four...) {
			name, _, _ := strings.Cut(m, "=")
			set = append(set, name)
			if !has(`(?m)^#(ifdef|ifndef|if|elif|define).*\b` + name + `\b`) {
				t.Errorf("%s: no model has the macro %s", v.name, name)
			}
		}
		for _, m := range slices.Concat(v.marks, v.rare) {
			if !has(`\bmark\(` + m + `\)`) {
				t.Errorf("%s: no model has the mark %s", v.name, m)
			}
		}
		if v.fails != "" && v.fails != "never_reached" && !has(`\brule\(`+v.fails+`,`) {
			t.Errorf("%s: no model has the rule %s", v.name, v.fails)
		}
	}
	for _, m := range regexp.MustCompile(`\bBUG_\w+`).FindAllString(text, -1) {
		if m != "BUG_" && !slices.Contains(set, m) {
			t.Errorf("no variant has the bug %s", m)
		}
	}
}

// A rule that no bug breaks may be one that cannot be broken.
func TestRules_EachBrokenByABug(t *testing.T) {
	for _, f := range []string{"claim.pml", "atomic.pml", "lease.pml", "step.pml", "durable.pml"} {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`#define R_(\w+)`).FindAllSubmatch(text, -1) {
			rule := string(m[1])
			if !slices.ContainsFunc(bugs, func(v variant) bool { return v.fails == rule }) {
				t.Errorf("%s: no bug breaks the rule %s", f, rule)
			}
		}
	}
}

func TestBudget_Smaller_ReplacesLarger(t *testing.T) {
	v := &variant{set: []string{"A=2", "B"}, four: []string{"A=0", "C=1"}}
	if got := macros(v, 3); !slices.Equal(got, []string{"A=2", "B"}) {
		t.Errorf("3 callers: %v", got)
	}
	if got := macros(v, 4); !slices.Equal(got, []string{"A=0", "B", "C=1"}) {
		t.Errorf("4 callers: %v", got)
	}
}
