// Package cli is the command line of semel-deliver.
package cli

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"reflect"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/semel-go/semel/cmd/semel/internal/input"
	"github.com/semel-go/semel/cmd/semel/internal/program"
)

// name is the program in help, errors and versions.
const name = "semel-deliver"

// Run carries out a command line and returns the exit code.
func Run(ctx context.Context, args []string, getenv func(string) string, stdout, stderr io.Writer) int {
	c := commandLine{name: name, description: description, getenv: getenv, stdout: stdout, stderr: stderr}
	if len(args) > 0 && args[0] == "publish" {
		c.name, c.description = name+" publish", publishDescription
		var o publishOptions
		if len(args) == 1 && getenv("SEMEL_TO") == "" {
			args = []string{"publish", "--help"}
		}
		return c.run(ctx, args[1:], &o, &o.commonOptions, o.run)
	}
	var o options
	if len(args) == 0 && getenv("SEMEL_FROM") == "" {
		args = []string{"--help"}
	}
	return c.run(ctx, args, &o, &o.commonOptions, o.run)
}

// commandLine is the same for each command of the program.
type commandLine struct {
	name, description string
	getenv            func(string) string
	stdout, stderr    io.Writer
}

// run parses the arguments into flags, a pointer to a struct, and runs fn.
func (c *commandLine) run(ctx context.Context, args []string, flags any, common *commonOptions, fn func(context.Context, *slog.Logger, func(string) string) error) int {
	exited := -1 // by --help
	parser, err := kong.New(flags,
		kong.Name(c.name),
		kong.Description(c.description),
		kong.Writers(c.stdout, c.stderr),
		kong.Exit(func(code int) { exited = code }),
		kong.Resolvers(program.Environment(c.getenv, flagNames(reflect.TypeOf(flags).Elem()))),
		kong.ConfigureHelp(kong.HelpOptions{WrapUpperBound: 100}),
	)
	if err != nil {
		return program.Report(c.stderr, c.name, fmt.Errorf("command line: %w", err))
	}
	switch _, err = parser.Parse(args); {
	case exited >= 0:
		return exited
	case err != nil:
		_, _ = fmt.Fprintf(c.stderr, "%s: %s; see %s --help\n", c.name, strings.Join(input.Lines(err), "; "), c.name)
		return program.ExitUsage
	}
	level := new(slog.LevelVar)
	level.Set(common.LogLevel)
	log := program.Logger(c.stderr, common.JSON, level)
	defer program.CaptureLogs(log)()
	return program.Report(c.stderr, c.name, fn(ctx, log, c.getenv))
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
