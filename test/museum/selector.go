package museum

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// selector picks names of tests as go test -run does, for patterns without a
// slash inside of brackets: one regular expression for each level.
type selector []*regexp.Regexp

func newSelector(run string) (selector, error) {
	var s selector
	for level := range strings.SplitSeq(strings.ReplaceAll(run, " ", "_"), "/") {
		re, err := regexp.Compile(level)
		if err != nil {
			return nil, fmt.Errorf("-run %q: %w", run, err)
		}
		s = append(s, re)
	}
	return s, nil
}

// picks reports whether the test is one of those meant: a test above the last
// level of the pattern is only on the way there.
func (s selector) picks(test string) bool {
	names := strings.Split(test, "/")
	if len(names) < len(s) {
		return false
	}
	for i, re := range s {
		if !re.MatchString(names[i]) {
			return false
		}
	}
	return true
}

// among are the names that s picks.
func (s selector) among(names []string) []string {
	var picked []string
	for _, n := range names {
		if s.picks(n) {
			picked = append(picked, n)
		}
	}
	return picked
}

// anyOf is a pattern for the tests that any of some mean, with all below them.
func anyOf(runs []string) string {
	var firsts []string
	for _, run := range runs {
		first, _, _ := strings.Cut(run, "/")
		firsts = append(firsts, "(?:"+first+")")
	}
	slices.Sort(firsts)
	return strings.Join(slices.Compact(firsts), "|")
}
