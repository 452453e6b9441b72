package main

import (
	"fmt"
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

// wrong is a mistake in a flag.
func wrong(flag string, value any, want string) error {
	return &input.Error{Field: flag, Value: fmt.Sprint(value), Want: want}
}

// indent makes text a block that help shows as it is.
func indent(s string) string { return "    " + strings.ReplaceAll(s, "\n", "\n    ") }
