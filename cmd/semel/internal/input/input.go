// Package input says what is wrong with something that a user gave: an option,
// a file, an address. A command that meets one ends with exit code 2.
package input

import (
	"errors"
	"fmt"
	"strings"
)

// Error is one mistake. It is printed in one line.
type Error struct {
	Field string // where it was given: "--lease", "semel.yaml:7: lease"
	Value string // what was given; empty where it is missing or secret
	Want  string // what would be right: limits, choices, an example
}

// Error names the field, the value and what would be right.
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

// Is reports whether all that is wrong in err is a user's to mend.
func Is(err error) bool {
	_, ok := errors.AsType[*Error](err)
	return ok
}

// Lines is err with each of the errors that were joined in a line of its own.
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

// isJoin tells errors.Join from errors that wrap several and say more.
func isJoin(err error, parts []error) bool {
	texts := make([]string, len(parts))
	for i, p := range parts {
		texts[i] = p.Error()
	}
	return err.Error() == strings.Join(texts, "\n")
}
