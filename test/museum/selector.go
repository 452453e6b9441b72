package museum

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// selector picks names of tests as go test -run does: a pattern has alternatives, and each
// of them one regular expression for each level.
type selector [][]*regexp.Regexp

func newSelector(run string) (selector, error) {
	s := selector{nil}
	for part, end := range parts(strings.ReplaceAll(run, " ", "_")) {
		re, err := regexp.Compile(part)
		if err != nil {
			return nil, fmt.Errorf("-run %q: %w", run, err)
		}
		last := len(s) - 1
		if s[last] = append(s[last], re); end == '|' {
			s = append(s, nil)
		}
	}
	return s, nil
}

// parts splits a pattern at each slash or bar outside of brackets. The second value is that
// slash or bar, and 0 for the last part.
func parts(pattern string) func(yield func(part string, end rune) bool) {
	return func(yield func(string, rune) bool) {
		begin, open := 0, 0
		for i, r := range pattern {
			switch r {
			case '(', '[':
				open++
			case ')', ']':
				open--
			case '/', '|':
				if open > 0 {
					continue
				}
				if !yield(pattern[begin:i], r) {
					return
				}
				begin = i + 1
			}
		}
		yield(pattern[begin:], 0)
	}
}

// picks reports whether the test is one of those meant: a test above the last
// level of the pattern is only on the way there.
func (s selector) picks(test string) bool {
	names := strings.Split(test, "/")
	return slices.ContainsFunc(s, func(levels []*regexp.Regexp) bool {
		if len(names) < len(levels) {
			return false
		}
		for i, re := range levels {
			if !re.MatchString(names[i]) {
				return false
			}
		}
		return true
	})
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

// anyOf is a pattern for the tests that any of some mean.
func anyOf(runs []string) string {
	runs = slices.Clone(runs)
	slices.Sort(runs)
	return strings.Join(slices.Compact(runs), "|")
}
