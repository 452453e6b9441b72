package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/textproto"
	"os"
	"os/user"
	"strconv"
	"strings"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/cmd/semel/internal/config"
	"github.com/semel-go/semel/cmd/semel/internal/input"
	"github.com/semel-go/semel/cmd/semel/internal/shell"
	"github.com/semel-go/semel/cmd/semel/internal/storeurl"
	"github.com/semel-go/semel/internal/acts"
	"github.com/semel-go/semel/internal/history"
	"github.com/semel-go/semel/internal/protocol"
	"github.com/semel-go/semel/store"
)

type inspectResolveCmd struct {
	storeFlag
	keyFlags
	Fence     uint64          `name:"fence" required:"" placeholder:"N" help:"The fence that semel inspect get has shown. If the record has changed since, the verdict is refused."`
	Verdict   string          `name:"verdict" required:"" enum:"happened,did-not-happen,failed" placeholder:"VERDICT" help:"happened (duplicates get the answer given here), did-not-happen (the next request runs) or failed (duplicates get a failure, for good)."`
	Reason    string          `name:"reason" required:"" placeholder:"TEXT" help:"The reason. The log and the record keep it."`
	Status    int             `name:"status" placeholder:"CODE" help:"For happened: the status of the answer that the request would have got, such as 201. The status of your own lookup is another one. A completed record shows one: semel inspect get KEY --show-body."`
	Header    []string        `name:"header" sep:"none" placeholder:"NAME: VALUE" help:"For happened: a header of the answer. Can be repeated."`
	BodyFile  string          `name:"body-file" placeholder:"FILE" help:"For happened: the body of the answer, or the encoded result; - is standard input. None: an empty body."`
	Codec     string          `name:"codec" placeholder:"NAME" help:"For happened, if the call was made by semel.Do: how the result in --body-file is encoded, such as json. Use it instead of --status. For a handler that returns a store.Outcome without a codec, write raw."`
	HTTP      bool            `name:"http" help:"For happened with --status: the operation is served over HTTP, although its record does not show it (semelhttp with Options.Payload)."`
	Retention config.Duration `name:"retention" placeholder:"TIME" default:"7d" help:"How long the verdict is kept (default ${default}). Use at least the retention of the process that made the record, which is 1d for semel proxy and a Guard, and 7d for semel deliver and consumers, unless it is set. After that a repeat is a new call, so a longer time is safe."`
}

// Help implements kong.HelpProvider.
func (*inspectResolveCmd) Help() string {
	return `A parked request (state unknown) may or may not have taken effect. Find out in your service, then give the verdict. The verdict did-not-happen must stay true: a request that is still on its way must not arrive later. It is about the steps that are not recorded. The steps that semel inspect get shows are done, and the next run does not repeat them. If the record has changed since semel inspect get, the command changes nothing, shows the present fence and exits with 1. Each use writes one line of JSON to standard error with the operator, the verdict, the reason and its result: done, not done or unknown (the store did not answer); on a terminal a refusal is written once, as the error, without that line. The record keeps the operator and the reason as its holder.

A saga takes no verdict, because its steps would not be undone: for a stuck one use semel saga; semel saga show NAME ID ends with the commands that make sense.

Examples:

    semel inspect get k1 --tenant ann
    semel inspect resolve k1 --tenant ann --fence 1795000000000000 --verdict did-not-happen --reason "not in the ledger; the bank refused it"
    semel inspect resolve k1 --tenant ann --fence 1795000000000000 --verdict happened --status 201 --header "Content-Type: application/json" --body-file answer.json --reason "ledger entry 4711"
`
}

// maxBody is the most bytes of an answer that is given by hand.
const maxBody = 32 << 20

func (c *inspectResolveCmd) Run(ctx context.Context, e *env) error {
	v, err := c.verdict(e)
	if err != nil {
		return err
	}
	return c.with(ctx, e.log, func(h storeurl.Handle) error {
		f, err := c.find(ctx, h)
		if err != nil {
			return err
		}
		result, err := e.act(c.actOn(acts.Resolve, f.Record.Key, c.Fence, c.Reason, map[string]any{"verdict": c.Verdict, "status": c.Status}),
			func() error { return c.resolve(ctx, e, h, &f, v) })
		c.log(e, f.Record.Key, result, err)
		if err != nil {
			return err
		}
		return c.show(ctx, e, h, f.Record.Key)
	})
}

func (c *inspectResolveCmd) resolve(ctx context.Context, e *env, h storeurl.Handle, f *store.Found, v semel.Verdict) error {
	if protocol.IsSaga(f.Record.Key) {
		why := "this is a saga, and a verdict would not undo its steps"
		if f.Record.State.Terminal() {
			why = fmt.Sprintf("this is a saga that has ended (%v), so that nothing is to be decided", f.Record.State)
		}
		return c.refuseSaga(ctx, h, f.Record.Key, why)
	}
	if f.Record.Fence != c.Fence || f.Record.State != store.Unknown {
		return c.changed(f)
	}
	if err := c.checkShape(&f.Record); err != nil {
		return err
	}
	g, err := semel.New(h, &semel.Options{
		OnDoubt: semel.Park, Retention: time.Duration(c.Retention), MaxOutcome: 2 * maxBody, Holder: history.ResolvedBy + operator(e) + ": " + short(c.Reason),
	})
	if err != nil {
		return err
	}
	err = g.Resolve(ctx, f.Record, v)
	if errors.Is(err, store.ErrChanged) {
		now, err := look(ctx, h, f.Record.Key)
		if err != nil {
			return errors.Join(errRefused, err)
		}
		return c.changed(&now)
	}
	return err
}

// decisionError refuses a decision about a call or a saga. next has a command with its tenant
// and its key or id.
type decisionError struct{ why, next string }

// offer refuses a decision, and names those that make sense.
func offer(why string, next []string) error {
	return &decisionError{why, next[0] + " " + strings.Join(next[1:], "; or ")}
}

func (e *decisionError) Error() string { return e.WithoutNames() + "; " + e.next }

// Unwrap says that nothing has changed.
func (*decisionError) Unwrap() error { return errRefused }

// WithoutNames implements acts.NamingError.
func (e *decisionError) WithoutNames() string { return errRefused.Error() + ": " + e.why }

// errRefused marks the errors after which nothing has changed.
var errRefused = acts.ErrNothingChanged

// checkShape refuses an answer that callers of the operation could not read.
func (c *inspectResolveCmd) checkShape(r *store.Record) error {
	if c.Verdict != "happened" {
		return nil
	}
	switch {
	case c.Codec != "" && isHTTP(r):
		return fmt.Errorf("%w: this is a request over HTTP, whose answer has a status; give --status instead of --codec", errRefused)
	case c.Status != 0 && !isHTTP(r) && !c.HTTP:
		return fmt.Errorf("%w: the record does not show a request over HTTP. If it is a call of semel.Do, give its result by --codec json --body-file instead of --status, or no caller can read it; if it is a message, whose answer nobody reads, give --codec raw; if it is served by semelhttp with Options.Payload, add --http", errRefused)
	}
	return nil
}

// changed reports the present state of a record that is not in the expected state.
func (c *inspectResolveCmd) changed(f *store.Found) error {
	r := &f.Record
	if r.State == store.Processing {
		next := c.waitStep(r)
		if r.Lapsed(f.Now) {
			next = c.sweepStep()
		}
		return fmt.Errorf("%w: the record is processing, and only a parked (unknown) one can be resolved; its fence is %d. Next step: %s", errRefused, r.Fence, strings.Join(next, " "))
	}
	if r.State == store.Unknown {
		return &decisionError{fmt.Sprintf("the record has changed since it was seen; its fence is now %d", r.Fence), "look at it again before you use that: " + c.getCommand(r.Key)}
	}
	why, next := fmt.Sprintf("the record is %v, and only a parked (unknown) one can be resolved; its fence is %d", r.State, r.Fence), "look at it: "+c.getCommand(r.Key)
	switch r.State {
	case store.Completed:
		next = "nothing is to be done. To look at it: " + c.getCommand(r.Key)
	case store.Failed:
		next = "to let it run again: " + c.recordCommand("semel inspect reopen", r.Key, fmt.Sprintf(" --fence %d --reason TEXT --retention 7d", r.Fence))
	}
	return &decisionError{why, next}
}

// getCommand is the command that shows a record.
func (c *storeFlag) getCommand(k store.Key) string { return c.recordCommand("semel inspect get", k) }

// recordCommand is a command about a record.
func (c *storeFlag) recordCommand(words string, k store.Key, flags ...string) string {
	return shell.Command(words, []string{k.Value}, append([]string{shell.Flag("operation", k.Operation), tenantFlag(k), c.flags()}, flags...)...)
}

// tenantFlag is the flag for the tenant of a key, if it has one.
func tenantFlag(k store.Key) string {
	if k.Tenant == "" {
		return ""
	}
	return shell.Flag("tenant", k.Tenant)
}

// verdict makes the verdict from the flags.
func (c *inspectResolveCmd) verdict(e *env) (semel.Verdict, error) {
	if strings.TrimSpace(c.Reason) == "" {
		return semel.Verdict{}, wrong("--reason", "", "must not be empty")
	}
	if d := time.Duration(c.Retention); d < time.Second || d > 3650*24*time.Hour {
		return semel.Verdict{}, wrong("--retention", c.Retention, "must be from 1s to 3650d")
	}
	if c.Verdict != "happened" && (c.Status != 0 || c.BodyFile != "" || c.Codec != "" || len(c.Header) > 0) {
		return semel.Verdict{}, wrong("--verdict", c.Verdict, "has no answer; --status, --header, --codec and --body-file are for happened")
	}
	switch c.Verdict {
	case "did-not-happen":
		return semel.DidNotHappen(), nil
	case "failed":
		return semel.FailedForGood(&semel.Failure{Code: "resolved_failed", Message: "an operator found that it failed"}), nil
	}
	if c.Codec != "" {
		return c.encoded(e)
	}
	if c.Status == 0 {
		return semel.Verdict{}, wrong("--verdict", c.Verdict, "needs the answer that duplicates get: --status 200 to 599 for a request over HTTP, --codec and --body-file for a call of semel.Do, --codec raw for a message")
	}
	if c.Status < 200 || c.Status > 599 {
		return semel.Verdict{}, wrong("--status", c.Status, "must be from 200 to 599 for the verdict happened; for a call of semel.Do give --codec and --body-file")
	}
	o := store.Outcome{Code: c.Status}
	for _, line := range c.Header {
		name, value, ok := strings.Cut(line, ":")
		if !ok || strings.TrimSpace(name) == "" || strings.HasPrefix(strings.ToLower(name), "set-cookie") {
			return semel.Verdict{}, wrong("--header", line, `write "Name: value"; cookies are not kept`)
		}
		name = textproto.CanonicalMIMEHeaderKey(strings.TrimSpace(name))
		o.Header = append(o.Header, store.Header{Name: name, Value: strings.TrimSpace(value)})
	}
	var err error
	o.Body, err = c.body(e)
	return semel.Happened(o), err
}

// encoded makes the verdict for a call of semel.Do.
func (c *inspectResolveCmd) encoded(e *env) (semel.Verdict, error) {
	if c.Status != 0 || len(c.Header) > 0 {
		return semel.Verdict{}, wrong("--codec", c.Codec, "is for a call of semel.Do, whose result has no --status and no --header")
	}
	if c.Codec == "json" && c.BodyFile == "" {
		return semel.Verdict{}, wrong("--body-file", "", "is missing; it names the file with the result as json.Marshal writes it, or - for standard input")
	}
	body, err := c.body(e)
	if err != nil {
		return semel.Verdict{}, err
	}
	o := store.Outcome{Body: body, Codec: c.Codec}
	switch c.Codec {
	case "raw":
		o.Codec = ""
	case "json":
		if !json.Valid(body) {
			return semel.Verdict{}, wrong("--body-file", c.BodyFile, "is not JSON, so no caller could read it; write the result as json.Marshal does")
		}
	}
	return semel.Happened(o), nil
}

func (c *inspectResolveCmd) body(e *env) ([]byte, error) {
	if c.BodyFile == "" {
		return nil, nil
	}
	from := e.stdin
	if c.BodyFile != "-" {
		f, err := os.Open(c.BodyFile)
		if err != nil {
			return nil, wrong("--body-file", c.BodyFile, input.Unreadable(err, ""))
		}
		defer func() { _ = f.Close() }() // nothing was written
		from = f
	}
	body, err := io.ReadAll(io.LimitReader(from, maxBody+1))
	if err == nil && len(body) > maxBody {
		return nil, wrong("--body-file", c.BodyFile, fmt.Sprintf("has more than %d bytes, which is the most", maxBody))
	}
	return body, err
}

// log logs the verdict with its result.
func (c *inspectResolveCmd) log(e *env, k store.Key, result string, err error) {
	e.logAct(acts.Resolve, result, err, "operation", k.Operation, "tenant", k.Tenant,
		"key", k.Short(), "fence", c.Fence, "verdict", c.Verdict, "status", c.Status, "reason", c.Reason)
}

// operator returns the name of the user of the operating system.
func operator(e *env) string {
	name := "uid " + strconv.Itoa(os.Getuid())
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	if s := e.getenv("SUDO_USER"); s != "" {
		name += " (sudo: " + s + ")"
	}
	return name
}

// show writes the new state of the record.
func (c *inspectResolveCmd) show(ctx context.Context, e *env, h storeurl.Handle, k store.Key) error {
	f, steps, err := lookWithSteps(ctx, h, k)
	if err != nil {
		return err
	}
	v := viewOf(&f, false)
	v.addSteps(steps, false)
	if e.json {
		return json.NewEncoder(e.stdout).Encode(v)
	}
	_, err = fmt.Fprintf(e.stdout, "resolved: the record is %s now, with fence %d\n", v.State, v.Fence)
	if v.Answer != nil && v.Answer.NotKept {
		_, err = fmt.Fprintln(e.stdout, "the answer is too large for this store, so it is not kept: duplicates only learn that the call is done")
	}
	return err
}
