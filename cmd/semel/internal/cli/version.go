package cli

import (
	"encoding/json"
	"errors"

	"github.com/alecthomas/kong"

	"github.com/semel-go/semel/cmd/semel/internal/program"
)

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
