package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/semel-go/semel/cmd/semel/internal/config"
	"github.com/semel-go/semel/cmd/semel/internal/importer"
	"github.com/semel-go/semel/cmd/semel/internal/input"
	"github.com/semel-go/semel/cmd/semel/internal/secrets"
	"github.com/semel-go/semel/cmd/semel/internal/storeurl"
	"github.com/semel-go/semel/internal/names"
	"github.com/semel-go/semel/store"
)

type importCmd struct {
	From  string   `name:"from" placeholder:"URL" required:"" help:"Where the keys are: sqlite:PATH or postgres://USER@HOST/DATABASE with --query, or redis://HOST:PORT/0, which is no node of a Redis Cluster, with --match and --name."`
	Query string   `name:"query" placeholder:"SQL" help:"A query whose columns are named operation, tenant, key, status, body, content_type, location, codec, created and expires. key is required, and status, unless --status is given."`
	Match string   `name:"match" placeholder:"PATTERN" help:"Which keys of Redis, such as 'idem:*'."`
	Name  string   `name:"name" placeholder:"PATTERN" help:"What the name of a key of Redis has: text, and {operation}, {tenant} and {key}, such as 'idem:{tenant}:{key}'."`
	Value string   `name:"value" placeholder:"KIND" default:"json" enum:"json,body,none" help:"What a string of Redis holds: json (an object with the columns; default), body (the answer's body) or none. A hash has the columns as fields."`
	Field []string `name:"field" placeholder:"COLUMN=NAME" help:"Read a column from a column, member or field with another name: status=response_code reads the status from response_code, and ignores a field named status. May be repeated."`

	To   string `name:"to" placeholder:"URL" default:"sqlite:semel.db" help:"The store (default ${default})."`
	Keys string `name:"encryption-keys" placeholder:"FILE" help:"The keys that encrypt the store's records, as for semel proxy (default: they are not)."`

	HashKeysFile string `name:"hash-keys-file" placeholder:"FILE" help:"The secret with which tenants and keys are hashed, as for semel proxy (default: they are stored as they are)."`

	Operation string          `name:"operation" placeholder:"NAME" default:"http" help:"The operation of rows without one (default ${default}, as in semel proxy)."`
	Status    int             `name:"status" placeholder:"N" help:"The status of rows without one, 200 to 599 (default: such a row is refused)."`
	Retention config.Duration `name:"retention" placeholder:"TIME" default:"1d" help:"How long rows without an expiry are kept from now on (default ${default})."`
	DryRun    bool            `name:"dry-run" help:"Say what would be imported, and change nothing. The store need not exist."`
}

// Help implements kong.HelpProvider.
func (*importCmd) Help() string {
	return `Imports keys that a service has recorded itself, so that a duplicate of an old request is answered from the record as soon as the service is behind semel proxy, or uses a Guard. Each row becomes a completed record with its answer. A query without a column body makes tombstones: duplicates get the status, and no body. Import only rows whose request has ended; leave out those that are in progress by the query.

What the old request was is not known, so that its key answers any request of its operation and tenant. Times are timestamps, text such as 2026-11-28T10:00:00Z, or seconds or milliseconds since 1970, from the year 2000 to 9999. A row that has expired is left out.

A key that has a record already is never changed. It is counted as already there, or as different if the answers differ. So the command may be killed and run again. A row that cannot be imported is named with its number and the reason. So are a key that begins or ends with a blank, and PostgreSQL's infinity.

The exit code is 0 if each row is imported, there or expired, and otherwise 1.

Examples:

    semel import --from postgres://app@db/shop --to postgres://semel@db/app --dry-run \
        --query "SELECT account AS tenant, key, code AS status, response AS body, 'application/json' AS content_type, created, created + interval '1 day' AS expires FROM idempotency_keys WHERE finished"
    semel import --from sqlite:app.db --query "SELECT id AS key, 200 AS status FROM seen" --retention 7d
    semel import --from redis://cache:6379/0 --match 'idem:*' --name 'idem:{tenant}:{key}' --field status=code --field body=response
`
}

func (c *importCmd) Run(ctx context.Context, e *env) (err error) {
	secret, err := secrets.HashKeys(c.HashKeysFile, "--hash-keys-file")
	if err != nil {
		return err
	}
	source, closeSource, err := c.source()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeSource()) }()
	u, err := c.store(e)
	if err != nil {
		return err
	}
	source, stop, err := source.Begin(ctx) // before the store is made
	if err != nil {
		return err
	}
	defer stop()
	to, absent, err := openTarget(ctx, e, u, c.DryRun)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, to.Close()) }()
	sayAbsent(e, "import", absent)
	messages := &named{out: e.stderr}
	stats, err := importer.Run(ctx, source, to, &importer.Options{
		Defaults: importer.Defaults{Operation: c.Operation, Status: c.Status, Retention: time.Duration(c.Retention), HashKeys: secret},
		DryRun:   c.DryRun,
		Bad: func(row int64, k store.Key, err error) {
			reason := clean(strings.Join(input.Lines(err), "; "))
			if e, ok := errors.AsType[*importer.RowError](err); ok && e.Name != "" && secret == nil {
				reason = clean(cut(e.Name)) + ": " + reason
			}
			if k.Value == "" {
				messages.say("semel import: row %d: %s", row, reason)
				return
			}
			k.Operation, k.Tenant, k.Value = cut(k.Operation), cut(k.Tenant), cut(k.Value)
			messages.say("semel import: row %d: %s: %s", row, reason, nameOf(k))
		},
		Different: func(row int64, k store.Key) {
			messages.say("semel import: row %d: the record has another answer, and stays: %s", row, nameOf(k))
		},
		Progress: importProgress(e),
	})
	if err != nil && stats.Read == 0 { // the counts would say nothing
		return err
	}
	return errors.Join(err, c.write(e, &stats, absent), importLeft(&stats))
}

// cut is the part of a name that a message shows.
func cut(name string) string { return name[:min(len(name), names.Max)] }

// source is the rows of --from.
func (c *importCmd) source() (importer.Source, func() error, error) {
	nothing := func() error { return nil }
	rename, err := c.rename()
	if err != nil {
		return nil, nil, err
	}
	if c.Status != 0 && (c.Status < 200 || c.Status > 599) {
		return nil, nil, wrong("--status", c.Status, "must be 200 to 599")
	}
	if time.Duration(c.Retention) < time.Second {
		return nil, nil, wrong("--retention", c.Retention, "must be at least 1s")
	}
	scheme, _, _ := strings.Cut(c.From, ":")
	switch scheme {
	case "sqlite", "postgres", "postgresql":
		if c.Query == "" || c.Match != "" || c.Name != "" {
			return nil, nil, wrong("--query", "", "is required for a database, and --match and --name are for Redis")
		}
		source, err := importer.SQL(c.From, c.Query, rename)
		if err != nil {
			return nil, nil, wrong("--from", c.From, input.Unreadable(err, ""))
		}
		return source, nothing, nil
	case "redis", "rediss":
		if c.Match == "" || c.Name == "" || c.Query != "" {
			return nil, nil, wrong("--match", "", "and --name are required for Redis, and --query is for a database")
		}
		name, err := importer.ParseKeyName(c.Name)
		if err != nil {
			return nil, nil, wrong("--name", c.Name, err.Error())
		}
		o, err := redis.ParseURL(c.From)
		if err != nil {
			return nil, nil, wrong("--from", "redis://…", "is not a URL; write redis://USER:PASSWORD@HOST:PORT/0, with special characters as %XX")
		}
		client := redis.NewClient(o)
		r := &importer.Redis{Client: client, Match: c.Match, Name: name, Value: importer.RedisValue(c.Value), Rename: rename}
		return r.Rows, client.Close, nil
	}
	return nil, nil, wrong("--from", scheme, "choose sqlite:PATH, postgres://USER@HOST/DATABASE or redis://HOST:PORT/0")
}

// rename are the columns by their names in the source.
func (c *importCmd) rename() (map[string]string, error) {
	columns := map[string]string{}
	for _, f := range c.Field {
		column, name, ok := strings.Cut(f, "=")
		if !ok || name == "" || !slices.Contains(importer.Columns(), column) {
			return nil, wrong("--field", f, "write COLUMN=NAME; the columns are "+strings.Join(importer.Columns(), ", "))
		}
		if other, twice := columns[name]; twice {
			return nil, wrong("--field", f, name+" is the source of "+other+" already; for a copy of a column, name it twice in the query, with AS")
		}
		for _, other := range columns {
			if other == column {
				return nil, wrong("--field", f, column+" has a --field already; give one for each column")
			}
		}
		columns[name] = column
	}
	return columns, nil
}

// store is the store of --to, which is not open yet.
func (c *importCmd) store(e *env) (storeurl.URL, error) {
	u, err := storeurl.Parse(c.To, "--to")
	if err != nil {
		return u, err
	}
	return u.Encrypted(c.Keys, "--encryption-keys", false, e.log)
}

// importProgress says now and then how far an import is.
func importProgress(e *env) func(importer.Stats) {
	begun := time.Now()
	said := begun
	return func(s importer.Stats) {
		if time.Since(said) < progressInterval {
			return
		}
		said = time.Now()
		after := said.Sub(begun).Round(time.Second)
		if e.json {
			e.log.Info("the import goes on", "after", after, "read", s.Read, "imported", s.Imported, "bad", s.Bad)
			return
		}
		_, _ = fmt.Fprintf(e.stderr, "semel import: after %v: read %d, imported %d, bad %d\n", after, s.Read, s.Imported, s.Bad)
	}
}

func (c *importCmd) write(e *env, s *importer.Stats, absent string) error {
	if e.json {
		return json.NewEncoder(e.stdout).Encode(struct {
			*importer.Stats
			TargetAbsent bool `json:"target_absent,omitempty"`
		}{s, absent != ""})
	}
	_, err := fmt.Fprintf(e.stdout, "read %d: %s %d, already there %d, different %d, expired %d, bad %d\n",
		s.Read, verbOf(c.DryRun, "imported", "would import"), s.Imported, s.There, s.Different, s.Expired, s.Bad)
	return err
}

func importLeft(s *importer.Stats) error {
	if s.Bad+s.Different == 0 {
		return nil
	}
	return fmt.Errorf("%s not imported: %d bad, %d whose record has another answer", input.Count(s.Bad+s.Different, "row"), s.Bad, s.Different)
}
