package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/cmd/semel/internal/shell"
	"github.com/semel-go/semel/cmd/semel/internal/storeurl"
	"github.com/semel-go/semel/internal/acts"
	"github.com/semel-go/semel/internal/history"
	"github.com/semel-go/semel/internal/protocol"
	"github.com/semel-go/semel/saga"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/encrypted"
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
	Name   raw `arg:"" help:"The name of the definition; semel saga list shows the names."`
	ID     raw `arg:"" name:"id" help:"The id of the saga; semel saga list shows the ids."`
	Tenant raw `name:"tenant" placeholder:"NAME" help:"The tenant of the saga; leave it out if all tenants share it."`
}

func (c *sagaFlags) key() store.Key { return saga.Key(string(c.Name), string(c.Tenant), string(c.ID)) }

type sagaShowCmd struct {
	sagaStoreFlag
	sagaFlags
	ShowBody bool `name:"show-body" help:"Also show the input and the results of steps."`
}

// Help implements kong.HelpProvider.
func (*sagaShowCmd) Help() string {
	return `Shows the record of a saga and its steps in the order in which they were recorded: its input (saga:input), the steps, the point where it turned back (saga:back), compensations (NAME:undo) and decisions of operators, each after the attempt that was stuck. For a stuck saga it ends with the decisions that make sense.

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
		v.next = c.nextStep(&f.Record, steps)
		if e.json {
			return json.NewEncoder(e.stdout).Encode(v)
		}
		return v.print(e.stdout)
	})
}

// stuckView is an attempt of a saga that waited for an operator.
type stuckView struct {
	Since   time.Time `json:"since"`
	Attempt int       `json:"attempt"`
	Error   string    `json:"error"`
}

// String is the attempt in one line.
func (s *stuckView) String() string {
	if s == nil {
		return "the record does not keep since when and why, because an earlier version has recorded the decision"
	}
	return fmt.Sprintf("since %s in attempt %d: %s", s.Since.Format(time.RFC3339Nano), s.Attempt, s.Error)
}

// decisionIn is the decision about a saga that a step keeps; nil if it keeps none.
func decisionIn(s *store.Step) *decisionView {
	d, ok, err := history.SagaDecisionIn(s)
	if !ok {
		return nil
	}
	v := &decisionView{Time: s.Recorded, Step: s.Name, Decision: d.String(), By: d.Why}
	switch {
	case err != nil && s.Outcome.Codec == encrypted.Codec:
		v.Decision = "encrypted; --encryption-keys shows it"
	case err != nil:
		v.Decision = "not readable: " + err.Error()
	}
	if d.Stuck != nil {
		v.Stuck = &stuckView{Since: d.Stuck.Since, Attempt: d.Stuck.Attempt, Error: d.Stuck.Error}
	}
	return v
}

// decideFlags are common to the commands that decide about a stuck saga.
type decideFlags struct {
	sagaStoreFlag
	Tenant      raw      `name:"tenant" placeholder:"NAME" help:"The tenant of the saga; leave it out if all tenants share it."`
	Fence       uint64   `name:"fence" required:"" placeholder:"N" help:"The fence that semel saga show has shown: the decision is about that state of the saga, and no later one."`
	Reason      string   `name:"reason" required:"" placeholder:"TEXT" help:"The reason. The log and the record keep it."`
	NotHappened []string `name:"not-happened" placeholder:"STEP" sep:"none" help:"A Parked step in doubt that did not happen, so that it may run again. Also the step of an earlier skip that the saga could not use, such as one with a wrong result. May be given several times."`
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
		_, err = fmt.Fprintln(e.stdout, "decided; a worker continues the saga. Start one if none runs (Saga.Work)")
		return err
	})
}

func (c *decideFlags) intervene(ctx context.Context, h storeurl.Handle, k store.Key, i saga.Intervention) error {
	f, steps, err := lookWithSteps(ctx, h, k)
	if err != nil {
		return err
	}
	refuse := func(why, next string) error { return &decisionError{why, next} }
	r, stuck := &f.Record, history.DescribeStuck(&f.Record, steps)
	undecided, inDoubt := stuck.Undecided(i.NotHappened, i.Done, i.Back)
	switch {
	case r.State.Terminal():
		return refuse(fmt.Sprintf("the saga has ended: it is %v", r.State), "look at it: "+c.showAgain(k))
	case r.State != store.Unknown:
		return refuse(fmt.Sprintf("the saga is %s, and only a stuck one waits for a decision", sagaState(r.State)), "look at it: "+c.showAgain(k))
	case r.Fence != c.Fence:
		return refuse(fmt.Sprintf("the saga has changed since it was seen; its fence is now %d", r.Fence), "look at it again before you use that: "+c.showAgain(k))
	case i.Back && stuck.Back:
		return offer("it cannot turn back a second time", c.nextStep(r, steps))
	case inDoubt && !slices.ContainsFunc(i.NotHappened, func(name string) bool { return !slices.Contains(stuck.InDoubt, name) }):
		return offer(fmt.Sprintf("step %q may have happened, so that the saga would be stuck at it again", undecided), c.nextStep(r, steps))
	}
	err = saga.Intervene(ctx, h, f.Record, i)
	invalid, _ := errors.AsType[*semel.Error](err)
	switch {
	case errors.Is(err, store.ErrChanged):
		return refuse("the saga has changed since it was seen", "look at it again: "+c.showAgain(k))
	case errors.Is(err, semel.ErrInvalid) && invalid != nil:
		return refuse(invalid.Cause.Error(), "look at it: "+c.showAgain(k))
	}
	return err
}

// sagaNotFound says where a saga can be that is not there under its name.
func sagaNotFound(k store.Key) error {
	name := strings.TrimSuffix(k.Operation, protocol.SagaSuffix)
	searched := fmt.Sprintf("saga %q of tenant %q with this id", name, k.Tenant)
	if k.Tenant == "" {
		searched = fmt.Sprintf("saga %q without a tenant with this id; if it is of a tenant, give --tenant", name)
	}
	return noRecordError("not found: " + searched + ". One that has ended may have expired, or have been erased: the audit trail of semel erase (its --audit) says so. " +
		"semel saga list shows the names, tenants and ids, as they are stored, of the sagas that have not ended")
}

// showAgain is the command that shows a saga.
func (c *storeFlag) showAgain(k store.Key) string {
	return shell.Command("semel saga show", []string{strings.TrimSuffix(k.Operation, protocol.SagaSuffix), k.Value}, tenantFlag(k), c.flags())
}

type sagaRetryCmd struct {
	Name raw `arg:"" help:"The name of the definition; semel saga list shows the names."`
	ID   raw `arg:"" name:"id" help:"The id of the saga; semel saga list shows the ids."`
	decideFlags
}

// Help implements kong.HelpProvider.
func (*sagaRetryCmd) Help() string {
	return `A stuck saga goes on where it was, with all its attempts. If a Parked step is in doubt, find out whether it happened first: if not, name it with --not-happened; if it did, use semel saga skip. Without either it would be stuck there again, so it is refused. Each use writes one line of JSON to standard error with the operator, the reason and the result, and the record keeps both.

Example:

    semel saga retry order o1 --tenant ann --fence 1795000000000000 --reason "the bank is up again" --not-happened charge
`
}

func (c *sagaRetryCmd) Run(ctx context.Context, e *env) error {
	return c.decide(ctx, e, acts.SagaRetry, saga.Key(string(c.Name), string(c.Tenant), string(c.ID)), saga.Intervention{})
}

type sagaSkipCmd struct {
	Name   raw    `arg:"" help:"The name of the definition; semel saga list shows the names."`
	ID     raw    `arg:"" name:"id" help:"The id of the saga; semel saga list shows the ids."`
	Step   string `arg:"" help:"The step, or STEP:undo for its compensation."`
	Result string `name:"result" placeholder:"JSON" help:"The result that the step would have returned, as JSON, or null. Required for a step; a compensation has none."`
	decideFlags
}

// Help implements kong.HelpProvider.
func (*sagaSkipCmd) Help() string {
	return `The step counts as done, with the given result, and does not run. The saga goes on after it. Later steps and the compensation of the step get the result, so --result is required; null is the zero value of the step's type. If the name is no step, or the result does not fit the step, the saga is stuck at that, and the next decision takes its place; otherwise a skip cannot be taken back. A compensation (STEP:undo) has no result, and --result is refused for it.

Examples:

    semel saga skip order o1 charge --result '"payment 4711"' --fence 1795000000000000 --reason "the bank has it"
    semel saga skip order o1 charge:undo --fence 1795000000000000 --reason "refunded by hand"
`
}

func (c *sagaSkipCmd) Run(ctx context.Context, e *env) error {
	switch isUndo := strings.HasSuffix(c.Step, history.SagaUndo); {
	case isUndo && c.Result != "":
		return wrong("--result", c.Result, "must be left out, because a compensation has no result")
	case !isUndo && strings.Contains(c.Step, ":"):
		return wrong("STEP", c.Step, "must be a step, or the compensation of one, which ends with "+history.SagaUndo)
	case !isUndo && !json.Valid([]byte(c.Result)):
		return wrong("--result", c.Result, `must be the result that the step would have returned, as JSON, such as '"tx-1"' with both pairs of quotes, or null`)
	}
	i := saga.Intervention{Done: c.Step, Result: []byte(c.Result)}
	return c.decide(ctx, e, acts.SagaSkip, saga.Key(string(c.Name), string(c.Tenant), string(c.ID)), i)
}

type sagaBackCmd struct {
	Name raw `arg:"" help:"The name of the definition; semel saga list shows the names."`
	ID   raw `arg:"" name:"id" help:"The id of the saga; semel saga list shows the ids."`
	decideFlags
}

// Help implements kong.HelpProvider.
func (*sagaBackCmd) Help() string {
	return `No step of the saga starts any more, and the compensations of its steps run. The saga ends as failed, with the code ` + saga.CodeOperator + `. A saga that has turned back already is refused: semel saga retry tries its compensation again, and semel saga skip says that it was done by hand. If a Parked step is in doubt, say whether it happened: with --not-happened, or before with semel saga skip. Without that the saga would be stuck at it again, so it is refused.

Example:

    semel saga back order o1 --tenant ann --fence 1795000000000000 --reason "the customer has cancelled"
`
}

func (c *sagaBackCmd) Run(ctx context.Context, e *env) error {
	return c.decide(ctx, e, acts.SagaBack, saga.Key(string(c.Name), string(c.Tenant), string(c.ID)), saga.Intervention{Back: true})
}
