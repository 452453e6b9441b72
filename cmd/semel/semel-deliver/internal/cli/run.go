// Package cli is the command line of semel-deliver.
package cli

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/semel-go/semel/cmd/semel/internal/input"
	"github.com/semel-go/semel/cmd/semel/internal/program"
)

// name is the program in help, errors and versions.
const name = "semel-deliver"

// Run carries out a command line and returns the exit code.
func Run(ctx context.Context, args []string, getenv func(string) string, stdout, stderr io.Writer) int {
	var o options
	exited := -1 // by --help
	parser, err := kong.New(&o,
		kong.Name(name),
		kong.Description(description),
		kong.Writers(stdout, stderr),
		kong.Exit(func(code int) { exited = code }),
		kong.Resolvers(program.Environment(getenv, names())),
		kong.ConfigureHelp(kong.HelpOptions{WrapUpperBound: 100}),
	)
	if err != nil {
		return program.Report(stderr, name, fmt.Errorf("command line: %w", err))
	}
	if len(args) == 0 && getenv("SEMEL_FROM") == "" {
		args = []string{"--help"}
	}
	switch _, err = parser.Parse(args); {
	case exited >= 0:
		return exited
	case err != nil:
		_, _ = fmt.Fprintf(stderr, "%s: %s; see %s --help\n", name, strings.Join(input.Lines(err), "; "), name)
		return program.ExitUsage
	}
	level := new(slog.LevelVar)
	level.Set(o.LogLevel)
	log := program.Logger(stderr, o.JSON, level)
	defer program.CaptureLogs(log)()
	return program.Report(stderr, name, o.run(ctx, log, getenv))
}

// versionFlag prints the version as soon as the flag is parsed.
type versionFlag bool

// BeforeReset implements a hook of kong.
func (versionFlag) BeforeReset(app *kong.Kong) error {
	if err := program.ThisBuild().Write(app.Stdout, name); err != nil {
		return err
	}
	app.Exit(program.ExitOK)
	return nil
}
