package console

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/semel-go/semel/internal/history"
	"github.com/semel-go/semel/internal/protocol"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/encrypted"
)

// event is one line of a record's story.
type event struct {
	When   time.Time `json:"-"` // zero: the record does not keep it
	What   string
	Detail string
	Next   string // what to do about it
	Failed bool
	Result *answer
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
	past := history.Entries(r)
	before, present := past[:len(past)-1], &past[len(past)-1]
	if !protocol.IsSaga(r.Key) { // the steps of a saga say more
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

// unreadSteps stands in the story in the place of steps that cannot be read.
func unreadSteps(err error, isSaga bool) event {
	e := event{What: "Its steps cannot be read", Detail: err.Error(), Next: "semel inspect get shows the rest of the record as it is stored.", Failed: true}
	if errors.Is(err, encrypted.ErrUnknownKey) {
		e.Next = "start the console with the key that is missing (--encryption-keys)."
	}
	if isSaga {
		e.Next += " Until its steps can be read, nobody can decide about this saga here."
	}
	return e
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
