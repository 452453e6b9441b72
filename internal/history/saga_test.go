package history_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/semel-go/semel/internal/history"
	"github.com/semel-go/semel/internal/protocol"
	"github.com/semel-go/semel/store"
)

func TestStuckOf_EachState_OffersStepInQuestion(t *testing.T) {
	undo := `UndoAttempts (10) is used up; the last attempt: the compensation of step "charge": bank: "down"`
	for want, c := range map[string]struct {
		lastError string
		steps     []string
	}{
		"{false []  []  false}":                       {"MaxAttempts (3) is used up; the last attempt: no", []string{"saga:input", "hold"}},
		"{false []  [charge]  false}":                 {`MaxAttempts (3) is used up; the last attempt: step "charge" did not end: step "charg" is not in Steps of the definition`, []string{"hold"}},
		"{false []  [a b]  false}":                    {`MaxAttempts (1) is used up; the last attempt: step "a" and step "b" did not end: no`, nil},
		"{false [charge ship]  [charge ship]  false}": {"", []string{"hold:begun:1", "hold", "charge:begun:1", "charge:none:1", "charge:begun:2", "ship:begun:1"}},
		"{true [] charge []  false}":                  {undo, []string{"charge", "saga:back"}},
		"{true []  []  false}":                        {undo, []string{"charge", "saga:back", "charge:undo:skip:1"}}, // by an operator
		"{true [charge]  [charge]  false}":            {"", []string{"charge:begun:1", "saga:back"}},
		"{false [charge]  [charge] charge true}":      {history.SkipOf + `"charge" has a result …`, []string{"charge:begun:1", "charge:skip:1", "charge:unskip:1", "charge:skip:2"}},
		"{false []  [] chrge true}":                   {history.SkipOf + `"chrge" names no step …`, []string{"charge:begun:1", "charge:skip:1", "chrge:skip:1"}},
		"{false [charge]  [charge]  false}":           {"", []string{"charge:begun:1", "charge:skip:1", "charge:unskip:1"}},
	} {
		var steps []store.Step
		for _, name := range c.steps {
			steps = append(steps, store.Step{Name: name})
		}
		if got := fmt.Sprint(history.DescribeStuck(&store.Record{LastError: c.lastError}, steps)); got != want {
			t.Errorf("%q, %q: got %s, want %s", c.lastError, c.steps, got, want)
		}
	}
}

func TestUndecided_EachDecision_NamesStepLeftInDoubt(t *testing.T) {
	s := history.StuckSaga{InDoubt: []string{"charge", "ship"}}
	for _, c := range []struct {
		notHappened []string
		done        string
		back        bool
		want        string
	}{
		{nil, "", false, "charge"},
		{[]string{"charge"}, "", true, "ship"},
		{[]string{"charge", "ship"}, "", true, ""},
		{nil, "charge", false, ""}, // the other may be decided later
		{nil, "charge", true, "ship"},
		{[]string{"ship"}, "charge", true, ""},
	} {
		if got, ok := s.Undecided(c.notHappened, c.done, c.back); got != c.want || ok != (c.want != "") {
			t.Errorf("%+v: %q, %v", c, got, ok)
		}
	}
}

func TestSagaDecisionIn_EachDecision_InWordsOfTheCommands(t *testing.T) {
	for want, body := range map[string]string{
		"retry":                                     `{"Why":"ann"}`, // of an earlier version
		"retry; charge did not happen":              `{"NotHappened":["charge"]}`,
		"back; charge did not happen":               `{"NotHappened":["charge"],"Back":true}`,
		"skip charge:undo":                          `{"Done":"charge:undo","Result":"bnVsbA=="}`,
		"skip charge; back":                         `{"Done":"charge","Back":true}`,
		"retry; a did not happen; b did not happen": `{"NotHappened":["a","b"]}`,
	} {
		d, ok, err := history.SagaDecisionIn(&store.Step{Name: "saga:operator:1", Outcome: store.Outcome{Body: []byte(body)}})
		if !ok || err != nil || d.String() != want || d.Stuck != nil {
			t.Errorf("%s: %q, %v, %v, want %q", body, d.String(), ok, err, want)
		}
	}
	if _, ok, err := history.SagaDecisionIn(&store.Step{Name: "saga:operator:2", Outcome: store.Outcome{Body: []byte("encrypted")}}); !ok || err == nil {
		t.Errorf("unreadable: %v, %v", ok, err)
	}
	if _, ok, _ := history.SagaDecisionIn(&store.Step{Name: "charge"}); ok {
		t.Error("a step of the saga is a decision")
	}
	kept, err := json.Marshal(&history.SagaDecision{Why: "ann", Stuck: &history.StuckAttempt{Attempt: 3, Since: noon, Error: "no"}})
	d, _, readErr := history.SagaDecisionIn(&store.Step{Name: "saga:operator:1", Outcome: store.Outcome{Body: kept}})
	if err != nil || readErr != nil || d.Stuck == nil || d.Stuck.String() != "Attempt 3: stuck" || !d.Stuck.Since.Equal(noon) || d.Stuck.Error != "no" {
		t.Errorf("%s: %+v, %v, %v", kept, d, err, readErr)
	}
}

// An operator who decided about a saga is no attempt, and the attempts after it are counted
// from 1 again.
func TestOf_OperatorOfSaga_IsNoAttempt(t *testing.T) {
	owner := func(holder string, attempt int, state store.State) store.FormerOwner {
		return store.FormerOwner{Holder: holder, Attempt: attempt, State: state, Next: store.Processing, Ended: noon}
	}
	r := store.Record{Key: store.Key{Operation: "order" + protocol.SagaSuffix}, State: store.Unknown, Attempt: 1, Holder: "host/8",
		FormerOwners: []store.FormerOwner{owner("host/7", 3, store.Unknown), owner(protocol.SagaOperator+"ann: again", 0, store.Released)}}
	got := history.Entries(&r)
	if len(got) != 3 || got[0].Operator || !got[1].Operator || got[1].Attempt || got[2].Name != "Attempt 1 after the decision" {
		t.Errorf("%+v", got)
	}
}
