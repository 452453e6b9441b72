package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/semel-go/semel/cmd/semel/internal/storeurl"
	"github.com/semel-go/semel/internal/acts"
	"github.com/semel-go/semel/saga"
	"github.com/semel-go/semel/store"
)

type sagaCmd struct {
	List  sagaListCmd  `cmd:"" help:"List the sagas that have not ended."`
	Stats sagaStatsCmd `cmd:"" help:"Count the sagas that are stuck or due. Alerts use it."`
	Show  sagaShowCmd  `cmd:"" help:"Show a saga and its steps."`
	Retry sagaRetryCmd `cmd:"" help:"Let a stuck saga go on."`
	Skip  sagaSkipCmd  `cmd:"" help:"Say that a step, or a compensation, of a stuck saga is done."`
	Back  sagaBackCmd  `cmd:"" help:"Turn a stuck saga back."`
}

// sagaFlags name one saga.
type sagaFlags struct {
	Name   raw `arg:"" help:"The name of the definition."`
	ID     raw `arg:"" name:"id" help:"The id of the saga."`
	Tenant raw `name:"tenant" placeholder:"NAME" help:"The tenant of the saga; leave it out if all tenants share it."`
}

func (c *sagaFlags) key() store.Key { return saga.Key(string(c.Name), string(c.Tenant), string(c.ID)) }

type sagaListCmd struct {
	storeFlag
	Name  raw  `arg:"" help:"The name of the definition."`
	Stuck bool `name:"stuck" help:"Only sagas that wait for an operator."`
	Limit int  `name:"limit" placeholder:"N" default:"100" help:"Largest number of sagas to look at (default ${default})."`
}

// Help implements kong.HelpProvider.
func (*sagaListCmd) Help() string {
	return `Lists the sagas of a definition that have not ended, those that are due first. With --json it writes one line of JSON for each saga. It reads no other records. To see the sagas of all definitions, stuck ones or all that have not ended, look for their operations, which are NAME##saga, in the list of records, as the last two examples do.

Examples:

    semel saga list order
    semel saga list order --stuck --json
    semel inspect list --state parked | grep '##saga '
    semel inspect list --state started,processing,released,unknown --limit 100000 | grep '##saga '
`
}

// listedSaga is a saga as semel saga list shows it.
type listedSaga struct {
	Tenant    string    `json:"tenant"`
	ID        string    `json:"id"`
	State     string    `json:"state"`
	Due       time.Time `json:"due"` // when a worker looks at it
	Fence     uint64    `json:"fence"`
	Attempts  int       `json:"attempts"`
	Created   time.Time `json:"created"`
	LastError string    `json:"last_error,omitempty"`
}

// sagaState is the state of a saga's record in words.
func sagaState(s store.State) string {
	switch s {
	case store.Unknown:
		return "stuck"
	case store.Processing:
		return "running"
	case store.Released:
		return "waiting"
	}
	return s.String()
}

func (c *sagaListCmd) Run(ctx context.Context, e *env) error {
	if c.Limit < 1 {
		return wrong("--limit", c.Limit, "must be at least 1")
	}
	return c.with(ctx, e.log, func(h storeurl.Handle) error {
		timers, ok := store.As[store.Timers](h)
		if !ok {
			return errors.New("this store keeps no sagas")
		}
		due, _, err := timers.DueTimers(ctx, saga.Key(string(c.Name), "", "").Operation, 200*365*24*time.Hour, c.Limit)
		if err != nil {
			return err
		}
		t := tabwriter.NewWriter(e.stdout, 0, 0, 2, ' ', 0)
		show := c.table(t)
		if e.json {
			out := json.NewEncoder(e.stdout)
			show = func(l *listedSaga) error { return out.Encode(l) }
		}
		listed := 0
		for _, timer := range due {
			f, err := h.Get(ctx, timer.Key)
			if errors.Is(err, store.ErrNotFound) {
				continue
			}
			if err != nil {
				return err
			}
			r := &f.Record
			if r.State.Terminal() || c.Stuck && r.State != store.Unknown {
				continue
			}
			if err := show(&listedSaga{r.Key.Tenant, r.Key.Value, sagaState(r.State), timer.Due, r.Fence, r.Attempt, r.Created, r.LastError}); err != nil {
				return err
			}
			listed++
		}
		if listed == 0 && !e.json {
			_, _ = fmt.Fprintf(e.stderr, "semel saga list: there are no such sagas of the definition %q. semel saga show shows one that has ended; semel inspect list | grep '##saga ' shows the names of others\n", string(c.Name))
		}
		if len(due) == c.Limit {
			_, _ = fmt.Fprintf(e.stderr, "semel saga list: there may be more than %d; raise --limit to see them\n", c.Limit)
		}
		return t.Flush()
	})
}

func (c *sagaListCmd) table(w io.Writer) func(*listedSaga) error {
	begun := false
	return func(l *listedSaga) error {
		if !begun {
			begun = true
			if err := row(w, "STATE", "TENANT", "ID", "FENCE", "ATTEMPTS", "DUE", "LAST ERROR"); err != nil {
				return err
			}
		}
		return row(w, l.State, l.Tenant, l.ID, fmt.Sprint(l.Fence), fmt.Sprint(l.Attempts), l.Due.Format(time.RFC3339), short(l.LastError))
	}
}

type sagaShowCmd struct {
	storeFlag
	sagaFlags
	ShowBody bool `name:"show-body" help:"Also show the input and the results of steps."`
}

// Help implements kong.HelpProvider.
func (*sagaShowCmd) Help() string {
	return `Shows the record of a saga and its steps in the order in which they were recorded: its input (saga:input), the steps, the point where it turned back (saga:back), compensations (NAME:undo) and decisions of operators (saga:operator:N).

Example:

    semel saga show order o1 --tenant ann --show-body
`
}

func (c *sagaShowCmd) Run(ctx context.Context, e *env) error {
	return c.with(ctx, e.log, func(h storeurl.Handle) error {
		f, steps, err := lookWithSteps(ctx, h, c.key())
		if err != nil {
			return err
		}
		v := viewOf(&f, c.ShowBody)
		v.addSteps(steps, c.ShowBody)
		v.next = c.nextStep(&f.Record)
		if e.json {
			return json.NewEncoder(e.stdout).Encode(v)
		}
		return v.print(e.stdout)
	})
}

// decideFlags are common to the commands that decide about a stuck saga.
type decideFlags struct {
	storeFlag
	Tenant      raw      `name:"tenant" placeholder:"NAME" help:"The tenant of the saga; leave it out if all tenants share it."`
	Fence       uint64   `name:"fence" required:"" placeholder:"N" help:"The fence that semel saga show has shown: the decision is about that state of the saga, and no later one."`
	Reason      string   `name:"reason" required:"" placeholder:"TEXT" help:"The reason. The log and the record keep it."`
	NotHappened []string `name:"not-happened" placeholder:"STEP" help:"A Parked step in doubt that did not happen."`
}

// decide applies a decision, and writes a line of JSON about it to standard error.
func (c *decideFlags) decide(ctx context.Context, e *env, act string, k store.Key, i saga.Intervention) error {
	if strings.TrimSpace(c.Reason) == "" {
		return wrong("--reason", "", "must not be empty")
	}
	i.Why, i.NotHappened = operator(e)+": "+c.Reason, c.NotHappened
	return c.with(ctx, e.log, func(h storeurl.Handle) error {
		detail := map[string]any{"step": i.Done, "not_happened": c.NotHappened}
		result, err := e.act(c.actOn(act, k, c.Fence, c.Reason, detail), func() error { return c.intervene(ctx, h, k, i) })
		e.logAct(act, result, err, "operation", k.Operation, "tenant", k.Tenant,
			"key", k.Short(), "fence", c.Fence, "reason", c.Reason, "step", i.Done, "not_happened", c.NotHappened)
		if err != nil {
			return err
		}
		if e.json {
			return json.NewEncoder(e.stdout).Encode(map[string]string{"result": result})
		}
		_, err = fmt.Fprintln(e.stdout, "decided: a worker goes on with the saga")
		return err
	})
}

func (c *decideFlags) intervene(ctx context.Context, h storeurl.Handle, k store.Key, i saga.Intervention) error {
	f, err := look(ctx, h, k)
	switch {
	case err != nil:
		return err
	case f.Record.Fence != c.Fence:
		return fmt.Errorf("%w: the saga has changed since it was seen; its fence is now %d. Look at it again (semel saga show) before you use that", errRefused, f.Record.Fence)
	}
	return saga.Intervene(ctx, h, f.Record, i)
}

type sagaRetryCmd struct {
	Name raw `arg:"" help:"The name of the definition."`
	ID   raw `arg:"" name:"id" help:"The id of the saga."`
	decideFlags
}

// Help implements kong.HelpProvider.
func (*sagaRetryCmd) Help() string {
	return `A stuck saga goes on where it was, with all its attempts. If a Parked step is in doubt, find out whether it happened first: if not, name it with --not-happened; if it did, use semel saga skip. Each use writes one line of JSON to standard error with the operator, the reason and the result, and the record keeps both.

Example:

    semel saga retry order o1 --tenant ann --fence 1795000000000000 --reason "the bank is up again" --not-happened charge
`
}

func (c *sagaRetryCmd) Run(ctx context.Context, e *env) error {
	return c.decide(ctx, e, acts.SagaRetry, saga.Key(string(c.Name), string(c.Tenant), string(c.ID)), saga.Intervention{})
}

type sagaSkipCmd struct {
	Name   raw    `arg:"" help:"The name of the definition."`
	ID     raw    `arg:"" name:"id" help:"The id of the saga."`
	Step   string `arg:"" help:"The step, or STEP:undo for its compensation."`
	Result string `name:"result" placeholder:"JSON" default:"null" help:"The result of the step (default ${default})."`
	decideFlags
}

// Help implements kong.HelpProvider.
func (*sagaSkipCmd) Help() string {
	return `The step counts as done, with the given result, and does not run. The saga goes on after it. A compensation has no result.

Examples:

    semel saga skip order o1 charge --result '"payment 4711"' --fence 1795000000000000 --reason "the bank has it"
    semel saga skip order o1 charge:undo --fence 1795000000000000 --reason "refunded by hand"
`
}

func (c *sagaSkipCmd) Run(ctx context.Context, e *env) error {
	if !json.Valid([]byte(c.Result)) {
		return wrong("--result", c.Result, "must be JSON")
	}
	i := saga.Intervention{Done: c.Step, Result: []byte(c.Result)}
	return c.decide(ctx, e, acts.SagaSkip, saga.Key(string(c.Name), string(c.Tenant), string(c.ID)), i)
}

type sagaBackCmd struct {
	Name raw `arg:"" help:"The name of the definition."`
	ID   raw `arg:"" name:"id" help:"The id of the saga."`
	decideFlags
}

// Help implements kong.HelpProvider.
func (*sagaBackCmd) Help() string {
	return `No step of the saga starts any more, and the compensations of its steps run. The saga ends as failed, with the code ` + saga.CodeOperator + `. If a Parked step is in doubt, say whether it happened: with --not-happened, or before with semel saga skip.

Example:

    semel saga back order o1 --tenant ann --fence 1795000000000000 --reason "the customer has cancelled"
`
}

func (c *sagaBackCmd) Run(ctx context.Context, e *env) error {
	return c.decide(ctx, e, acts.SagaBack, saga.Key(string(c.Name), string(c.Tenant), string(c.ID)), saga.Intervention{Back: true})
}
