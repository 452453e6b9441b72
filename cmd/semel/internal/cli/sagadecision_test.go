package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/cmd/semel/internal/program"
	"github.com/semel-go/semel/internal/history"
	"github.com/semel-go/semel/saga"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/encrypted"
	"github.com/semel-go/semel/store/sqlitestore"
)

// decideSaga runs a command about the saga of stuckSaga or stuckUndo, with its fence.
func decideSaga(t *testing.T, url string, st store.Store, args ...string) result {
	t.Helper()
	fence := sagaFence(t, st)
	args = append(append([]string{"saga"}, args...), "--tenant", "ann", "--store", url, "--reason", "ticket 17", "--fence", fence)
	return commandIn(t, map[string]string{"SUDO_USER": "eve"}, "", args...)
}

// stuckUndo is a store with a saga that has turned back, and whose compensation fails.
func stuckUndo(t *testing.T) (url string, s *saga.Saga[string, string], st store.Store) {
	t.Helper()
	url, _, st = stuckSaga(t)
	guard, err := semel.New(st, nil)
	if err != nil {
		t.Fatal(err)
	}
	s, err = saga.New(guard, saga.Definition[string, string]{
		Name: "trip", Steps: []string{"charge"}, UndoAttempts: 1,
		Run: func(ctx context.Context, r *saga.Run, in string) (string, error) {
			_, err := saga.Step(ctx, r, "charge", func(context.Context, saga.At) (string, error) { return "charged", nil },
				func(context.Context, saga.At, string) error { return errors.New("the bank is down") })
			if err != nil {
				return "", err
			}
			return "", semel.Final(errors.New("no seat"))
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Do(t.Context(), "ann", "o1", "stuck"); !errors.Is(err, semel.ErrParked) {
		t.Fatalf("error %v, want ErrParked", err)
	}
	return url, s, st
}

// The page of a saga has each decision, with the doubt before it, in order with the steps.
func TestSagaShow_Decided_HasDecisionsInOrderWithSteps(t *testing.T) {
	t.Parallel()
	url, s, st := stuckSaga(t)
	before, err := st.Get(t.Context(), saga.Key("order", "ann", "o1"))
	if err != nil {
		t.Fatal(err)
	}
	if r := decideSaga(t, url, st, "retry", "order", "o1", "--not-happened", "charge"); r.code != program.ExitOK {
		t.Fatalf("%+v", r)
	}
	if _, err := s.Do(t.Context(), "ann", "o1", "stuck"); err != nil {
		t.Fatal(err)
	}
	show := []string{"saga", "show", "order", "o1", "--tenant", "ann", "--store", url}
	text := command(t, show...).stdout
	rest := text
	for _, want := range []string{
		"step charge began; it must not be repeated after doubt:", "stuck:", "since " + before.Record.Updated.Format(time.RFC3339Nano) + " in attempt 1: step \"charge\" may have happened: ", "connection reset",
		"decision:", "at 2", "Z: retry; charge did not happen; ", "(sudo: eve): ticket 17", "step charge did not happen that time:", "step charge:",
	} {
		_, after, ok := strings.Cut(rest, want)
		if !ok {
			t.Fatalf("no %q, or not in this order, in\n%s", want, text)
		}
		rest = after
	}
	if strings.Contains(text, "step saga:operator:") || strings.Contains(text, "; operator: ") {
		t.Errorf("the decision is shown twice:\n%s", text)
	}
	var v view
	if err := json.Unmarshal([]byte(command(t, append(show, "--json")...).stdout), &v); err != nil || len(v.Decisions) != 1 {
		t.Fatalf("%+v, %v", v.Decisions, err)
	}
	d := v.Decisions[0]
	if d.Step != "saga:operator:1" || d.Decision != "retry; charge did not happen" || !strings.HasSuffix(d.By, ": ticket 17") || d.Time.IsZero() ||
		d.Stuck == nil || d.Stuck.Attempt != 1 || !d.Stuck.Since.Equal(before.Record.Updated) || !strings.Contains(d.Stuck.Error, "connection reset") {
		t.Errorf("%+v, stuck %+v", d, d.Stuck)
	}
}

// A decision of an earlier version has no attempt before it, and the command says so.
func TestSagaShow_DecisionOfEarlierVersion_SaysThatAttemptIsNotKept(t *testing.T) {
	d := decisionIn(&store.Step{Name: "saga:operator:1", Outcome: store.Outcome{Body: []byte(`{"Why":"ann: again","NotHappened":null,"Done":"","Result":null,"Back":true}`)}})
	if d == nil || d.Decision != "back" || d.By != "ann: again" || !strings.Contains(d.Stuck.String(), "does not keep") {
		t.Errorf("%+v", d)
	}
	for codec, want := range map[string]string{encrypted.Codec: "encrypted; --encryption-keys shows it", "json": "not readable: "} {
		d := decisionIn(&store.Step{Name: "saga:operator:1", Outcome: store.Outcome{Body: []byte("x"), Codec: codec}})
		if d == nil || !strings.HasPrefix(d.Decision, want) {
			t.Errorf("%s: %+v", codec, d)
		}
	}
}

// A saga that has turned back cannot turn back again. The command offers the decisions that
// are possible, and they work.
func TestSagaDecisions_TurnedBack_RetryAndSkipOnly(t *testing.T) {
	t.Parallel()
	url, s, st := stuckUndo(t)
	k := saga.Key("trip", "ann", "o1")
	f, err := st.Get(t.Context(), k)
	if err != nil {
		t.Fatal(err)
	}
	flags := fmt.Sprintf(" --tenant ann --store %s --fence %d --reason ", url, f.Record.Fence)
	skip := "semel saga skip trip o1 charge:undo" + flags
	show := []string{"saga", "show", "trip", "o1", "--tenant", "ann", "--store", url}
	text := command(t, show...).stdout
	if !strings.Contains(text, skip+"TEXT\n") || !strings.Contains(text, "semel saga retry trip o1"+flags+"TEXT\n") || strings.Contains(text, "semel saga back") {
		t.Errorf("the next step is not retry or skip:\n%s", text)
	}
	back := strings.Fields("saga back trip o1" + flags + "r")
	if r := command(t, back...); r.code != program.ExitFailed || !strings.Contains(r.stderr, "cannot turn back a second time") || !strings.Contains(r.stderr, skip) {
		t.Errorf("%+v", r)
	}
	if now, err := st.Get(t.Context(), k); err != nil || now.Record.Fence != f.Record.Fence || now.Record.State != store.Unknown {
		t.Errorf("the record is %v, fence %d, %v", now.Record.State, now.Record.Fence, err)
	}
	if r := command(t, strings.Fields(strings.TrimPrefix(skip, "semel ")+"by-hand")...); r.code != program.ExitOK {
		t.Fatalf("%+v", r)
	}
	_, err = s.Do(t.Context(), "ann", "o1", "stuck")
	if _, failed := errors.AsType[*semel.Failure](err); !failed {
		t.Errorf("the saga ends with %v", err)
	}
	if text = command(t, show...).stdout; !strings.Contains(text, "Z: skip charge:undo; ") || !strings.Contains(text, "the bank is down") || strings.Contains(text, "in attempt 0") {
		t.Errorf("no decision, or an attempt 0, in\n%s", text)
	}
}

// A saga that is not stuck takes no decision: the error says in which state it is, and how to
// look at it. The audit trail does not keep the names in that command.
func TestSagaDecisions_NotStuck_SaysStateAndCommand(t *testing.T) {
	t.Parallel()
	url, s, st := stuckSaga(t)
	look := "semel saga show order o1 --tenant ann --store " + url
	check := func(state string) {
		t.Helper()
		for _, args := range [][]string{{"retry", "order", "o1"}, {"back", "order", "o1"}, {"skip", "order", "o1", "charge", "--result", "null"}} {
			trail := filepath.Join(t.TempDir(), "audit")
			r := decideSaga(t, url, st, append(args, "--audit", trail)...)
			lines := strings.Split(strings.TrimSpace(r.stderr), "\n")
			if r.code != program.ExitFailed || !strings.Contains(lines[len(lines)-1], state) || !strings.HasSuffix(lines[len(lines)-1], look) {
				t.Errorf("%s of a saga that is %s: %+v", args[0], state, r)
			}
			if kept, err := os.ReadFile(trail); err != nil || strings.Contains(string(kept), "show order o1") || !strings.Contains(string(kept), state) || strings.Contains(lines[0], "show order o1") {
				t.Errorf("the trail or the log has names, or no state: %s, %v, %s", kept, err, lines[0])
			}
		}
	}
	if r := decideSaga(t, url, st, "skip", "order", "o1", "charge", "--result", `"paid"`); r.code != program.ExitOK {
		t.Fatalf("%+v", r)
	}
	check("the saga is released (waiting)")
	if _, err := s.Do(t.Context(), "ann", "o1", "stuck"); err != nil {
		t.Fatal(err)
	}
	check("the saga has ended: it is completed")
}

// A decision that cannot be meant changes nothing, and the error has the next command.
func TestSagaDecisions_NotMeant_ChangeNothing(t *testing.T) {
	t.Parallel()
	url, _, st := stuckSaga(t)
	before := sagaFence(t, st)
	look := "; look at it: semel saga show order o1 --tenant ann --store " + url
	flags := " --tenant ann --store " + url + " --fence " + before + " --reason TEXT"
	offer := "semel saga skip order o1 charge --result JSON" + flags + "; or semel saga retry order o1" + flags + " --not-happened charge; or semel saga back order o1" + flags + " --not-happened charge"
	for _, c := range []struct {
		args string
		code int
		want []string
	}{
		{"skip order o1 charge", program.ExitUsage, []string{"--result", "or null"}},
		{"skip order o1 charge --result payment", program.ExitUsage, []string{"--result", "or null"}},
		{"skip order o1 charge:undo --result null", program.ExitUsage, []string{"--result", "must be left out"}},
		{"skip order o1 ship --result null", program.ExitFailed, []string{`nothing was changed: the saga is stuck at "charge", not at "ship"` + look}},
		{"skip order o1 hold --result null", program.ExitFailed, []string{`nothing was changed: step "hold" is recorded already`, look}},
		{"skip order o1 a:b --result null", program.ExitUsage, []string{`must be a step, or the compensation of one, which ends with :undo`}},
		{"retry order o1", program.ExitFailed, []string{`nothing was changed: step "charge" may have happened`, offer}},
		{"retry order o1 --not-happened mail/a,b", program.ExitFailed, []string{`nothing was changed: step "mail/a,b" is neither`, look}},
		{"retry order o1 --not-happened chrage", program.ExitFailed, []string{`nothing was changed: step "chrage" is neither a Parked step in doubt nor a skip that does not count`, look}},
		{"skip order o1 charge --result 7 --not-happened charge", program.ExitFailed, []string{`cannot both be done and not have happened`, look}},
		{"back order o1", program.ExitFailed, []string{`nothing was changed: step "charge" may have happened`, offer}},
	} {
		r := decideSaga(t, url, st, strings.Fields(c.args)...)
		for _, want := range c.want {
			if r.code != c.code || !strings.Contains(r.stderr, want) || strings.Contains(r.stderr, "##saga") && !strings.Contains(r.stderr, `"operation"`) {
				t.Errorf("%s: %+v, want code %d and %q", c.args, r, c.code, want)
			}
		}
	}
	if now := sagaFence(t, st); now != before {
		t.Errorf("the fence is %s, and was %s", now, before)
	}
	r := decideSaga(t, url, st, "retry", "order", "o1", "--not-happened", "charge")
	if r.code != program.ExitOK || r.stdout != "decided; a worker continues the saga. Start one if none runs (Saga.Work)\n" {
		t.Errorf("%+v", r)
	}
}

// Without a name the list has the sagas of all definitions.
func TestSagaList_NoName_ListsAllDefinitions(t *testing.T) {
	t.Parallel()
	url, _, _ := stuckUndo(t)
	for want, args := range map[string][]string{
		"order o1 unknown, order o2 released, trip o1 unknown": nil, "order o1 unknown, trip o1 unknown": {"--stuck"},
	} {
		r := command(t, append([]string{"saga", "list", "--store", url, "--json"}, args...)...)
		var got []string
		for line := range strings.Lines(r.stdout) {
			var l listedSaga
			if err := json.Unmarshal([]byte(line), &l); err != nil {
				t.Fatal(err)
			}
			got = append(got, l.Name+" "+l.ID+" "+l.State.String())
		}
		if slices.Sort(got); strings.Join(got, ", ") != want || r.code != program.ExitOK || r.stderr != "" {
			t.Errorf("%v: %q, want %q: %+v", args, got, want, r)
		}
	}
	r := command(t, "saga", "list", "--store", url, "--limit", "1")
	if strings.Count(r.stdout, "\n") != 2 || !strings.Contains(r.stderr, "more than 1") {
		t.Errorf("%+v", r)
	}
	for _, args := range [][]string{{"--stuck"}, {"order", "--stuck"}} { // a stuck one waits for no time
		r := command(t, append([]string{"saga", "list", "--store", url}, args...)...)
		if _, after, ok := strings.Cut(r.stdout, " 1         "); !ok || !strings.HasPrefix(after, "-  ") {
			t.Errorf("%v: no DUE of - after the attempts: %+v", args, r)
		}
	}
	path := filepath.Join(t.TempDir(), "empty.db")
	empty, err := sqlitestore.Open(t.Context(), path, nil)
	if err != nil || empty.Close() != nil {
		t.Fatal(err)
	}
	if r := command(t, "saga", "list", "--store", "sqlite:"+path); !strings.Contains(r.stderr, "--state completed,failed --store sqlite:"+path+" | grep ") {
		t.Errorf("%+v", r)
	}
	if r := command(t, "saga", "list", "nobody", "--store", url); !strings.Contains(r.stderr, "semel saga list without a name") {
		t.Errorf("%+v", r)
	}
}

// A skip by a wrong name, or with a result that cannot be read, is named, and the commands take
// it back.
func TestNextStep_WrongSkip_NamedWithTheDecisions(t *testing.T) {
	for skipped, want := range map[string]string{
		"chrge":      "semel saga skip order o1 STEP --result JSON --tenant ann",
		"charge":     "semel saga skip order o1 charge --result JSON --tenant ann",
		"chrge:undo": "semel saga skip order o1 STEP:undo --tenant ann",
	} {
		r := &store.Record{Key: saga.Key("order", "ann", "o1"), State: store.Unknown, LastError: fmt.Sprintf(history.SkipOf+"%q does not fit", skipped)}
		steps := []store.Step{{Name: "charge:begun:1"}, {Name: skipped + ":skip:1"}}
		if skipped != "charge" {
			steps[0].Name = "saga:input"
		}
		if strings.HasSuffix(skipped, ":undo") {
			steps = append(steps, store.Step{Name: history.SagaBack})
		}
		got := strings.Join((&storeFlag{Store: "sqlite:semel.db"}).nextStep(r, steps), "\n")
		if !strings.HasPrefix(got, "the skip of "+skipped+" does not count; skip it again, or take it back with --not-happened. Then ") || !strings.Contains(got, want) ||
			!strings.Contains(got, " --not-happened "+skipped) {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}
