// Package cli is the command line of semel: one file for each command.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/cmd/semel/internal/config"
	"github.com/semel-go/semel/cmd/semel/internal/input"
)

// The exit codes.
const (
	ExitOK     = 0
	ExitFailed = 1 // the command failed
	ExitUsage  = 2 // a flag, an argument or the configuration file is wrong
)

// cli is the command line: one field for each command.
type cli struct {
	JSON      bool        `name:"json" help:"Write results and logs as JSON."`
	ShowBuild versionFlag `name:"version" help:"Print the version and exit."`

	verifyVerbs `embed:""`

	Proxy   proxyCmd   `cmd:"" help:"Run a reverse proxy in front of a service: a request with an Idempotency-Key takes effect once."`
	Inspect inspectCmd `cmd:"" help:"List and show records, and resolve parked requests."`
	Sweep   sweepCmd   `cmd:"" help:"Delete expired records and recover lapsed claims."`
	Migrate migrateCmd `cmd:"" help:"Create the schema of a store, or update it."`
	Doctor  doctorCmd  `cmd:"" help:"Check the settings and the records of a store."`
	Version versionCmd `cmd:"" help:"Print the version."`
	Demo    demoCmd    `cmd:"" hidden:""`
}

// env is the environment of a command. Kong runs a command by its method
// Run(context.Context, *env) error.
type env struct {
	getenv         func(string) string
	stdin          io.Reader
	stdout, stderr io.Writer
	json           bool
	log            *slog.Logger // to stderr
	level          *slog.LevelVar
}

// Run carries out a command line of semel and returns the exit code.
func Run(ctx context.Context, args []string, getenv func(string) string, stdin io.Reader, stdout, stderr io.Writer) int {
	var c cli
	exited := -1 // by --help
	parser, err := kong.New(&c,
		kong.Name("semel"),
		kong.Description("Semel makes an operation take effect once, however often its request arrives."),
		kong.Writers(stdout, stderr),
		kong.Exit(func(code int) { exited = code }),
		kong.Resolvers(environment(getenv)),
		kong.ConfigureHelp(kong.HelpOptions{NoExpandSubcommands: true, WrapUpperBound: 100}),
	)
	if err != nil {
		return Report(stderr, "semel", fmt.Errorf("command line: %w", err))
	}
	if len(args) == 0 {
		args = []string{"--help"}
	}
	parsed, err := parser.Parse(args)
	switch {
	case exited >= 0:
		return exited
	case err != nil:
		_, _ = fmt.Fprintf(stderr, "semel: %s; see semel --help\n", strings.Join(input.Lines(err), "; "))
		return ExitUsage
	}
	parsed.BindTo(ctx, (*context.Context)(nil))
	level := new(slog.LevelVar)
	e := &env{getenv: getenv, stdin: stdin, stdout: stdout, stderr: stderr, json: c.JSON, log: logger(stderr, c.JSON, level), level: level}
	defer captureLogs(e.log)()
	verb, _, _ := strings.Cut(parsed.Command(), " <")
	return Report(stderr, "semel "+verb, parsed.Run(e))
}

// Report writes an error to stderr, one line for each joined error, and returns
// the exit code.
func Report(stderr io.Writer, who string, err error) int {
	if err == nil {
		return ExitOK
	}
	for _, line := range input.Lines(err) {
		_, _ = fmt.Fprintf(stderr, "%s: %s\n", who, line) // the exit code tells it, too
	}
	if input.Is(err) || errors.Is(err, semel.ErrInvalid) {
		return ExitUsage
	}
	return ExitFailed
}

// environment reads flags that are not on the command line from SEMEL_ variables:
// SEMEL_ADMIN_LISTEN sets --admin-listen.
func environment(getenv func(string) string) kong.Resolver {
	names := map[string]bool{"json": true, "config": true, "log-level": true}
	for _, name := range config.Names() {
		names[name] = true
	}
	return kong.ResolverFunc(func(_ *kong.Context, _ *kong.Path, flag *kong.Flag) (any, error) {
		if !names[flag.Name] || len(flag.Envs) > 0 { // kong has read a flag with a variable of its own
			return nil, nil
		}
		if v := getenv("SEMEL_" + strings.ToUpper(strings.ReplaceAll(flag.Name, "-", "_"))); v != "" {
			return v, nil
		}
		return nil, nil
	})
}
