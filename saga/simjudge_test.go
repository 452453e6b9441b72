package saga_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/saga"
	"github.com/semel-go/semel/store"
)

// simReasons are what a saga may be stuck for.
var simReasons = []string{
	"may have happened",       // rule 3: a Parked step in doubt
	"the compensation of",     // rule 4
	"Steps of the definition", // rule 1
}

// judge says what is wrong with the end of a saga. A saga that an operator looks after
// has to end.
func (w *simWorld) judge(id string, operated bool) (end store.State, wrong []string) {
	plan := newSimPlan(w.seed, id)
	bad := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	f, err := w.st.Get(context.Background(), store.Key{Operation: "sim##saga", Value: id})
	if err != nil {
		return 0, []string{fmt.Sprintf("the saga is lost: %v", err)}
	}
	steps, err := w.st.Steps(context.Background(), f.Record.Lease())
	if err != nil {
		return 0, []string{fmt.Sprintf("its steps cannot be read: %v", err)}
	}
	recorded := map[string]bool{}
	var back semel.Failure
	for i := range steps {
		recorded[steps[i].Name] = !steps[i].Failed
		if steps[i].Name == "saga:back" {
			err = json.Unmarshal(steps[i].Outcome.Body, &back)
		}
	}
	switch known := back.Code == "refused" && plan.refused >= 0 || back.Code == saga.CodeDeadline || back.Code == saga.CodeOperator && operated; {
	case err != nil || recorded["saga:back"] && !known:
		bad("rule 3: it has turned back for %v, error %v", back, err)
	case recorded["saga:back"] && f.Record.State == store.Completed:
		bad("rule 5: it has turned back, and succeeded")
	}
	if early := w.early[id]; len(early) > 0 {
		bad("rule 5: %q had an effect between an operator's claim and the end of the decision", early)
	}
	events := w.history[id]
	did, undone := map[string]int{}, map[string]int{}
	lastUndo := len(plan.steps)
	for _, e := range events {
		i := slices.IndexFunc(plan.steps, func(s simStep) bool { return s.name == e.name })
		if !e.undo {
			did[e.name]++
			if len(undone) > 0 {
				bad("rule 5: step %s had its effect after a compensation", e.name)
			}
			continue
		}
		undone[e.name]++
		if plan.steps[i].position > lastUndo {
			bad("rule 2: the compensation of %s came after that of an earlier step", e.name)
		}
		lastUndo = plan.steps[i].position
		if !e.inDoubt && did[e.name] == 0 {
			bad("rule 2: %s was undone as done, and did not happen", e.name)
		}
	}
	for i, s := range plan.steps {
		if s.sleep || s.event {
			continue
		}
		if s.inTx && (did[s.name] == 1) != recorded[s.name] {
			bad("step %s is recorded %v, and has put %d messages in the same transaction", s.name, recorded[s.name], did[s.name])
		}
		if did[s.name] > 1 {
			bad("rule 8: step %s had its effect %d times", s.name, did[s.name])
		}
		if undone[s.name] > 1 {
			bad("rule 8: the compensation of %s had its effect %d times", s.name, undone[s.name])
		}
		switch f.Record.State {
		case store.Completed:
			if did[s.name] != 1 || undone[s.name] != 0 || plan.refused >= 0 {
				bad("it has succeeded, and step %d was done %d times and undone %d times; step %d is refused", i, did[s.name], undone[s.name], plan.refused)
			}
		case store.Failed:
			if did[s.name] > undone[s.name] {
				bad("rule 4: it has failed, and step %s is done and not undone", s.name)
			}
		case store.Unknown:
			if strings.Contains(f.Record.LastError, "may have happened") && undone[s.name] > 0 {
				bad("rule 3: a step is in doubt, and %s is undone", s.name)
			}
		}
	}
	if s := f.Record.State; !s.Terminal() && s != store.Unknown {
		timers, now, err := w.st.DueTimers(context.Background(), f.Record.Key.Operation, 10_000*time.Hour, 100)
		timers = slices.DeleteFunc(timers, func(t store.Timer) bool { return t.Key != f.Record.Key })
		bad("rule 7: it is %v: %s; the lease ends %v, now is %v, timers %+v, error %v, steps %+v", s, f.Record.LastError, f.Record.Until, now, timers, err, steps)
	}
	if f.Record.State == store.Unknown && (operated || !slices.ContainsFunc(simReasons, func(reason string) bool { return strings.Contains(f.Record.LastError, reason) })) {
		bad("rule 6: it is stuck, and an operator has looked at it %v: %s", operated, f.Record.LastError)
	}
	if len(wrong) > 0 {
		bad("the record is %v (%s); the plan %+v; the history %+v", f.Record.State, f.Record.LastError, *plan, events)
	}
	return f.Record.State, wrong
}
