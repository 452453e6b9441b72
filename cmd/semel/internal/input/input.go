// Package input reports mistakes in input of a user: an option, a file, an
// address. A command with such a mistake ends with exit code 2.
package input

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Error is one mistake. It is printed in one line.
type Error struct {
	Field string // the place of the input: "--lease", "semel.yaml:7: lease"
	Value string // the value; empty if it is missing or secret
	Want  string // the remedy: limits, choices, an example
}

// Error names the field, the value and the remedy.
func (e *Error) Error() string {
	if e.Value == "" {
		return e.Field + ": " + e.Want
	}
	const most = 80 // of a value, so that the line stays one
	v := e.Value
	if len(v) > most {
		v = v[:most] + "…"
	}
	return fmt.Sprintf("%s: %q: %s", e.Field, v, e.Want)
}

// Is reports whether every error in err is an Error.
func Is(err error) bool {
	_, ok := errors.AsType[*Error](err)
	return ok
}

// Lines returns one line for each error that err joins.
func Lines(err error) []string {
	if err == nil {
		return nil
	}
	if joined, ok := err.(interface{ Unwrap() []error }); ok && isJoin(err, joined.Unwrap()) {
		var lines []string
		for _, e := range joined.Unwrap() {
			lines = append(lines, Lines(e)...)
		}
		return lines
	}
	return []string{strings.ReplaceAll(strings.TrimSpace(err.Error()), "\n", "; ")}
}

// Clean is text in one line, without what could move a terminal's cursor. Text of a store or
// of a server that is shown to people goes through it.
func Clean(text string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) || r == utf8.RuneError {
			return '·'
		}
		return r
	}, strings.TrimRight(text, "\n"))
}

// Count is a number with a noun, to which it adds an s unless the number is 1.
func Count[N int | int64 | uint64](n N, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// isJoin tells errors.Join from errors that wrap several and say more.
func isJoin(err error, parts []error) bool {
	texts := make([]string, len(parts))
	for i, p := range parts {
		texts[i] = p.Error()
	}
	return err.Error() == strings.Join(texts, "\n")
}
