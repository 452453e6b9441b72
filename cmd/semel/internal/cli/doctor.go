package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/semel-go/semel/cmd/semel/internal/input"
	"github.com/semel-go/semel/cmd/semel/internal/program"
	"github.com/semel-go/semel/cmd/semel/internal/storeurl"
	"github.com/semel-go/semel/store"
)

type doctorCmd struct {
	Secrets []string `name:"secret-files" placeholder:"FILE,…" help:"Files with secrets, such as the files of --secret-file and --tls-key, that only their owner should be able to read."`
	Store   string   `name:"store" placeholder:"URL" default:"sqlite:semel.db" help:"The store to check: sqlite:PATH, postgres://USER@HOST/DATABASE, redis://HOST:PORT/0 or dynamodb://TABLE?region=REGION (default ${default})."`
}

// Help implements kong.HelpProvider.
func (*doctorCmd) Help() string {
	return `Opens an existing store, and looks for settings with which it can lose records, an outdated schema, and files that other users can read. It reads no records, so that the number of records does not matter; semel inspect list reads them. The exit code is 1 if there is a problem.

Examples:

    semel doctor --store sqlite:/var/lib/semel.db
    semel doctor --store sqlite:semel.db --json
`
}

// diagnosis is the JSON of semel doctor.
type diagnosis struct {
	Store    string   `json:"store"`
	OK       bool     `json:"ok"`
	Problems []string `json:"problems"`
}

func (c *doctorCmd) Run(ctx context.Context, e *env) error {
	u, err := storeurl.Parse(c.Store, "--store")
	if err != nil {
		return err
	}
	d := diagnosis{Store: u.String(), Problems: []string{}}
	err = errors.Join(checkStore(ctx, u), c.modes(u))
	if input.Is(err) {
		return err
	}
	d.OK = err == nil
	d.Problems = append(d.Problems, input.Lines(err)...)
	return errors.Join(err, d.print(e))
}

// modes checks who can read the files with secrets and the file of the store.
func (c *doctorCmd) modes(u storeurl.URL) error {
	paths := c.Secrets
	if path, ok := u.File(); ok {
		paths = append(slices.Clone(paths), path)
	}
	var errs []error
	for _, path := range paths {
		errs = append(errs, program.CheckMode(path))
	}
	return errors.Join(errs...)
}

func (d *diagnosis) print(e *env) error {
	if e.json {
		return json.NewEncoder(e.stdout).Encode(d)
	}
	if !d.OK {
		return nil
	}
	_, err := fmt.Fprintf(e.stdout, "%s: ok\n", d.Store)
	return err
}

// checkStore checks the settings of an existing store. It reads no records.
func checkStore(ctx context.Context, u storeurl.URL) (err error) {
	h, err := u.OpenExisting(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, h.Close()) }()
	if c, ok := store.As[store.Checker](h); ok {
		return c.Check(ctx)
	}
	return nil
}
