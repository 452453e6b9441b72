// Package handlererr has the errors with which handlers and sagas tell Semel how a run
// ends, and makes errors of user code safe to read.
package handlererr

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// NoEffect wraps an error of a handler that changed nothing.
type NoEffect struct{ Err error }

// Error implements error.
func (e *NoEffect) Error() string { return e.Err.Error() }

// Unwrap is for errors.Is and errors.As.
func (e *NoEffect) Unwrap() error { return e.Err }

// hiddenNoEffect wraps the error of a run that has ended: see HideNoEffect.
type hiddenNoEffect struct{ Err error }

// Error implements error.
func (e *hiddenNoEffect) Error() string { return e.Err.Error() }

// Unwrap is for errors.Is and errors.As.
func (e *hiddenNoEffect) Unwrap() error { return e.Err }

// IsNoEffect reports whether a handler's error says that the handler changed nothing.
// A joined error says so only if each of its parts does.
func IsNoEffect(err error) bool {
	switch e := err.(type) { //nolint:errorlint // errors.As would search a joined error for one part, and each part has to say it
	case *NoEffect:
		return true
	case *hiddenNoEffect:
		return false
	case interface{ Unwrap() error }:
		return IsNoEffect(e.Unwrap())
	case interface{ Unwrap() []error }:
		parts := e.Unwrap()
		return len(parts) > 0 && !slices.ContainsFunc(parts, func(err error) bool { return !IsNoEffect(err) })
	}
	return false
}

// HideNoEffect is for the error that a run returns to its caller. If the caller is the
// handler of another run and returns the error, a NoEffect in it must not count for that
// handler, which may have had an effect of its own.
func HideNoEffect(err error) error {
	if IsNoEffect(err) {
		return &hiddenNoEffect{err}
	}
	return err
}

// Readable returns err or, if a method of it panics, another error that says so. A
// nil pointer in an error is the usual case. Each error of a user's function goes through
// it before anything reads it: a handler has had its effect, and a panic would lose its
// outcome, or end the process.
func Readable(err error) (readable error) {
	if err == nil {
		return nil
	}
	defer func() {
		if p := recover(); p != nil {
			readable = fmt.Errorf("an error of type %T, whose methods panic (a nil pointer?): %v", err, p)
		}
	}()
	_ = err.Error()
	_ = errors.Is(err, errProbe)           // calls each Is and Unwrap
	_, _ = errors.AsType[*probeError](err) // calls each As
	return err
}

var errProbe = &probeError{}

// probeError is an error that no other error is.
type probeError struct{ _ byte }

func (*probeError) Error() string { return "probe" }

// Text is what a record keeps of an error: its first 500 bytes.
func Text(err error) string {
	const limit = 500 // bytes
	s := err.Error()
	if len(s) > limit {
		s = s[:limit] + "…"
	}
	// A database refuses a text with a NUL or half a character, and then the
	// whole settlement would fail.
	return strings.ReplaceAll(strings.ToValidUTF8(s, ""), "\x00", "")
}
