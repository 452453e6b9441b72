package console

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/acts"
	"github.com/semel-go/semel/internal/history"
	"github.com/semel-go/semel/internal/protocol"
	"github.com/semel-go/semel/saga"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/encrypted"
)

// recordPage is what the page of one record shows.
type recordPage struct {
	entry
	Events       []event
	Messages     callMessages
	FormerOwners []formerOwner
	OwnersKept   int // earlier ones are not kept; 0: there were none
	// The forms that are possible.
	CanResolve, CanReopen, CanDecide bool
	ReopenRefusal                    string // of a failed call with recorded steps
	IsHTTP                           bool   // the answer has a status and headers
	Stuck                            history.StuckSaga
}

// keyOf is the key in an address or a form.
func keyOf(form url.Values) (store.Key, error) {
	k := store.Key{Operation: form.Get("operation"), Tenant: form.Get("tenant"), Value: form.Get("key")}
	if k.Operation == "" || k.Value == "" {
		return k, badInput("The address names no record: it needs an operation and a key.")
	}
	return k, nil
}

// find reads a record.
func (c *Console) find(ctx context.Context, k store.Key) (store.Found, error) {
	f, err := c.store.Get(ctx, k)
	if errors.Is(err, store.ErrNotFound) {
		return f, notFound("There is no record with this key. It may have expired, or have been erased: the audit trail of semel erase says so. Or it belongs to another tenant or operation.")
	}
	return f, err
}

func (c *Console) record(ctx context.Context, r *http.Request) (any, error) {
	k, err := keyOf(r.URL.Query())
	if err != nil {
		return nil, err
	}
	f, err := c.find(ctx, k)
	if err != nil {
		return nil, err
	}
	steps, err := c.steps(ctx, &f.Record)
	unread := errors.Is(err, store.ErrCorrupt)
	if err != nil && !unread {
		return nil, err
	}
	p := recordPage{entry: entryOf(&f), IsHTTP: isHTTP(&f.Record)}
	p.Answer = c.keptAnswer(&f.Record)
	inDoubt := f.Record.State == store.Unknown
	p.CanResolve, p.CanDecide = inDoubt && !p.Saga, inDoubt && p.Saga && !unread // a decision about a saga names its steps
	if f.Record.State == store.Failed && !p.Saga && !unread {
		if p.ReopenRefusal = protocol.ReopenRefusal(&f.Record, steps); p.ReopenRefusal != "" && f.Record.Outcome.Codec == encrypted.Codec {
			p.ReopenRefusal = "has recorded steps, and only its result tells whether its attempts were used up; start the console with the encryption keys"
		}
		p.CanReopen = p.ReopenRefusal == ""
	}
	if p.CanDecide {
		p.Stuck = history.DescribeStuck(&f.Record, steps)
	}
	p.Events = c.story(&f, steps)
	if unread {
		p.Events = slices.Insert(p.Events, 1, unreadSteps(err, p.Saga))
	}
	p.Messages = c.messagesOf(ctx, k)
	past := history.Entries(&f.Record)
	for i := range f.Record.FormerOwners {
		o := &f.Record.FormerOwners[i]
		if !past[i].Operator { // the list is of processes
			p.FormerOwners = append(p.FormerOwners, formerOwner{fmt.Sprintf("%x", o.Owner), o.Holder, o.End(), o.Fence, o.Attempt, o.Ended})
		}
	}
	if len(f.Record.FormerOwners) == store.MaxFormerOwners {
		p.OwnersKept = store.MaxFormerOwners
	}
	return p, nil
}

// formerOwner is a row of the table of former owners.
type formerOwner struct {
	Owner, Holder, End string
	Fence              uint64
	Attempt            int
	Ended              time.Time
}

// steps reads the steps of a record. A record that has changed meanwhile has none to
// show; the page is read again when it has.
func (c *Console) steps(ctx context.Context, r *store.Record) ([]store.Step, error) {
	j, ok := store.As[store.Journal](c.store)
	if !ok {
		return nil, nil
	}
	steps, err := j.Steps(ctx, r.Lease())
	if errors.Is(err, store.ErrLeaseLost) {
		return nil, nil
	}
	return steps, err
}

// seen reads the record of a form, which must be the one that the operator has seen. With an
// error the Record has the key that the log names.
func (c *Console) seen(ctx context.Context, form url.Values) (store.Record, error) {
	k, err := keyOf(form)
	if err != nil {
		return store.Record{}, err
	}
	f, err := c.find(ctx, k)
	if err != nil {
		return store.Record{Key: k}, err
	}
	if strconv.FormatUint(f.Record.Fence, 10) != form.Get("fence") {
		return f.Record, &changedError{now: entryOf(&f).State}
	}
	return f.Record, nil
}

// reasonIn is the reason in a form. A record keeps it, so it has a limit.
func reasonIn(form url.Values) (string, error) {
	const most = 400 // characters, as in the pages
	reason := strings.TrimSpace(form.Get("reason"))
	switch n := utf8.RuneCountInString(reason); {
	case n == 0:
		return "", badField("reason", "Say why: the reason is kept with your decision.")
	case n > most:
		return "", badField("reason", fmt.Sprintf("The reason has %d characters; it may have at most %d.", n, most))
	}
	return reason, nil
}

// changeRecord carries out a form of the record's page.
func (c *Console) changeRecord(ctx context.Context, operator string, form url.Values) (which string, err error) {
	verb := form.Get("act")
	reason, err := reasonIn(form)
	if err != nil {
		return "", err
	}
	fence, err := strconv.ParseUint(form.Get("fence"), 10, 64)
	if err != nil {
		return "", badInput("The field fence must be the number that the page of the record shows.")
	}
	act := Act{Operator: operator, Reason: reason, Fence: fence}
	var carryOut func(r store.Record, who string) error
	switch verb {
	case "reopen":
		which, act.Verb = "reopen", acts.Reopen
		carryOut = func(r store.Record, who string) error { return c.reopen(ctx, r, who) }
	case "did-not-happen", "failed", "happened":
		which, act.Verb, act.Verdict = "resolve", acts.Resolve, verb
		carryOut = func(r store.Record, who string) error { return c.resolve(ctx, r, verb, who, form) }
	case "retry", "back", "skip":
		which, act.Verb, act.NotHappened = "decide", "saga "+verb, form["not-happened"]
		if verb == "skip" { // the form names a step in any case
			act.Step = strings.TrimSpace(form.Get("step"))
		}
		carryOut = func(r store.Record, who string) error { return c.decide(ctx, r, verb, who, form) }
	default:
		return "", badInput(fmt.Sprintf("There is no action %q; choose happened, did-not-happen, failed or reopen, and for a saga retry, back or skip.", verb))
	}
	r, err := c.seen(ctx, form)
	act.Key = r.Key
	if err != nil {
		c.log(ctx, act, acts.Result(err), err)
		return "", err
	}
	return which, c.audited(ctx, act, func() error {
		if which != "decide" && protocol.IsSaga(r.Key) {
			return badInput(onlySagas)
		}
		return carryOut(r, operator+": "+reason)
	})
}

// decide is a decision about a stuck saga.
func (c *Console) decide(ctx context.Context, r store.Record, verb, who string, form url.Values) error {
	i := saga.Intervention{Why: who, Back: verb == "back", NotHappened: form["not-happened"]}
	if verb == "skip" {
		i.Done, i.Result = strings.TrimSpace(form.Get("step")), []byte(strings.TrimSpace(form.Get("result")))
		if i.Done == "" {
			return badField("step", "To skip a step, name it.")
		}
	}
	err := saga.Intervene(ctx, c.store, r, i)
	if e, ok := errors.AsType[*semel.Error](err); ok && errors.Is(err, semel.ErrInvalid) {
		field, hint := notJSON(i.Result)
		return badField(field, "Nothing was decided: "+e.Cause.Error()+hint)
	}
	return err
}
