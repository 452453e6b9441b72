package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/semel-go/semel/cmd/semel/internal/config"
	"github.com/semel-go/semel/cmd/semel/internal/storeurl"
	"github.com/semel-go/semel/cmd/semel/internal/verify"
	"github.com/semel-go/semel/store"
)

// verifyVerbs are verify, and the processes that it starts to race with.
type verifyVerbs struct {
	Verify       verifyCmd       `cmd:"" help:"Test on a real store what Semel relies on: races, lost replies, stale owners, expiry, data."`
	VerifyWorker verifyWorkerCmd `cmd:"" name:"verify-worker" hidden:"" help:"A process that races for verify."`
}

type verifyCmd struct {
	Store     string          `name:"store" placeholder:"URL" default:"sqlite:semel.db" help:"The store to try: sqlite:PATH (default ${default}), postgres://USER@HOST/DATABASE, redis://HOST:PORT/0, dynamodb://TABLE?region=REGION or memory:."`
	Only      []string        `name:"only" placeholder:"CHECK" help:"Only these checks; --list names them."`
	Skip      []string        `name:"skip" placeholder:"CHECK" help:"All checks but these."`
	Keys      int             `name:"keys" placeholder:"N" default:"100" help:"Number of keys in each check (default ${default})."`
	Parallel  int             `name:"parallel" placeholder:"N" default:"8" help:"Number of callers that race for a key (default ${default})."`
	Processes int             `name:"processes" placeholder:"N" default:"3" help:"Number of further processes that race (default ${default}; 0: none)."`
	Body      config.Size     `name:"body" placeholder:"SIZE" default:"1MiB" help:"The largest body to keep (default ${default}, as --max-outcome of semel proxy)."`
	Seed      uint64          `name:"seed" placeholder:"N" default:"1" help:"Of the random bodies and headers (default ${default})."`
	Limit     config.Duration `name:"limit" placeholder:"TIME" default:"2m" help:"Time limit (default ${default}). Removing the records takes at most 1m more."`
	List      bool            `name:"list" help:"List the checks, and touch nothing."`
}

// Help implements kong.HelpProvider.
func (*verifyCmd) Help() string {
	return `semel doctor reads a store; semel verify tests it. It opens the store several times, in this and in other processes, and checks the properties that keep an operation from taking effect twice: that one of many claims of a key wins, that a request which is sent again after its reply was lost gets the result of the first, that an owner who lost its lease can change nothing, that nothing is forgotten too early or kept too long, that answers come back byte for byte, and how the store's clock and speed are.

The store may be in use. All records are of operation semel-verify and a tenant that is new for each run; no other record is changed, but its sweeps remove expired records, as any sweep does. At the end its own records are removed, also after Ctrl-C. A later run removes the records of a run that was killed. It costs the store a few thousand writes, and some passes over all records, of a few seconds for each million. Sweeps that run meanwhile may tell that they recovered records of semel-verify.

It cannot test a power loss, which shows whether acknowledged data survives. For that it reports the settings of the store.

The exit code is 0 if every check passed (with or without warnings), 1 if one failed or could not run, and 2 if a flag is wrong. For a store that is not there yet, run semel migrate first. Some checks park records, which Redis takes with semel-allow-park only; see semel proxy --help. DynamoDB has no clock of its own: the checks suppose that all processes have one, so give max-skew=1us, and sweep-expired.

Examples:

    semel verify --store sqlite:/var/lib/semel.db
    semel verify --store sqlite:semel.db --only claim-race,process-race --keys 5000
    semel verify --store 'redis://127.0.0.1:6379/0?semel-allow-park'
    semel verify --store 'dynamodb://TABLE?region=REGION&sweep-expired&max-skew=1us'
    semel verify --store sqlite:semel.db --json | jq '.checks[] | select(.verdict != "ok")'
`
}

// connections is the number of times that this process opens the store.
const connections = 3

func (c *verifyCmd) Run(ctx context.Context, e *env) (err error) {
	if c.List {
		return c.list(e)
	}
	u, err := storeurl.Parse(c.Store, "--store")
	if err != nil {
		return err
	}
	o := verify.Options{
		Only: c.Only, Skip: c.Skip, Keys: c.Keys, Parallel: c.Parallel, Processes: c.Processes,
		Body: int(c.Body), Seed: c.Seed, Limit: time.Duration(c.Limit), Progress: verify.Progress(e.stderr),
	}
	if err := o.Check(); err != nil {
		return err
	}
	t, done, err := target(ctx, u, c.Parallel)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, done()) }()
	r, err := verify.Run(ctx, t, o)
	if r == nil {
		return err
	}
	return errors.Join(err, c.print(e, r))
}

func (c *verifyCmd) print(e *env, r *verify.Report) error {
	if !e.json {
		return r.WriteText(e.stdout)
	}
	out := json.NewEncoder(e.stdout)
	out.SetIndent("", "  ")
	return out.Encode(r)
}

func (c *verifyCmd) list(e *env) error {
	names, claims := verify.Names(), verify.Claims()
	if e.json {
		type check struct {
			Name  string `json:"name"`
			Claim string `json:"claim"`
		}
		all := make([]check, len(names))
		for i := range names {
			all[i] = check{names[i], claims[i]}
		}
		return json.NewEncoder(e.stdout).Encode(all)
	}
	t := tabwriter.NewWriter(e.stdout, 0, 0, 2, ' ', 0)
	for i := range names {
		if err := row(t, names[i], claims[i]); err != nil {
			return err
		}
	}
	return t.Flush()
}

// target opens the store as several processes would.
func target(ctx context.Context, u storeurl.URL, parallel int) (t verify.Target, done func() error, err error) {
	open, n := u.OpenExisting, connections
	if u.Memory() {
		open, n = u.Open, 1 // a second would be another store
	} else {
		t.Start = starter(u, parallel)
	}
	t.Name, t.Volatile = u.String(), u.Memory()
	var hs []storeurl.Handle
	done = func() error {
		var errs []error
		for _, h := range hs {
			errs = append(errs, h.Close())
		}
		return errors.Join(errs...)
	}
	for range n {
		h, err := open(ctx)
		if err != nil {
			return t, nil, errors.Join(err, done())
		}
		hs, t.Stores = append(hs, h), append(t.Stores, store.Store(h))
	}
	return t, done, nil
}

type verifyWorkerCmd struct {
	Store    string `name:"store" required:"" env:"SEMEL_VERIFY_STORE" help:"The store."`
	Tenant   string `name:"tenant" required:"" help:"The run."`
	Parallel int    `name:"parallel" default:"8" help:"Callers."`
}

func (c *verifyWorkerCmd) Run(ctx context.Context, e *env) (err error) {
	u, err := storeurl.Parse(c.Store, "--store")
	if err != nil {
		return err
	}
	h, err := u.OpenExisting(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, h.Close()) }()
	return verify.Work(ctx, h, c.Tenant, c.Parallel, e.stdin, e.stdout)
}

// starter returns a function that starts this program as a worker on the store. A
// worker ends at the end of its standard input, and so with this process.
func starter(u storeurl.URL, parallel int) func(context.Context, string) (*verify.Worker, error) {
	return func(ctx context.Context, tenant string) (*verify.Worker, error) {
		path, err := os.Executable()
		if err != nil {
			return nil, fmt.Errorf("where this program is: %w", err)
		}
		cmd := exec.CommandContext(ctx, path, "verify-worker", "--tenant="+tenant, "--parallel="+strconv.Itoa(parallel))
		cmd.Env = append(os.Environ(), "SEMEL_VERIFY_STORE="+u.Secret()) // other users can see the arguments
		var said bytes.Buffer
		cmd.Stderr = &said
		in, err := cmd.StdinPipe()
		if err != nil {
			return nil, err
		}
		out, err := cmd.StdoutPipe()
		if err != nil {
			return nil, err
		}
		if err := cmd.Start(); err != nil {
			return nil, err
		}
		return &verify.Worker{In: in, Out: out, Wait: func() error {
			if err := cmd.Wait(); err != nil {
				return fmt.Errorf("%w: %s", err, strings.TrimSpace(said.String()))
			}
			return nil
		}}, nil
	}
}
