package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/semel-go/semel/cmd/semel/internal/input"
	"github.com/semel-go/semel/cmd/semel/internal/program"
	"github.com/semel-go/semel/cmd/semel/internal/storeurl"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/moved"
)

type copyCmd struct {
	From     string `name:"from" placeholder:"URL" required:"" help:"The old store, which is only read."`
	FromKeys string `name:"from-encryption-keys" placeholder:"FILE" help:"The keys with which the old store's records are encrypted (default: they are not)."`
	To       string `name:"to" placeholder:"URL" required:"" help:"The new store. Its schema is made if it is not there."`
	ToKeys   string `name:"to-encryption-keys" placeholder:"FILE" help:"The keys that encrypt the new store's records (default: they are not)."`
	Verify   bool   `name:"verify" help:"Compare the two stores afterwards, and report each difference. With --dry-run: only compare."`
	DryRun   bool   `name:"dry-run" help:"Say how much there is to copy, and change nothing. The new store need not exist."`
	Workers  int    `name:"workers" placeholder:"N" default:"16" help:"How many records are copied at the same time, 1 to 256 (default ${default})."`
}

// Help implements kong.HelpProvider.
func (*copyCmd) Help() string {
	return `Copies the records of one store to another, with their states, answers, steps, fences and times. It never overwrites what the new store has recorded itself, so it may run while calls go on, may be killed, and may run again as often as you like: a record that it has copied before is replaced only by a later version of itself. Expired records are left out. Records in flight, whose calls run, are named and left. A lapsed claim, whose process has died, is copied. Tenants and keys are copied as they are stored: hashed ones stay hashed, and their processes need the same --hash-keys-file as before.

To move a service without a double effect:

    semel copy --from OLD --to NEW             # while the processes still use OLD; may be left out
    (stop all processes; start them with --store NEW --moved-from OLD)
    semel copy --from OLD --to NEW --verify    # until it leaves nothing
    (start the processes without --moved-from)

Do not let processes with OLD alone and processes with NEW run at the same time: OLD does not learn what NEW has recorded, and both run the same request. The page docs/migrate.md has each step, and what is not moved: messages of an outbox, and the records of transactions unless nothing runs.

A record that cannot be read, in one of the two stores, is named and left, and the others are copied. If the old store is encrypted, give --from-encryption-keys with --to-encryption-keys: a record that is encrypted already is not encrypted again, and counts as unreadable.

The exit code is 0 if nothing is left to copy, and otherwise 1: records in flight, records that cannot be read, or differences.

Examples:

    semel copy --from sqlite:/var/lib/semel.db --to postgres://semel@db/app --dry-run
    semel copy --from redis://cache:6379/0 --to 'dynamodb://semel?region=eu-central-1' --verify --json
`
}

// mostNamed is how many records a copy or an import names in its messages; it counts the
// others.
const mostNamed = 100

// named writes messages about single records, up to mostNamed.
type named struct {
	mu   sync.Mutex
	out  io.Writer
	said int
}

func (n *named) say(format string, args ...any) {
	n.mu.Lock()
	defer n.mu.Unlock()
	switch n.said++; {
	case n.said <= mostNamed:
		_, _ = fmt.Fprintf(n.out, format+"\n", args...)
	case n.said == mostNamed+1:
		_, _ = fmt.Fprintln(n.out, "…and more, which are counted")
	}
}

// nameOf names a key for people.
func nameOf(k store.Key) string {
	return fmt.Sprintf("operation %s, tenant %s, key %s", clean(k.Operation), clean(k.Tenant), clean(k.Value))
}

// copied is the JSON of a copy.
type copied struct {
	TargetAbsent bool `json:"target_absent,omitempty"` // a dry run: the new store does not exist yet

	Copy   *moved.CopyStats   `json:"copy,omitempty"`
	Verify *moved.VerifyStats `json:"verify,omitempty"`

	dryRun bool
}

func (c *copyCmd) Run(ctx context.Context, e *env) (err error) {
	if c.Workers < 1 || c.Workers > 256 {
		return wrong("--workers", c.Workers, "must be 1 to 256")
	}
	from, to, absent, err := c.open(ctx, e)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, from.Close(), to.Close()) }()
	if absent != "" && c.Verify {
		return fmt.Errorf("%s. So there is nothing to compare; leave out --verify to count what there is to copy", absent)
	}
	result := copied{TargetAbsent: absent != "", dryRun: c.DryRun}
	sayAbsent(e, "copy", absent)
	messages := &named{out: e.stderr}
	if !c.DryRun || !c.Verify {
		stats, err := moved.Copy(ctx, to, from, &moved.CopyOptions{
			Workers: c.Workers, DryRun: c.DryRun,
			InFlight: func(r store.Record) {
				messages.say("semel copy: in flight until %s, left: %s", r.Until.Format(time.RFC3339), nameOf(r.Key))
			},
			Unreadable: func(err error) { messages.say("semel copy: %v", err) },
			Progress:   copyProgress(e),
		})
		if result.Copy = &stats; err != nil {
			return errors.Join(err, result.write(e))
		}
	}
	if c.Verify {
		stats, err := moved.Verify(ctx, to, from, func(d moved.Difference) { messages.say("semel copy: %s: %s", nameOf(d.Key), d.Problem) })
		if result.Verify = &stats; err != nil {
			return errors.Join(err, result.write(e))
		}
	}
	return errors.Join(result.write(e), result.left())
}

// sayAbsent says what a dry run cannot see because its target does not exist yet.
func sayAbsent(e *env, command, absent string) {
	switch {
	case absent == "":
	case e.json:
		e.log.Warn(absent, "not_checked", "what is there already, and what is too large for it")
	default:
		_, _ = fmt.Fprintf(e.stderr, "semel %s: %s. Not checked: what is there already, and what is too large for it\n", command, absent)
	}
}

// open opens the two stores. absent says that the new one does not exist yet, in a dry run.
func (c *copyCmd) open(ctx context.Context, e *env) (from, to storeurl.Handle, absent string, err error) {
	var urls [2]storeurl.URL
	var errs [2]error
	for i, u := range []struct{ url, flag, keys, keysFlag string }{
		{c.From, "--from", c.FromKeys, "--from-encryption-keys"}, {c.To, "--to", c.ToKeys, "--to-encryption-keys"},
	} {
		if urls[i], errs[i] = storeurl.Parse(u.url, u.flag); errs[i] == nil {
			urls[i], errs[i] = urls[i].Encrypted(u.keys, u.keysFlag, false, e.log)
		}
	}
	if err := errors.Join(errs[:]...); err != nil {
		return nil, nil, "", err
	}
	if urls[0].Same(urls[1]) {
		return nil, nil, "", wrong("--to", urls[1], "is the store of --from; give another one")
	}
	if from, err = program.OpenExisting(ctx, urls[0].For(storeurl.Source), e.log); err != nil {
		return nil, nil, "", err
	}
	if to, absent, err = openTarget(ctx, e, urls[1], c.DryRun); err != nil {
		return nil, nil, "", errors.Join(err, from.Close())
	}
	return from, to, absent, nil
}

// openTarget opens the store of --to, and makes it unless the run only counts.
func openTarget(ctx context.Context, e *env, u storeurl.URL, dryRun bool) (to storeurl.Handle, absent string, err error) {
	if dryRun {
		return program.OpenForDryRun(ctx, u, e.log)
	}
	to, err = program.OpenStore(ctx, u, e.log)
	return to, "", err
}

// copyProgress says now and then how far a copy is.
func copyProgress(e *env) func(moved.CopyStats) {
	begun := time.Now()
	said := begun
	return func(s moved.CopyStats) {
		if time.Since(said) < progressInterval {
			return
		}
		said = time.Now()
		after := said.Sub(begun).Round(time.Second)
		if e.json {
			e.log.Info("the copy goes on", "after", after, "read", s.Read, "copied", s.Copied, "already_there", s.There)
			return
		}
		_, _ = fmt.Fprintf(e.stderr, "semel copy: after %v: read %d, copied %d, already there %d\n", after, s.Read, s.Copied, s.There)
	}
}

// verbOf is how a count of a run is called.
func verbOf(dryRun bool, done, would string) string {
	if dryRun {
		return would
	}
	return done
}

func (r *copied) write(e *env) error {
	if e.json {
		return json.NewEncoder(e.stdout).Encode(r)
	}
	if s := r.Copy; s != nil {
		if _, err := fmt.Fprintf(e.stdout, "read %d: %s %d, already there %d, expired %d, in flight and left %d, unreadable %d\n", s.Read, verbOf(r.dryRun, "copied", "would copy"), s.Copied, s.There, s.Expired, s.InFlight, s.Unreadable); err != nil {
			return err
		}
		if s.Tombstones > 0 {
			if _, err := fmt.Fprintf(e.stdout, "%s too large for the new store; duplicates are told that the work is done, without the body\n", input.Count(s.Tombstones, "answer")); err != nil {
				return err
			}
		}
	}
	if s := r.Verify; s != nil {
		_, err := fmt.Fprintf(e.stdout, "compared %d: same %d, gone on in the new store %d, without a body that is too large %d, expired %d, in flight %d, missing %d, different %d, unreadable %d\n",
			s.Read, s.Same, s.Later, s.Tombstones, s.Expired, s.InFlight, s.Missing, s.Different, s.Unreadable)
		return err
	}
	return nil
}

// runAgain is what to do about records that are left.
const runAgain = "once the processes of the old store have stopped, the leases have ended, and unreadable records are mended as their errors say, run the command again"

// left says what is not in the new store.
func (r *copied) left() error {
	if s := r.Verify; s != nil {
		if s.Complete() {
			return nil
		}
		return fmt.Errorf("the new store lacks records: %d in flight, %d missing, %d different, %d unreadable; %s", s.InFlight, s.Missing, s.Different, s.Unreadable, runAgain)
	}
	if s := r.Copy; s.InFlight+s.Unreadable > 0 {
		return fmt.Errorf("not all is copied: %d in flight, %d unreadable; %s", s.InFlight, s.Unreadable, runAgain)
	}
	return nil
}
