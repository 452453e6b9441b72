// Package program has what semel and the programs beside it share: exit codes and
// errors, options from the environment, logs, listeners, the opening of a store, and the
// admin server.
package program

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/cmd/semel/internal/input"
)

// The exit codes.
const (
	ExitOK     = 0
	ExitFailed = 1 // the command failed
	ExitUsage  = 2 // a flag, an argument or the configuration file is wrong
)

// Report writes an error to stderr, one line for each joined error, and returns
// the exit code. The text of an error may come from a server, so it is cleaned.
func Report(stderr io.Writer, who string, err error) int {
	if err == nil {
		return ExitOK
	}
	for _, line := range input.Lines(err) {
		_, _ = fmt.Fprintf(stderr, "%s: %s\n", who, input.Clean(line)) // the exit code tells it, too
	}
	if input.Is(err) || errors.Is(err, semel.ErrInvalid) {
		return ExitUsage
	}
	return ExitFailed
}

// Environment reads flags that are not on the command line from SEMEL_ variables:
// SEMEL_ADMIN_LISTEN sets --admin-listen.
func Environment(getenv func(string) string, flags []string) kong.Resolver {
	return kong.ResolverFunc(func(_ *kong.Context, _ *kong.Path, flag *kong.Flag) (any, error) {
		if !slices.Contains(flags, flag.Name) || len(flag.Envs) > 0 { // kong has read a flag with a variable of its own
			return nil, nil
		}
		if v := getenv("SEMEL_" + strings.ToUpper(strings.ReplaceAll(flag.Name, "-", "_"))); v != "" {
			return v, nil
		}
		return nil, nil
	})
}
