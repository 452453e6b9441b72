package cli

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"

	"github.com/semel-go/semel/cmd/semel/internal/program"
)

func TestInspectGet_ClaimedAgain_ShowsFormerOwners(t *testing.T) {
	t.Parallel()
	url, st := seed(t)
	g, err := semel.New(st, &semel.Options{Holder: "host\x1b/7"})
	if err != nil {
		t.Fatal(err)
	}
	call := semel.Call{Operation: "http", Tenant: "ann", Key: "again", Payload: semel.NoPayload()}
	for range 2 {
		_, _ = g.Run(t.Context(), call, func(context.Context, *semel.Execution) (store.Outcome, error) {
			return store.Outcome{}, errors.New("lost")
		})
	}
	f, err := st.Get(t.Context(), store.Key{Operation: "http", Tenant: "ann", Value: "again"})
	if err != nil || len(f.Record.FormerOwners) != 1 {
		t.Fatalf("%+v, %v", f.Record.FormerOwners, err)
	}
	o := f.Record.FormerOwners[0]
	get := []string{"inspect", "get", "again", "--tenant", "ann", "--store", url}
	if r := command(t, get...); r.code != program.ExitOK || !strings.Contains(r.stdout, "former owner:") ||
		!strings.Contains(r.stdout, "until 20") || !strings.Contains(r.stdout, ": released, then claimed again; host·/7, attempt 1, fence ") {
		t.Errorf("%+v", r)
	}
	var v view
	r := command(t, append(get, "--json")...)
	if err := json.Unmarshal([]byte(r.stdout), &v); err != nil || len(v.FormerOwners) != 1 {
		t.Fatalf("%v: %+v", err, r)
	}
	got := v.FormerOwners[0]
	if got.Fence != o.Fence || got.Attempt != 1 || got.State != store.Released || got.Next != store.Processing || !got.Ended.Equal(o.Ended) ||
		got.HowEnded != o.End() || got.Holder != o.Holder || len(got.Owner) != 32 {
		t.Errorf("%+v, want %+v", got, o)
	}
	if r := command(t, "inspect", "get", "done", "--tenant", "ann", "--store", url, "--json"); strings.Contains(r.stdout, "former") {
		t.Errorf("a call that ran once: %+v", r)
	}
}

// A verdict has a line of its own, with its time, and the record says since when the call was
// in doubt.
func TestInspectGet_Resolved_TellsDoubtAndVerdictApart(t *testing.T) {
	t.Parallel()
	url, st := seed(t)
	parked := store.Key{Operation: "http", Tenant: "ann", Value: "parked"}
	before, err := st.Get(t.Context(), parked)
	if err != nil {
		t.Fatal(err)
	}
	eve := map[string]string{"SUDO_USER": "eve"}
	if r := commandIn(t, eve, "", "inspect", "resolve", "parked", "--tenant", "ann", "--store", url, "--fence", fenceOf(t, st, "parked"), "--verdict", "failed", "--reason", "ledger 4711"); r.code != program.ExitOK {
		t.Fatalf("%+v", r)
	}
	resolved, err := st.Get(t.Context(), parked)
	if err != nil {
		t.Fatal(err)
	}
	if r := commandIn(t, eve, "", "inspect", "reopen", "parked", "--tenant", "ann", "--store", url, "--fence", fenceOf(t, st, "parked"), "--reason", "ledger 4712"); r.code != program.ExitOK {
		t.Fatalf("%+v", r)
	}
	get := []string{"inspect", "get", "parked", "--tenant", "ann", "--store", url}
	r := command(t, get...)
	for _, want := range []string{
		"in doubt since " + before.Record.Updated.Format(time.RFC3339Nano) + ": parked, then resolved: it failed; ",
		"at " + resolved.Record.Updated.Format(time.RFC3339Nano) + ": it failed; ", "(sudo: eve): ledger 4711\n", ": reopened; ", "(sudo: eve): ledger 4712\n",
	} {
		if !strings.Contains(r.stdout, want) {
			t.Errorf("no %q in\n%s", want, r.stdout)
		}
	}
	if strings.Count(r.stdout, "former owner:") != 1 {
		t.Errorf("an operator is among the processes:\n%s", r.stdout)
	}
	var v view
	if err := json.Unmarshal([]byte(command(t, append(get, "--json")...).stdout), &v); err != nil || len(v.FormerOwners) != 2 || len(v.Decisions) != 2 ||
		!v.Decisions[0].Time.Equal(resolved.Record.Updated) || v.Decisions[0].Decision != "it failed" || v.Decisions[1].Decision != "reopened" {
		t.Errorf("%+v, %v", v, err)
	}
}
