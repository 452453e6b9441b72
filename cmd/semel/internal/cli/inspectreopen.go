package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/cmd/semel/internal/config"
	"github.com/semel-go/semel/cmd/semel/internal/storeurl"
	"github.com/semel-go/semel/internal/acts"
	"github.com/semel-go/semel/internal/history"
	"github.com/semel-go/semel/internal/protocol"
	"github.com/semel-go/semel/store"
)

type inspectReopenCmd struct {
	storeFlag
	keyFlags
	Fence     uint64          `name:"fence" required:"" placeholder:"N" help:"The fence that semel inspect get has shown: that failure is reopened, and no later one."`
	Reason    string          `name:"reason" required:"" placeholder:"TEXT" help:"The reason. The log and the record keep it."`
	Retention config.Duration `name:"retention" placeholder:"TIME" default:"7d" help:"How long the reopened record and its recorded steps are kept (default ${default}). Use at least the retention of the process that made the record, which is 1d for semel proxy and a Guard, and 7d for semel deliver and consumers, unless it is set. After this time the record and its steps are deleted, and a message that is redriven then runs all its steps again. If you are not sure, give a longer time."`
}

// Help implements kong.HelpProvider.
func (*inspectReopenCmd) Help() string {
	return `A failed request, for example one whose attempts an outage has used up, answers every duplicate with its failure. Reopen it, and the next request or redriven message with its key runs again, with all its attempts. Only a failed record can be reopened, because its effect did not happen; a parked one is for semel inspect resolve. A request whose handler has recorded steps is reopened only if its attempts were used up: recorded steps do not run again, although the handler may have undone them. Undo in the other systems what is left of it, and send it with another key. A failed saga is not reopened, because its steps are undone: start one with another id. Each use writes one line of JSON to standard error with the operator, the reason and the result.

Example:

    semel inspect reopen k1 --operation billing --fence 1795000000000000 --reason "the bank was down until 14:00"
`
}

func (c *inspectReopenCmd) Run(ctx context.Context, e *env) error {
	if strings.TrimSpace(c.Reason) == "" {
		return wrong("--reason", "", "must not be empty")
	}
	if d := time.Duration(c.Retention); d < time.Second || d > 3650*24*time.Hour {
		return wrong("--retention", c.Retention, "must be from 1s to 3650d")
	}
	return c.with(ctx, e.log, func(h storeurl.Handle) error {
		f, err := c.find(ctx, h)
		if err != nil {
			return err
		}
		k := f.Record.Key
		result, err := e.act(c.actOn(acts.Reopen, k, c.Fence, c.Reason, nil), func() error { return c.reopen(ctx, e, h, k) })
		e.logAct(acts.Reopen, result, err, "operation", k.Operation, "tenant", k.Tenant, "key", k.Short(), "fence", c.Fence, "reason", c.Reason)
		if err != nil {
			return err
		}
		return c.show(ctx, e, h, k)
	})
}

func (c *inspectReopenCmd) reopen(ctx context.Context, e *env, h storeurl.Handle, k store.Key) error {
	f, err := look(ctx, h, k)
	switch {
	case err != nil:
		return err
	case protocol.IsSaga(k):
		why := "this is a saga, and it has not failed"
		switch f.Record.State {
		case store.Completed:
			why = "this is a saga that has completed"
		case store.Failed:
			why = "this is a saga, which is not reopened: its steps are undone, so that it would fail again; start one with another id"
		}
		return c.refuseSaga(ctx, h, k, why)
	case f.Record.State != store.Failed:
		return &decisionError{fmt.Sprintf("the record is %v, and only a failed one can be reopened; its fence is %d", f.Record.State, f.Record.Fence), "look at it: " + c.getCommand(k)}
	case f.Record.Fence != c.Fence:
		return &decisionError{fmt.Sprintf("the record has changed since it was seen; its fence is now %d", f.Record.Fence), "look at it again before you use that: " + c.getCommand(k)}
	}
	g, err := semel.New(h, &semel.Options{Retention: time.Duration(c.Retention), Holder: history.ReopenedBy + operator(e) + ": " + short(c.Reason)})
	if err != nil {
		return err
	}
	err = g.Reopen(ctx, f.Record, operator(e)+": "+c.Reason)
	if refused, ok := errors.AsType[*semel.Error](err); ok && errors.Is(err, semel.ErrInvalid) {
		return &decisionError{refused.Cause.Error(), "look at it: " + c.getCommand(k)}
	}
	if errors.Is(err, store.ErrChanged) {
		return &decisionError{"the record has changed since it was seen", "look at it again: " + c.getCommand(k)}
	}
	return err
}

// refuseSaga refuses to change a saga as if it were a call, and offers the commands for it.
func (c *storeFlag) refuseSaga(ctx context.Context, h storeurl.Handle, k store.Key, why string) error {
	f, steps, err := lookWithSteps(ctx, h, k)
	if err != nil {
		return errors.Join(errRefused, err)
	}
	if next := c.nextStep(&f.Record, steps); next != nil {
		return offer(why, next)
	}
	return &decisionError{why, "look at it: " + c.showAgain(k)}
}

// show writes the new state of the record.
func (c *inspectReopenCmd) show(ctx context.Context, e *env, h storeurl.Handle, k store.Key) error {
	f, err := look(ctx, h, k)
	if err != nil {
		return err
	}
	v := viewOf(&f, false)
	if e.json {
		return json.NewEncoder(e.stdout).Encode(v)
	}
	_, err = fmt.Fprintf(e.stdout, "reopened: the record is %s now, with fence %d\n", v.State, v.Fence)
	return err
}

// formerOwnerView is a former owner of a record as operators see it.
type formerOwnerView struct {
	Owner    string      `json:"owner"`
	Holder   string      `json:"holder"`
	Fence    uint64      `json:"fence"`
	Attempt  int         `json:"attempt"`
	State    store.State `json:"state"` // of the record, when the owner was replaced
	Next     store.State `json:"next"`  // the state that followed
	HowEnded string      `json:"how_ended"`
	Ended    time.Time   `json:"ended"`

	isSaga   bool   // of a saga
	operator bool   // an operator who decided, and no process
	name     string // of the attempt, such as "attempt 1 after the reopening"
}

// String is the former owner in one line.
func (o *formerOwnerView) String() string {
	until := "until"
	switch { // it had no process
	case o.State == store.Unknown && o.isSaga:
		until = "stuck since"
	case o.State == store.Unknown:
		until = "in doubt since"
	}
	return fmt.Sprintf("%s %s: %s; %s, %s, fence %d, owner %s", until, o.Ended.Format(time.RFC3339Nano), o.HowEnded, o.Holder, o.name, o.Fence, o.Owner)
}

// decisionView is what somebody has decided about a call.
type decisionView struct {
	Time         time.Time `json:"time"`
	Decision     string    `json:"decision"` // such as "it happened", "reopened" or "retry"
	By           string    `json:"by"`       // the process or the operator, and the operator's reason
	DoubtNotKept bool      `json:"doubt_not_kept,omitempty"`

	// Of a decision about a saga: the step that keeps it, and how the saga was stuck.
	Step  string     `json:"step,omitempty"`
	Stuck *stuckView `json:"stuck,omitempty"`
}

// String is the decision in one line.
func (d *decisionView) String() string {
	s := fmt.Sprintf("at %s: %s", d.Time.Format(time.RFC3339Nano), d.Decision)
	if d.By != "" {
		s += "; " + d.By
	}
	if d.DoubtNotKept {
		s += "; the record does not keep since when it was in doubt"
	}
	return s
}

// downstreamKeyView is a key that a handler has sent to another system.
type downstreamKeyView struct {
	Name string `json:"name"`
	Key  string `json:"key"`
}

// addDownstreamKeys adds keys that the handler of a record has sent, by their names. If a
// name has a #, the part before the last one is the name of a step.
func (v *view) addDownstreamKeys(k store.Key, names []string) {
	for _, name := range names {
		of, last := k, name
		if i := strings.LastIndex(name, "#"); i >= 0 {
			of.Operation, last = k.Operation+"#"+name[:i], name[i+1:]
		}
		v.DownstreamKeys = append(v.DownstreamKeys, downstreamKeyView{name, of.Downstream(last)})
	}
}

// key is the key of the record.
func (v *view) key() store.Key {
	return store.Key{Operation: v.Operation, Tenant: v.Tenant, Value: v.Key}
}

// sagaStepKey is the At.Key of a recorded step of a saga, or of its compensation. Empty: the step
// is none of the definition. A Parked step is recorded as begun before it sends its key.
func sagaStepKey(of store.Key, recorded string) string {
	step, _, begun := strings.Cut(recorded, history.SagaBegun)
	if !begun && history.StepEvent(recorded) != "" || strings.HasPrefix(recorded, "saga:") {
		return ""
	}
	return of.Downstream(step)
}

// sweepStep says what an operator can do about a call whose process is gone.
func (c *storeFlag) sweepStep() []string {
	return []string{"its lease has ended; the next repeat or a sweep acts on it. To sweep now:", "semel sweep --once" + c.flags()}
}

// waitStep says what an operator can do about a call that runs.
func (c *storeFlag) waitStep(r *store.Record) []string {
	return []string{"wait: it runs, and its process renews the lease. If the process has died, after " + r.Until.Format(time.RFC3339Nano) + ":", "semel sweep --once" + c.flags()}
}
