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

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/acts"
	"github.com/semel-go/semel/internal/history"
	"github.com/semel-go/semel/internal/lapsed"
	"github.com/semel-go/semel/saga"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/encrypted"
)

// event is one line of a record's story.
type event struct {
	When   time.Time // zero: the record does not keep it
	What   string
	Detail string
	Next   string // what to do about it
	Failed bool
	Result *answer
}

// recordPage is what the page of one record shows.
type recordPage struct {
	entry
	Events       []event
	FormerOwners []formerOwner
	OwnersKept   int // earlier ones are not kept; 0: there were none
	// The forms that are possible.
	CanResolve, CanReopen, CanDecide bool
	IsHTTP                           bool // the answer has a status and headers
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
	if err != nil {
		return nil, err
	}
	p := recordPage{entry: entryOf(&f), IsHTTP: isHTTP(&f.Record)}
	p.Answer = c.keptAnswer(&f.Record)
	inDoubt := f.Record.State == store.Unknown
	p.CanResolve, p.CanDecide = inDoubt && !p.Saga, inDoubt && p.Saga
	p.CanReopen = f.Record.State == store.Failed && !p.Saga
	if p.CanDecide {
		p.Stuck = history.StuckOf(&f.Record, steps)
	}
	p.Events = c.story(&f, steps)
	past := history.Of(&f.Record)
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

// story is what the record says about its past, the earliest first.
func (c *Console) story(f *store.Found, steps []store.Step) []event {
	r := &f.Record
	story := []event{{When: r.Created, What: "First call with this key"}}
	for i := range steps {
		s := &steps[i]
		e := event{When: s.Recorded, What: "Step " + s.Name, Detail: "done", Failed: s.Failed, Result: c.answerOf(&s.Outcome)}
		if s.Failed {
			e.Detail = "failed for good"
		}
		if s.Attempt > 0 { // an operator's decision belongs to none
			e.Detail += fmt.Sprintf(" in attempt %d", s.Attempt)
		}
		if d, ok, err := history.SagaDecisionIn(s); ok {
			story = append(story, decisionEvents(s, &d, err)...)
			continue
		}
		nameSagaStep(s, &e)
		story = append(story, e)
	}
	past := history.Of(r)
	before, present := past[:len(past)-1], &past[len(past)-1]
	if !lapsed.IsSaga(r.Key) { // the steps of a saga say more
		for i := range before {
			story = append(story, event{When: before[i].When, What: before[i].What, Detail: before[i].By, Failed: before[i].Failed})
		}
		slices.SortStableFunc(story[1:], func(a, b event) int { return a.When.Compare(b.When) })
	}
	if present.DoubtNotKept {
		story = append(story, event{What: "In doubt", Detail: "The record does not keep since when.", Failed: true})
	}
	return append(story, c.lastEvent(f, present))
}

// lastEvent is how the record came into its present state.
func (c *Console) lastEvent(f *store.Found, present *history.Entry) event {
	r, now := &f.Record, entryOf(f)
	last := event{When: r.Updated, What: strings.ToUpper(now.State[:1]) + now.State[1:], Detail: now.Note, Failed: present.Failed, Next: now.ErrorNext}
	switch {
	case present.Decision != "":
		last.What, last.Detail = present.What, present.By
		return last
	case present.Operator && r.State == store.Released: // of a saga: the decision is among the steps
		return last
	case present.Name != "":
		last.What = present.Name + ": " + now.State
	}
	if r.State == store.Processing && r.Lapsed(f.Now) {
		last.When = r.Until
	}
	if now.Error != "" {
		last.Detail = now.Error
	}
	if now.ErrorMeaning != "" && !strings.HasPrefix(last.Detail, now.ErrorMeaning) {
		last.Detail += ". It means: " + now.ErrorMeaning
	}
	return last
}

// decisionEvents are how a saga was stuck, and what an operator then decided. The error says
// that the decision cannot be read.
func decisionEvents(s *store.Step, d *history.SagaDecision, err error) []event {
	if err != nil {
		return []event{{When: s.Recorded, What: "An operator decided", Detail: "The decision cannot be read: " + unreadable(s, err)}}
	}
	stuck := event{What: "An attempt: stuck", Detail: "The record does not keep since when and why.", Failed: true}
	if d.Stuck != nil {
		stuck.When, stuck.What, stuck.Detail = d.Stuck.Since, d.Stuck.String(), d.Stuck.Error
	}
	return []event{stuck, {When: s.Recorded, What: "An operator decided: " + d.String(), Detail: d.Why}}
}

// unreadable says why a step cannot be read.
func unreadable(s *store.Step, err error) string {
	if s.Outcome.Codec == encrypted.Codec {
		return "it is encrypted, and this console does not have the key."
	}
	return err.Error()
}

func capitalized(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

// nameSagaStep names the steps that package saga writes by itself.
func nameSagaStep(s *store.Step, e *event) {
	name, isUndo := strings.CutSuffix(s.Name, history.SagaUndo)
	switch {
	case s.Name == "saga:input":
		e.What, e.Detail = "The saga was started", ""
	case s.Name == history.SagaBack:
		e.What, e.Detail, e.Failed = "The saga turned back: no step starts any more, and what was done is undone", "", true
	case isUndo:
		e.What = "Step " + name + " was undone"
	case strings.Contains(s.Name, history.SagaSkip):
		e.What, e.Detail = capitalized(history.StepEvent(s.Name)), ""
	case history.StepEvent(s.Name) != "":
		e.What, e.Detail, e.Result = capitalized(history.StepEvent(s.Name)), "", nil
	}
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

// changeRecord carries out a form of the record's page.
func (c *Console) changeRecord(ctx context.Context, operator string, form url.Values) (which string, err error) {
	verb, reason := form.Get("act"), strings.TrimSpace(form.Get("reason"))
	if reason == "" {
		return "", badInput("Say why: the record and the log keep the reason.")
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
		if which != "decide" && lapsed.IsSaga(r.Key) {
			return badInput(onlySagas)
		}
		return carryOut(r, operator+": "+reason)
	})
}

func (c *Console) reopen(ctx context.Context, r store.Record, who string) error {
	g, err := semel.New(c.store, &semel.Options{Retention: c.options.Retention, Holder: history.ReopenedBy + who})
	if err != nil {
		return err
	}
	return g.Reopen(ctx, r, who)
}

// decide is a decision about a stuck saga.
func (c *Console) decide(ctx context.Context, r store.Record, verb, who string, form url.Values) error {
	i := saga.Intervention{Why: who, Back: verb == "back", NotHappened: form["not-happened"]}
	if verb == "skip" {
		i.Done, i.Result = strings.TrimSpace(form.Get("step")), []byte(strings.TrimSpace(form.Get("result")))
		if i.Done == "" {
			return badInput("To skip a step, name it.")
		}
	}
	err := saga.Intervene(ctx, c.store, r, i)
	if e, ok := errors.AsType[*semel.Error](err); ok && errors.Is(err, semel.ErrInvalid) {
		return badInput("Nothing was decided: " + e.Cause.Error() + notJSON(i.Result))
	}
	return err
}
