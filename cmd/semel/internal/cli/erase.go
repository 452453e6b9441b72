package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/cmd/semel/internal/audit"
	"github.com/semel-go/semel/cmd/semel/internal/config"
	"github.com/semel-go/semel/cmd/semel/internal/input"
	"github.com/semel-go/semel/cmd/semel/internal/storeurl"
	"github.com/semel-go/semel/erase"
	"github.com/semel-go/semel/internal/acts"
	"github.com/semel-go/semel/store"
)

type eraseCmd struct {
	storeFlag
	hashFlag
	Tenant      raw             `name:"tenant" placeholder:"NAME" help:"The tenant whose records are erased. It can only be left out for one --key that all tenants share."`
	Operation   raw             `name:"operation" placeholder:"NAME" help:"Only the records of this operation, or of the sagas of this name."`
	Key         raw             `name:"key" placeholder:"KEY" help:"Only the record of this key; it needs --operation."`
	Yes         bool            `name:"yes" help:"Erase. Without it the command only counts."`
	AnswersOnly bool            `name:"answers-only" help:"Keep the records, so that a duplicate does not run again, and erase answers, steps and texts of errors."`
	Rewrite     bool            `name:"rewrite" help:"Afterwards rewrite the file of SQLite or the tables of PostgreSQL, so that no old byte stays in them. It locks them while it runs: see above."`
	Reason      string          `name:"reason" placeholder:"TEXT" help:"Why, for the log and the audit trail. With --yes it is required."`
	Timeout     config.Duration `name:"store-timeout" placeholder:"TIME" default:"30s" help:"How long one request to the store may take (default ${default})."`
}

// Help implements kong.HelpProvider.
func (*eraseCmd) Help() string {
	return `Deletes the records of a tenant before they expire: their keys, answers, steps, errors and timers. Without --yes it only counts. A later duplicate of an erased request is a new request and runs again. Stop the tenant's requests first, or use --answers-only: duplicates then learn that the request is done, and get no answer. If answers are encrypted, --answers-only needs --encryption-keys; a whole erasure does not.

A request that runs (started, processing), that is in doubt (unknown) or that is unfinished (a saga that has not ended, or a call some of whose steps are done) is left. The command names it by the hash that logs use, says what to do, and exits with 1. It can be stopped and repeated at any time; what is erased is not there any more. Each use with --yes writes one line of JSON to standard error with the operator, the reason, the SHA-256 of the tenant and the counts.

With --hash-keys-file it erases two kinds of records, and counts both: those stored as hashes, and those stored under the tenant and key as given, such as records from before hashing was turned on, and sagas. The line of JSON and the audit trail name the hashes, and other_part has the SHA-256 and the counts of the records stored as given, if there were any. With 64 hexadecimal digits the tenant can be given as it is stored. If nothing was found, the command says so and exits with 0.

--rewrite: SQLite copies the file (VACUUM), and nobody else can write meanwhile. PostgreSQL runs VACUUM FULL on the tables of Semel and on pg_statistic: nobody can use a table meanwhile, and the role must own them and the database, or be a superuser. A transaction that began before the erasure must end first.

Messages of an outbox, dead letters and messages in a broker are no records, and stay. So do logs, backups and the caches of running processes. The command says what stays in this store.

Examples:

    semel erase --store postgres://app@db/shop --tenant ann
    semel erase --store postgres://app@db/shop --tenant ann --yes --rewrite --reason "request 4711 of the customer"
    semel erase --store postgres://app@db/shop --tenant ann --hash-keys-file /etc/semel/hash-keys
    semel erase --tenant ann --operation http --key 8e03978e-40d5-43dd-bc93-6894a57f9324 --yes --answers-only --reason "ticket 12"
`
}

// nextSteps say what to do about a record that is left.
var nextSteps = map[erase.Result]string{
	erase.Running:    "wait until it has ended; if its process has died, run: semel sweep --once",
	erase.InDoubt:    "decide: semel inspect resolve HASH, or semel saga for a saga",
	erase.Unfinished: "wait until it has ended; decide about a stuck saga by semel saga",
	erase.Failed:     "remove the cause, and erase again",
}

// leftRecord is the JSON of a record that is left.
type leftRecord struct {
	Left      string `json:"left"` // the reason
	State     string `json:"state,omitempty"`
	Operation string `json:"operation,omitempty"`
	Key       string `json:"key,omitempty"` // the hash
	Fence     uint64 `json:"fence,omitempty"`
	Next      string `json:"next"`
}

// erasedCounts is the JSON of the end.
type erasedCounts struct {
	Counted      bool     `json:"counted_only,omitempty"`
	Erased       int      `json:"erased"`
	ErasedByHash int      `json:"erased_by_hash"` // of Erased
	Timers       int      `json:"timers"`
	Running      int      `json:"running"`
	InDoubt      int      `json:"in_doubt"`
	Unfinished   int      `json:"unfinished"`
	Failed       int      `json:"failed"`
	Rewritten    bool     `json:"rewritten"`
	Remains      []string `json:"remains,omitempty"`

	passes []audit.Part // as given, and as hashes
}

// add adds the counts of a pass over the records of k.
func (c *erasedCounts) add(r *erase.Report, k store.Key) {
	p := audit.Part{Stored: "as given", Record: audit.RecordOf(k), Erased: r.Erased, Left: r.Left()}
	if len(c.passes) > 0 {
		p.Stored = "as hashes"
		c.ErasedByHash += r.Erased
	}
	c.passes = append(c.passes, p)
	c.Erased += r.Erased
	c.Timers += r.Timers
	c.Running += r.Running
	c.InDoubt += r.InDoubt
	c.Unfinished += r.Unfinished
	c.Failed += r.Failed
}

// forTrail is what the audit trail and the log have of the counts. main is the pass over the
// records that the act names. The trail has the other name only if there were records under
// it, because the hash of a tenant as given can be guessed.
func (c *erasedCounts) forTrail(main int) audit.Counts {
	counts := audit.Counts{Erased: c.Erased, ErasedByHash: c.ErasedByHash, Left: c.Running + c.InDoubt + c.Unfinished + c.Failed}
	for pass := range c.passes {
		if p := &c.passes[pass]; pass != main && p.Erased+p.Left > 0 {
			counts.OtherPart = p
		}
	}
	return counts
}

func (c *eraseCmd) check(u *storeurl.URL) error {
	switch {
	case c.Tenant == "" && c.Key == "":
		return wrong("--tenant", "", "is missing; name the tenant, or with --operation and --key a key that all tenants share")
	case c.Key != "" && c.Operation == "":
		return wrong("--operation", "", "is missing; a key belongs to an operation, which is http for semel proxy")
	case c.Yes && strings.TrimSpace(c.Reason) == "":
		return wrong("--reason", "", "must not be empty with --yes")
	case c.Rewrite && !u.Rewrites():
		return wrong("--rewrite", "", "is for sqlite: and postgres://; this store has nothing to rewrite from here")
	case time.Duration(c.Timeout) < 100*time.Millisecond || time.Duration(c.Timeout) > 24*time.Hour:
		return wrong("--store-timeout", c.Timeout, "must be from 100ms to 1d")
	}
	return nil
}

func (c *eraseCmd) Run(ctx context.Context, e *env) error {
	u, err := storeurl.Parse(c.Store, "--store")
	if err != nil {
		return err
	}
	if err := c.check(&u); err != nil {
		return err
	}
	if err := e.checkTrail(); err != nil {
		return err
	}
	keys, main, err := c.names(store.Key{Operation: string(c.Operation), Tenant: string(c.Tenant), Value: string(c.Key)})
	if err != nil {
		return err
	}
	if hash := keys[main].Tenant; main > 0 && hash != "" {
		_, _ = fmt.Fprintln(e.stderr, "semel erase: records that are stored as hashes have the tenant", hash)
	}
	opened := c.storeFlag
	if !c.AnswersOnly {
		opened.Keys = "" // records without their keys can be erased, too
	}
	return opened.with(ctx, e.log, func(h storeurl.Handle) error {
		p := erasePrinter{env: e, passes: len(keys), began: time.Now(), said: time.Now()}
		if !c.Yes {
			counts, err := c.erase(ctx, h, &u, keys, &p)
			return errors.Join(p.end(&counts), err)
		}
		a := c.actOn(acts.Erase, keys[main], 0, c.Reason, map[string]any{"answers_only": c.AnswersOnly, "rewrite": c.Rewrite})
		a.Counts = &audit.Counts{}
		var counts erasedCounts
		result, err := e.act(a, func() (err error) {
			counts, err = c.erase(ctx, h, &u, keys, &p)
			*a.Counts = counts.forTrail(main)
			return err
		})
		notShown := p.end(&counts) // the erasure is done also if nobody reads its output
		attrs := []any{
			"operation", a.Operation, "tenant_sha256", a.TenantSHA256, "key", a.KeyHash, "reason", c.Reason, "answers_only", c.AnswersOnly,
			"erased", counts.Erased, "erased_by_hash", counts.ErasedByHash, "left", a.Counts.Left, "timers", counts.Timers, "rewritten", counts.Rewritten,
		}
		if part := a.Counts.OtherPart; part != nil {
			attrs = append(attrs, "other_part", part)
		}
		e.logAct(acts.Erase, result, err, attrs...)
		return errors.Join(err, notShown)
	})
}

// erase erases the records of each name, one pass after the other.
func (c *eraseCmd) erase(ctx context.Context, h storeurl.Handle, u *storeurl.URL, keys []store.Key, p *erasePrinter) (counts erasedCounts, err error) {
	e := p.env
	counts.Counted = !c.Yes
	for pass, k := range keys {
		var r erase.Report
		r, err = erase.Run(ctx, h, erase.Scope{Tenant: k.Tenant, Operation: k.Operation, Key: k.Value}, &erase.Options{
			CountOnly: !c.Yes, AnswersOnly: c.AnswersOnly, StoreTimeout: time.Duration(c.Timeout), Observe: p.item,
		})
		counts.add(&r, k)
		if err != nil {
			err = passError(err, pass, len(keys))
			break
		}
	}
	if err == nil && c.Yes && c.Rewrite {
		err = c.rewrite(ctx, e, h)
		counts.Rewritten = err == nil
	}
	found := counts.forTrail(0)
	if err == nil && found.Nothing() {
		next := "If the processes of this store have --hash-keys-file, give it here, too"
		if len(keys) > 1 {
			next = "Check the tenant, and that the processes of this store have the same --hash-keys-file"
		}
		_, _ = fmt.Fprintln(e.stderr, "semel erase: there was nothing to erase.", next)
	}
	if err == nil && !found.Nothing() && len(keys) == 1 {
		_, _ = fmt.Fprintln(e.stderr, "semel erase: records that are stored as hashes were not looked for; if the processes of this store have --hash-keys-file, give it here, too")
	}
	if c.Yes || counts.Erased > 0 { // a count of no records leaves no bytes to tell of
		counts.Remains = u.Remains(counts.Rewritten)
	}
	if err == nil && c.Yes && found.Left > 0 {
		err = fmt.Errorf("%w: %s left; do what is said above, and erase again", acts.ErrPartly, input.Count(found.Left, "record"))
	}
	return counts, err
}

// passError says which of two passes an error has ended.
func passError(err error, pass, passes int) error {
	switch {
	case passes == 1 || errors.Is(err, semel.ErrInvalid):
		return err
	case pass == 0:
		return fmt.Errorf("the pass over records stored as given broke off, and the pass over records stored as hashes did not begin; give the command again: %w", err)
	}
	return fmt.Errorf("the pass over records stored as hashes broke off; the pass over records stored as given has ended; give the command again: %w", err)
}

func (c *eraseCmd) rewrite(ctx context.Context, e *env, h storeurl.Handle) error {
	s, ok := store.As[store.Scrubber](h)
	if !ok {
		return errors.New("this store has nothing to rewrite")
	}
	if !e.json {
		_, _ = fmt.Fprintln(e.stderr, "semel erase: rewriting the store")
	}
	return s.Scrub(ctx)
}

// erasePrinter shows how far an erasure is, and the records that it leaves.
type erasePrinter struct {
	env         *env
	passes      int // 2: over records stored as given, and as hashes
	began, said time.Time
	seen        int
}

// item shows a record that is left, and now and then how many were looked at.
func (p *erasePrinter) item(_ context.Context, i erase.Item) {
	e := p.env
	if p.seen++; time.Since(p.said) > progressInterval {
		p.said = time.Now()
		_, _ = fmt.Fprintf(e.stderr, "semel erase: %s after %v\n", input.Count(p.seen, "record"), time.Since(p.began).Round(time.Second))
	}
	if i.Result == erase.Erased {
		return
	}
	l := leftRecord{Left: i.Err.Error(), Next: nextSteps[i.Result]}
	if i.Key != (store.Key{}) {
		l.State, l.Operation, l.Key, l.Fence = i.State.String(), i.Key.Operation, i.Key.Short(), i.Fence
	}
	if e.json {
		_ = json.NewEncoder(e.stdout).Encode(l) // a closed output does not stop the erasure
		return
	}
	_, _ = fmt.Fprintf(e.stdout, "left: %s %s, operation %s, fence %d: %s; next: %s\n", l.State, l.Key, clean(l.Operation), l.Fence, clean(l.Left), l.Next)
}

// end shows the counts.
func (p *erasePrinter) end(c *erasedCounts) error {
	e := p.env
	if e.json {
		return json.NewEncoder(e.stdout).Encode(c)
	}
	verb := "erased"
	if c.Counted {
		verb = "with --yes it would erase"
	}
	kinds := ""
	if p.passes > 1 {
		kinds = fmt.Sprintf(" (%d stored as given, %d as hashes)", c.Erased-c.ErasedByHash, c.ErasedByHash)
	}
	_, err := fmt.Fprintf(e.stdout, "%s %s%s; left: %d running, %d in doubt, %d unfinished, %d failed\n", verb, input.Count(c.Erased, "record"), kinds, c.Running, c.InDoubt, c.Unfinished, c.Failed)
	for _, place := range c.Remains {
		if err == nil {
			_, err = fmt.Fprintf(e.stdout, "bytes can stay in %s\n", place)
		}
	}
	return err
}
