package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/semel-go/semel/cmd/semel/internal/config"
	"github.com/semel-go/semel/cmd/semel/internal/input"
	"github.com/semel-go/semel/cmd/semel/internal/storeurl"
	"github.com/semel-go/semel/internal/protocol"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/encrypted"
)

type inspectListCmd struct {
	storeFlag
	hashFlag
	State     []store.State   `name:"state" placeholder:"STATE,…" help:"Only records in these states: started, processing, released, completed, failed, unknown; parked is the same as unknown."`
	Operation raw             `name:"operation" placeholder:"NAME" help:"Only of this operation."`
	Tenant    raw             `name:"tenant" placeholder:"NAME" help:"Only of this tenant. With --hash-keys-file 64 hexadecimal digits name it as it is stored."`
	Idle      config.Duration `name:"idle" placeholder:"TIME" default:"0" help:"Only records that have not changed for this time."`
	Limit     int             `name:"limit" placeholder:"N" default:"100" help:"Largest number of records to list (default ${default})."`
	Steps     bool            `name:"steps" help:"With --json: the recorded steps of each record, too. It asks the store once more for each record."`
	ShowBody  bool            `name:"show-body" help:"With --json: the headers and bodies of the kept answers, too. Cookies are never shown."`
}

// Help implements kong.HelpProvider.
func (*inspectListCmd) Help() string {
	return `Lists records in no particular order. With --json it writes one line of JSON for each record.

A list of the parked records alone (--state parked) is as fast in a large store as in a small one. Every other list reads the records one after the other until it has --limit of them. With --json it writes each as soon as it is found. If it takes long, it says so every 10 seconds on standard error.

Examples:

    semel inspect list --state parked --idle 5m
    semel inspect list --operation payments --tenant ann --limit 10
    semel inspect list --state unknown --json | jq -r .key
`
}

func (c *inspectListCmd) Run(ctx context.Context, e *env) error {
	if c.Limit < 1 {
		return wrong("--limit", c.Limit, "must be at least 1")
	}
	if c.Idle < 0 {
		return wrong("--idle", c.Idle, "must not be negative")
	}
	if c.Steps && !e.json {
		return wrong("--steps", "", "needs --json; the table has no room for steps")
	}
	if c.ShowBody && !e.json {
		return wrong("--show-body", "", "needs --json; the table has no room for answers")
	}
	secret, err := c.secret()
	if err != nil {
		return err
	}
	if tenant := string(c.Tenant); !isHash(tenant, hashedDigits) {
		c.Tenant = raw(store.Key{Tenant: tenant}.Hashed(secret).Tenant)
	}
	return c.with(ctx, e.log, func(h storeurl.Handle) error {
		l, ok := store.As[store.Lister](h)
		if !ok {
			return errors.New("this store cannot be searched")
		}
		show, flush := c.table(e)
		if e.json {
			show, flush = c.lines(ctx, e, h)
		}
		return errors.Join(c.list(ctx, e, l, show), flush())
	})
}

// sayStillReading says every 10 seconds that a list goes on, until the first call of
// stop, which waits for the line that is being written. The lines begin with who, a command.
func sayStillReading(e *env, who string) (stop func()) {
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(progressInterval)
		defer tick.Stop()
		for start := time.Now(); ; {
			select {
			case <-done:
				return
			case <-tick.C:
				_, _ = fmt.Fprintf(e.stderr, "%s: still reading after %v\n", who, time.Since(start).Round(time.Second))
			}
		}
	}()
	return sync.OnceFunc(func() {
		close(done)
		<-ended
	})
}

func (c *inspectListCmd) list(ctx context.Context, e *env, l store.Lister, show func(*store.Found) error) (err error) {
	stop := sayStillReading(e, "semel inspect list")
	defer stop()
	var errs []error
	var keyMissing error // of the first record whose key is missing
	n, withoutKey := 0, 0
	defer func() {
		if keyMissing != nil {
			err = errors.Join(err, fmt.Errorf("%s left out; without --encryption-keys the list shows records as they are stored: %w", input.Count(withoutKey, "record"), keyMissing))
		}
	}()
	filter := store.Filter{Operation: string(c.Operation), Tenant: string(c.Tenant), States: c.State, Idle: time.Duration(c.Idle), Limit: c.Limit + 1}
	for f, err := range l.List(ctx, filter) {
		switch {
		case errors.Is(err, encrypted.ErrUnknownKey):
			keyMissing, withoutKey = cmp.Or(keyMissing, err), withoutKey+1
			continue
		case errors.Is(err, store.ErrCorrupt):
			errs = append(errs, err)
			continue
		case err != nil:
			return errors.Join(append(errs, err)...)
		case n == c.Limit:
			stop()
			return errors.Join(append(errs, c.more(e))...)
		}
		n++
		if err := show(&f); err != nil {
			return err
		}
	}
	if n == 0 && withoutKey == 0 && len(errs) == 0 && !e.json {
		stop()
		_, _ = fmt.Fprintln(e.stderr, "semel inspect list: there are no such records"+c.hint()) // that it cannot be said changes nothing
	}
	return errors.Join(errs...)
}

// hint says under which other name the tenant's records may be stored, and where calls in
// doubt may be that are not parked. To look for them would read every record.
func (c *inspectListCmd) hint() string {
	hint := ""
	if c.Tenant != "" && c.HashKeysFile == "" && !isHash(string(c.Tenant), hashedDigits) {
		hint = "; give --hash-keys-file if the store has hashes of tenants"
	}
	if !slices.Contains(c.State, store.Unknown) || slices.Contains(c.State, store.Processing) {
		return hint
	}
	return hint + ". The call of a process that has died stays processing until a duplicate or a sweep comes after its lease; to sweep now: semel sweep --once" + c.flags()
}

// more warns that the list is cut.
func (c *inspectListCmd) more(e *env) error {
	text := fmt.Sprintf("there are more than %d; raise --limit to see them", c.Limit)
	if e.json {
		e.log.Warn(text)
		return nil
	}
	_, err := fmt.Fprintf(e.stderr, "semel inspect list: %s\n", text)
	return err
}

func (c *inspectListCmd) lines(ctx context.Context, e *env, st store.Store) (show func(*store.Found) error, flush func() error) {
	out := json.NewEncoder(e.stdout)
	return func(f *store.Found) error {
		v := viewOf(f, c.ShowBody)
		if c.Steps {
			steps, err := stepsOf(ctx, st, &f.Record)
			if errors.Is(err, store.ErrLeaseLost) {
				return nil // it has changed since it was listed
			}
			if err != nil {
				return err
			}
			v.addSteps(steps, c.ShowBody)
		}
		return out.Encode(v)
	}, func() error { return nil }
}

func (c *inspectListCmd) table(e *env) (show func(*store.Found) error, flush func() error) {
	t := tabwriter.NewWriter(e.stdout, 0, 0, 2, ' ', 0)
	begun := false
	return func(f *store.Found) error {
		if !begun {
			begun = true
			if err := row(t, "STATE", "OPERATION", "TENANT", "KEY", "FENCE", "ATTEMPTS", "CHANGED", "LAST ERROR"); err != nil {
				return err
			}
		}
		v := viewOf(f, false)
		return row(t, v.state(), v.Operation, v.Tenant, v.Key, fmt.Sprint(v.Fence), fmt.Sprint(v.Attempts),
			f.Now.Sub(v.Updated).Truncate(time.Second).String()+" ago", short(v.shownError))
	}, t.Flush
}

// lastErrorOf is the last error of a record, or the decision in its place.
func lastErrorOf(r *store.Record) (lastError, decision string) {
	if protocol.IsDecision(r) {
		return "", r.LastError
	}
	return r.LastError, ""
}

// row writes a line of a table.
func row(w io.Writer, cells ...string) error {
	for i, cell := range cells {
		if cells[i] = clean(cell); cells[i] == "" {
			cells[i] = "-"
		}
	}
	_, err := io.WriteString(w, strings.Join(cells, "\t")+"\n")
	return err
}

// shortSaga is short for the error of a saga: the step is at its beginning, and the cause at
// its end.
func shortSaga(s string) string {
	const first, last = 50, 110
	if r := []rune(s); len(r) > first+last {
		return string(r[:first]) + "…" + string(r[len(r)-last:])
	}
	return s
}

// short cuts an error text to the width of the table.
func short(s string) string {
	const most = 60
	if r := []rune(s); len(r) > most {
		return string(r[:most]) + "…"
	}
	return s
}
