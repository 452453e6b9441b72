// Package effect has the errors by which a handler says that it changed nothing.
package effect

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

// Finished wraps the error of a run that has ended. If a handler returns the
// error of a nested run, the NoEffect in it speaks of the nested run only.
type Finished struct{ Err error }

// Error implements error.
func (e *Finished) Error() string { return e.Err.Error() }

// Unwrap is for errors.Is and errors.As.
func (e *Finished) Unwrap() error { return e.Err }

// None reports whether a handler's error says that the handler changed nothing.
// A joined error says so only if each of its parts does.
func None(err error) bool {
	switch e := err.(type) { //nolint:errorlint // errors.As would search a joined error for one part, and each part has to say it
	case *NoEffect:
		return true
	case *Finished:
		return false
	case interface{ Unwrap() error }:
		return None(e.Unwrap())
	case interface{ Unwrap() []error }:
		parts := e.Unwrap()
		return len(parts) > 0 && !slices.ContainsFunc(parts, func(err error) bool { return !None(err) })
	}
	return false
}

// Finish wraps the error that a finished run returns to its caller, if the error
// says that nothing changed.
func Finish(err error) error {
	if None(err) {
		return &Finished{err}
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
