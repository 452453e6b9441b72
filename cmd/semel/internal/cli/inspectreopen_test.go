package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"

	"github.com/semel-go/semel/cmd/semel/internal/program"
)

func TestInspectReopen_FailedRecord_IsReleasedAndLogged(t *testing.T) {
	url, st := seed(t)
	fence := fenceOf(t, st, "failed")
	args := []string{"inspect", "reopen", "failed", "--tenant", "ann", "--store", url, "--fence", fence, "--reason", "the bank was down", "--json"}
	r := commandIn(t, map[string]string{"SUDO_USER": "eve"}, "", args...)
	f, err := st.Get(t.Context(), store.Key{Operation: "http", Tenant: "ann", Value: "failed"})
	if r.code != program.ExitOK || err != nil || f.Record.State != store.Released || f.Record.Attempt != 0 {
		t.Fatalf("%+v; the record is %v after %d attempts, %v", r, f.Record.State, f.Record.Attempt, err)
	}
	if !strings.Contains(f.Record.LastError, "sudo: eve") || !strings.Contains(f.Record.LastError, "the bank was down") {
		t.Errorf("the record says %q", f.Record.LastError)
	}
	wantDecisionIsNoError(t, "the bank was down", "inspect", "get", "failed", "--tenant", "ann", "--store", url)
	logged := func(stderr string) (line map[string]any) {
		first, _, _ := strings.Cut(stderr, "\n")
		if err := json.Unmarshal([]byte(first), &line); err != nil {
			t.Fatalf("no line of JSON: %q: %v", stderr, err)
		}
		return line
	}
	line := logged(r.stderr)
	if !strings.Contains(line["operator"].(string), "sudo: eve") || line["reason"] != "the bank was down" || line["result"] != "done" ||
		fmt.Sprintf("%.0f", line["fence"]) != fence {
		t.Errorf("logged %v", line)
	}
	r = commandIn(t, nil, "", args...)
	if l := logged(r.stderr); r.code != program.ExitFailed || l["result"] != "not done" || !strings.Contains(l["error"].(string), "nothing was changed") {
		t.Errorf("again: %+v, logged %v", r, l)
	}
}

func TestInspectReopen_OtherRecord_IsRefused(t *testing.T) {
	url, st := seed(t)
	for _, key := range []string{"done", "parked", "released"} {
		fence := fenceOf(t, st, key)
		r := commandIn(t, nil, "", "inspect", "reopen", key, "--tenant", "ann", "--store", url, "--fence", fence, "--reason", "r")
		if r.code != program.ExitFailed || !strings.Contains(r.stderr, "only a failed one can be reopened; its fence is "+fence+"; look at it: semel inspect get "+key+" --operation http --tenant ann --store "+url) || fenceOf(t, st, key) != fence {
			t.Errorf("%s: %+v", key, r)
		}
	}
	if r := commandIn(t, nil, "", "inspect", "reopen", "failed", "--tenant", "ann", "--store", url, "--fence", "1", "--reason", "r"); r.code != program.ExitFailed || !strings.Contains(r.stderr, "its fence is now "+fenceOf(t, st, "failed")+"; look at it again before you use that: semel inspect get failed --operation http --tenant ann --store "+url) {
		t.Errorf("another fence: %+v", r)
	}
	if r := commandIn(t, nil, "", "inspect", "reopen", "failed", "--tenant", "ann", "--store", url, "--fence", "1", "--reason", " "); r.code == program.ExitOK || !strings.Contains(r.stderr, "--reason") {
		t.Errorf("no reason: %+v", r)
	}
}

func TestInspectReopen_StepRecorded_IsRefused(t *testing.T) {
	url, st := seed(t)
	g, err := semel.New(st, nil)
	if err != nil {
		t.Fatal(err)
	}
	_ = semel.Once(t.Context(), g, semel.Call{Operation: "http", Tenant: "ann", Key: "o1", Payload: semel.NoPayload()}, func(ctx context.Context, x *semel.Execution) error {
		_ = semel.Once(ctx, g, x.Step("charge"), func(context.Context, *semel.Execution) error { return nil })
		return semel.Final(errors.New("sold out"))
	})
	fence := fenceOf(t, st, "o1")
	r := command(t, "inspect", "reopen", "o1", "--tenant", "ann", "--store", url, "--fence", fence, "--reason", "r")
	if r.code != program.ExitFailed || !strings.Contains(r.stderr, "nothing was changed: the call has recorded steps (charge)") || !strings.Contains(r.stderr, "look at it: semel inspect get o1") || fenceOf(t, st, "o1") != fence {
		t.Errorf("%+v", r)
	}
}

// A redriven message can come days later. If the record has expired by then, its steps run again.
func TestInspectReopen_Default_KeepsRecordedStepsForAWeek(t *testing.T) {
	url, st := seed(t)
	g, err := semel.New(st, &semel.Options{Retention: 7 * 24 * time.Hour, MaxAttempts: 1})
	if err != nil {
		t.Fatal(err)
	}
	_ = semel.Once(t.Context(), g, semel.Call{Operation: "http", Tenant: "ann", Key: "o1", Payload: semel.NoPayload()}, func(ctx context.Context, x *semel.Execution) error {
		_ = semel.Once(ctx, g, x.Step("charge"), func(context.Context, *semel.Execution) error { return nil })
		return errors.New("the stock does not answer")
	})
	r := command(t, "inspect", "reopen", "o1", "--tenant", "ann", "--store", url, "--fence", fenceOf(t, st, "o1"), "--reason", "it answers again")
	f, err := st.Get(t.Context(), store.Key{Operation: "http", Tenant: "ann", Value: "o1"})
	if r.code != program.ExitOK || err != nil || f.Record.State != store.Released {
		t.Fatalf("%+v; the record is %v, %v", r, f.Record.State, err)
	}
	if kept := f.Record.Expires.Sub(f.Now); kept < 7*24*time.Hour-time.Minute {
		t.Errorf("the record and its step are kept for %v", kept)
	}
}
