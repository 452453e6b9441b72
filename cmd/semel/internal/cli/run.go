// Package cli is the command line of semel: one file for each command, and here those that
// print the version or start another program.
package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/semel-go/semel/cmd/semel/internal/config"
	"github.com/semel-go/semel/cmd/semel/internal/helper"
	"github.com/semel-go/semel/cmd/semel/internal/input"
	"github.com/semel-go/semel/cmd/semel/internal/program"
	"github.com/semel-go/semel/cmd/semel/internal/storeurl"
)

// cli is the command line: one field for each command.
type cli struct {
	JSON      bool        `name:"json" help:"Write results and logs as JSON. Errors and notes on standard error stay text."`
	Audit     string      `name:"audit" placeholder:"FILE" help:"Write each act of an operator (resolve, reopen, erase, decisions about sagas and messages, also in the console) to this file: a line of JSON before it and one after it. If the file cannot be written, nothing is done."`
	ShowBuild versionFlag `name:"version" help:"Print the version and exit."`

	verifyVerbs `embed:""`

	Proxy   proxyCmd   `cmd:"" help:"Run a reverse proxy in front of a service: a request with an Idempotency-Key takes effect once."`
	Deliver deliverCmd `cmd:"" passthrough:"" help:"Send the messages of a broker to a service, each once: kafka://, amqp://, nats://, sqs:// and pulsar://. A program of its own, semel-deliver."`
	Inspect inspectCmd `cmd:"" help:"List and show records, and resolve parked requests."`
	Console consoleCmd `cmd:"" help:"Serve pages that show what is in doubt, stuck or quarantined, and decide about it."`
	Saga    sagaCmd    `cmd:"" help:"List and show sagas, and decide about stuck ones."`
	Outbox  outboxCmd  `cmd:"" help:"List and show messages of an outbox, send them again or drop them."`
	Sweep   sweepCmd   `cmd:"" help:"Delete expired records and recover lapsed claims."`
	Erase   eraseCmd   `cmd:"" help:"Delete the records of a tenant, or of one request, before they expire."`
	Copy    copyCmd    `cmd:"" help:"Copy the records of one store to another, for a move without double effects."`
	Import  importCmd  `cmd:"" help:"Import keys that a service has recorded itself, in a table or in Redis."`
	Migrate migrateCmd `cmd:"" help:"Create the schema of a store, or update it."`
	Doctor  doctorCmd  `cmd:"" help:"Check the settings of a store."`
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
	audit          string       // the path of the audit trail, or empty
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
		kong.Resolvers(variables(getenv)),
		kong.ConfigureHelp(kong.HelpOptions{NoExpandSubcommands: true, WrapUpperBound: 100}),
	)
	if err != nil {
		return program.Report(stderr, "semel", fmt.Errorf("command line: %w", err))
	}
	if len(args) == 0 {
		args = []string{"--help"}
	}
	parsed, err := parser.Parse(args)
	switch {
	case exited >= 0:
		return exited
	case err != nil:
		text, command := strings.Join(input.Lines(err), "; "), commandOf(err)
		switch noFence := strings.Contains(text, "missing flags: --fence"); {
		case noFence && strings.HasPrefix(command, "semel inspect "):
			text += "; semel inspect get KEY shows the fence"
		case noFence && strings.HasPrefix(command, "semel saga "):
			text += "; semel saga show NAME ID shows the fence"
		}
		_, _ = fmt.Fprintf(stderr, "semel: %s; see %s --help\n", text, command)
		return program.ExitUsage
	}
	parsed.BindTo(ctx, (*context.Context)(nil))
	level := new(slog.LevelVar)
	e := &env{getenv: getenv, stdin: stdin, stdout: stdout, stderr: stderr, json: c.JSON, audit: c.Audit, log: program.Logger(stderr, c.JSON, level), level: level}
	defer program.CaptureLogs(e.log)()
	verb, _, _ := strings.Cut(parsed.Command(), " <")
	return program.Report(stderr, "semel "+verb, parsed.Run(e))
}

// commandOf is the command whose command line has a mistake.
func commandOf(err error) string {
	command := "semel"
	if e, ok := errors.AsType[*kong.ParseError](err); ok {
		for _, part := range e.Context.Path {
			if part.Command != nil {
				command += " " + part.Command.Name
			}
		}
	}
	return command
}

// variables reads flags from SEMEL_ variables. A command may run where the variables of a
// proxy are set, as in its container: they tell it which store to open and how, but not what to
// do. SEMEL_OPERATION must not narrow an erasure, nor SEMEL_LISTEN move a console, nor
// SEMEL_RETENTION shorten the time for which a sweep keeps the records of all programs.
func variables(getenv func(string) string) kong.Resolver {
	store := []string{"store", "encryption-keys", "hash-keys-file", "json", "audit"}
	everywhere := program.Environment(getenv, store)
	proxy := program.Environment(getenv, append(store, append(config.Names(), "config", "log-level")...))
	return kong.ResolverFunc(func(ctx *kong.Context, parent *kong.Path, flag *kong.Flag) (any, error) {
		if ctx.Command() == "proxy" {
			return proxy.Resolve(ctx, parent, flag)
		}
		return everywhere.Resolve(ctx, parent, flag)
	})
}

// wrong reports a mistake in a flag.
func wrong(flag string, value any, want string) error {
	return &input.Error{Field: flag, Value: fmt.Sprint(value), Want: want}
}

// indent makes text a block that the help shows unchanged.
func indent(s string) string { return "    " + strings.ReplaceAll(s, "\n", "\n    ") }

type outboxCmd struct {
	Publish publishCmd `cmd:"" passthrough:"" help:"Send the messages to kafka://, amqp://, nats://, sqs:// or a webhook, until it is stopped. A part of the program semel-deliver."`

	Stats outboxStatsCmd `cmd:"" help:"Count the messages that are not sent, and tell the age of the oldest."`
	List  outboxListCmd  `cmd:"" help:"List messages, and count them."`
	Show  outboxShowCmd  `cmd:"" help:"Show one message."`
	Retry outboxRetryCmd `cmd:"" help:"Send a message that has failed, and its order key, again at once."`
	Drop  outboxDropCmd  `cmd:"" help:"Delete a message that is not sent, so that its order key goes on."`
}

// outboxFlags are common to the commands of outbox.
type outboxFlags struct {
	Store string `name:"store" placeholder:"URL" default:"sqlite:semel.db" help:"The store of the outbox: sqlite:PATH or postgres://USER@HOST/DATABASE (default ${default})."`
}

// with runs fn with the outbox, which must exist.
func (c *outboxFlags) with(ctx context.Context, fn func(storeurl.Outbox) error) error {
	u, err := storeurl.Parse(c.Store, "--store")
	if err != nil {
		return err
	}
	return with(ctx, u.For(storeurl.OutboxSeen), func(h storeurl.Handle) (err error) {
		b, err := storeurl.OutboxOf(h, false)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, b.Close()) }()
		return fn(b)
	})
}

type versionCmd struct{}

// Help implements kong.HelpProvider.
func (versionCmd) Help() string {
	return `Prints the version of the module, the revision of the source (if the build knows it), the Go version and the platform. semel --version prints the same line.

Examples:

    semel version
    semel version --json
`
}

func (versionCmd) Run(e *env) error {
	if e.json {
		return json.NewEncoder(e.stdout).Encode(program.ThisBuild())
	}
	return program.ThisBuild().Write(e.stdout, "semel")
}

// versionFlag prints the version as soon as the flag is parsed.
type versionFlag bool

// BeforeReset implements a hook of kong.
func (versionFlag) BeforeReset(app *kong.Kong) error {
	if err := program.ThisBuild().Write(app.Stdout, "semel"); err != nil {
		return err
	}
	app.Exit(program.ExitOK)
	return nil
}

// demoCmd names the program that took the place of semel demo.
type demoCmd struct{}

func (demoCmd) Run() error {
	return errors.New("the demo is a program of its own: go run github.com/semel-go/semel/cmd/semel/demo@latest (in a clone: go run ./cmd/semel/demo)")
}

// deliverCmd starts the program semel-deliver, which reads the arguments.
type deliverCmd struct {
	Args []string `arg:"" optional:"" help:"The options of semel-deliver; see semel deliver --help."`
}

// deliverer is the program that semel deliver starts.
const deliverer = "semel-deliver"

func (c *deliverCmd) Run(e *env) error { return runDeliverer(e, c.Args) }

// publishCmd starts the program semel-deliver, too, because it has the clients of the
// brokers.
type publishCmd struct {
	Args []string `arg:"" optional:"" help:"The options of semel-deliver publish; see semel outbox publish --help."`
}

func (c *publishCmd) Run(e *env) error { return runDeliverer(e, c.Args, "publish") }

// runDeliverer starts the program with a command of it, if one is given, and arguments.
func runDeliverer(e *env, args []string, command ...string) error {
	path, err := helper.Find(deliverer)
	if err != nil {
		return err
	}
	if e.json {
		command = append(command, "--json")
	}
	args = append(command, args...)
	code, err := helper.Run(path, args)
	if err == nil && code != 0 {
		os.Exit(code)
	}
	return err
}

// raw is an argument with its bytes unchanged. Kong would replace bytes that are
// not UTF-8, and so name another record.
type raw string

// Decode implements kong.MapperValue.
func (v *raw) Decode(ctx *kong.DecodeContext) error {
	t, err := ctx.Scan.PopValue("text")
	if err != nil {
		return err
	}
	s, ok := t.Value.(string)
	if !ok {
		return fmt.Errorf("expected text but got %v", t)
	}
	*v = raw(s)
	return nil
}
