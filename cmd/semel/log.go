package main

import (
	"fmt"
	"log"
	"log/slog"
	"strings"

	"github.com/semel-go/semel/cmd/semel/internal/input"
)

// logger writes to standard error, in the form that --json chooses.
func logger(e *env, level slog.Leveler) *slog.Logger {
	o := &slog.HandlerOptions{Level: level}
	if e.json {
		return slog.New(slog.NewJSONHandler(e.stderr, o))
	}
	return slog.New(slog.NewTextHandler(e.stderr, o))
}

// adopt has what net/http logs by itself, by package log, go to l, until the
// function that it returns is called.
func adopt(l *slog.Logger) (end func()) {
	flags, out := log.Flags(), log.Writer()
	log.SetFlags(0)
	log.SetOutput(foundling{l})
	return func() {
		log.SetFlags(flags)
		log.SetOutput(out)
	}
}

// foundling logs each text as a warning.
type foundling struct{ log *slog.Logger }

// Write implements io.Writer. It leaves out what a text quotes: that can be an
// answer of the upstream.
func (f foundling) Write(p []byte) (int, error) {
	text, _, _ := strings.Cut(strings.TrimSpace(string(p)), " starting with ")
	f.log.Warn(text)
	return len(p), nil
}

// wrong is a mistake in a flag.
func wrong(flag string, value any, want string) error {
	return &input.Error{Field: flag, Value: fmt.Sprint(value), Want: want}
}

// indent makes text a block that help shows as it is.
func indent(s string) string { return "    " + strings.ReplaceAll(s, "\n", "\n    ") }
