package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strconv"
	"strings"

	"github.com/semel-go/semel/cmd/semel/internal/input"
	"github.com/semel-go/semel/cmd/semel/internal/storeurl"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/pgstore"
)

type migrateCmd struct {
	Store string `name:"store" placeholder:"URL" default:"sqlite:semel.db" help:"The store: sqlite:PATH, postgres://USER@HOST/DATABASE or dynamodb://TABLE?region=REGION (default ${default})."`
	Print bool   `name:"print" help:"Print the scripts that create the schema for the kind of --store, SQLite by default; it is not opened."`

	Partitions int `name:"partitions" placeholder:"N" help:"Make the table of records in N partitions, 1 to 256, by hash of the key (PostgreSQL). Fixed once it is made. None by default."`
}

// Help implements kong.HelpProvider.
func (*migrateCmd) Help() string {
	return `semel proxy updates the schema when it starts. Use this command to do that in a separate step. It changes nothing if the schema is up to date.

Examples:

    semel migrate --store sqlite:/var/lib/semel.db
    semel migrate --print --store postgres://db/app > semel.sql
    semel migrate --store postgres://semel@db/app --partitions 16
    semel migrate --store 'dynamodb://semel?region=eu-central-1'
`
}

func (c *migrateCmd) Run(ctx context.Context, e *env) error {
	u, err := storeurl.Parse(c.Store, "--store")
	if err != nil {
		return err
	}
	if u.InDynamo() && !c.Print && c.Partitions == 0 {
		return c.table(ctx, e, u)
	}
	files, ok := u.Migrations()
	if !ok {
		return &input.Error{Field: "--store", Value: c.Store, Want: "has no schema; choose sqlite:PATH or postgres://…"}
	}
	if c.Partitions != 0 {
		if u, ok = u.Partitioned(c.Partitions); !ok {
			return &input.Error{Field: "--partitions", Value: strconv.Itoa(c.Partitions), Want: "is for a store in PostgreSQL; choose postgres://…"}
		}
		if _, err := pgstore.PartitionedInit(c.Partitions); err != nil {
			return &input.Error{Field: "--partitions", Value: strconv.Itoa(c.Partitions), Want: "must be 1 to 256"}
		}
	}
	if c.Print {
		if _, isFile := u.File(); !e.json {
			kind := "PostgreSQL"
			if isFile {
				kind = "SQLite"
			}
			if _, err := fmt.Fprintf(e.stdout, "-- Semel's schema for %s\n", kind); err != nil {
				return err
			}
		}
		return c.print(e, files)
	}
	h, err := u.Open(ctx) // which migrates
	if err != nil {
		return err
	}
	if err := h.Close(); err != nil {
		return err
	}
	return c.done(e, u)
}

// table makes the table of a store in DynamoDB, its index and its time to live.
func (c *migrateCmd) table(ctx context.Context, e *env, u storeurl.URL) error {
	if _, err := u.MigrateTable(ctx); err != nil {
		return err
	}
	return c.done(e, u)
}

func (c *migrateCmd) done(e *env, u storeurl.URL) error {
	if e.json {
		return json.NewEncoder(e.stdout).Encode(map[string]any{"store": u.String(), "migrated": true})
	}
	_, err := fmt.Fprintf(e.stdout, "%s: the schema is up to date\n", u)
	return err
}

// script is one of the files. The first makes the tables.
func (c *migrateCmd) script(files fs.FS, name string) ([]byte, error) {
	if c.Partitions != 0 && strings.HasPrefix(name, "0001_") {
		script, err := pgstore.PartitionedInit(c.Partitions)
		return []byte(script), err
	}
	return fs.ReadFile(files, name)
}

func (c *migrateCmd) print(e *env, files fs.FS) error {
	names, err := fs.Glob(files, "*.up.sql") // in order: they begin with their numbers
	if err != nil {
		return err
	}
	for _, name := range names {
		script, err := c.script(files, name)
		if err != nil {
			return err
		}
		if e.json {
			err = json.NewEncoder(e.stdout).Encode(map[string]string{"name": name, "sql": string(script)})
		} else {
			_, err = fmt.Fprintf(e.stdout, "-- %s\n%s\n", name, script)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

type doctorCmd struct {
	Secrets []string `name:"secret-files" placeholder:"FILE,…" help:"Files with secrets, such as the files of --secret-file, --hash-keys-file and --tls-key, that only their owner should be able to read. Checked is that each is there, who can read it, and that it is not empty; not what is in it."`
	Store   string   `name:"store" placeholder:"URL" default:"sqlite:semel.db" help:"The store to check: sqlite:PATH, postgres://USER@HOST/DATABASE, redis://HOST:PORT/0 or dynamodb://TABLE?region=REGION (default ${default})."`
}

// Help implements kong.HelpProvider.
func (*doctorCmd) Help() string {
	return `Opens an existing store, and looks for settings with which it can lose records, an outdated schema, rights on the tables that its role does not have (PostgreSQL), files that other users can read, and files of --secret-files that are not there or empty. It reads no records, so that the number of records does not matter; semel inspect list reads them. The exit code is 1 if there is a problem. A note is no problem: it says what to know before a fail-over.

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
	Notes    []string `json:"notes"`
}

func (c *doctorCmd) Run(ctx context.Context, e *env) error {
	u, err := storeurl.Parse(c.Store, "--store")
	if err != nil {
		return err
	}
	d := diagnosis{Store: u.String(), Problems: []string{}, Notes: []string{}}
	err = errors.Join(d.check(ctx, u), c.modes(u))
	if input.Is(err) {
		return err
	}
	d.OK = err == nil
	d.Problems = append(d.Problems, input.Lines(err)...)
	return errors.Join(err, d.print(e))
}

// modes checks who can read the files with secrets and the file of the store. A file with
// secrets must be there.
func (c *doctorCmd) modes(u storeurl.URL) error {
	var errs []error
	for _, path := range c.Secrets {
		errs = append(errs, input.CheckRead(path), input.CheckMode(path))
	}
	if path, ok := u.File(); ok {
		errs = append(errs, input.CheckMode(path))
	}
	return errors.Join(errs...)
}

func (d *diagnosis) print(e *env) error {
	if e.json {
		return json.NewEncoder(e.stdout).Encode(d)
	}
	var text strings.Builder
	if d.OK {
		fmt.Fprintf(&text, "%s: ok\n", d.Store)
	}
	for _, note := range d.Notes {
		fmt.Fprintf(&text, "note: %s\n", note)
	}
	_, err := io.WriteString(e.stdout, text.String())
	return err
}

// noStandby is the note about a PostgreSQL whose commits wait for no standby.
const noStandby = "synchronous_standby_names is empty. If this server has a standby and fails over to it, the last confirmed records can be lost, and their calls run again; docs/postgres.md has a value that prevents it"

// check checks the settings of an existing store. It reads no records.
func (d *diagnosis) check(ctx context.Context, u storeurl.URL) (err error) {
	h, err := u.OpenExisting(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, h.Close()) }()
	if s, ok := store.As[*pgstore.Store](h); ok {
		required, err := pgstore.RequiresSynchronousStandby(ctx, s)
		if err != nil {
			return err
		}
		if !required {
			d.Notes = append(d.Notes, noStandby)
		}
	}
	if c, ok := store.As[store.Checker](h); ok {
		return c.Check(ctx)
	}
	return nil
}
