package cli

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/sqlitestore"

	"github.com/semel-go/semel/cmd/semel/internal/program"
)

type receipt struct{ ID int }

// A verdict that no caller could read is refused, and the right one is read.
func TestInspectResolve_CallOfDo_NeedsItsCodec(t *testing.T) {
	path := filepath.Join(t.TempDir(), "semel.db")
	st, err := sqlitestore.Open(t.Context(), path, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	g, err := semel.New(st, &semel.Options{OnDoubt: semel.Park})
	if err != nil {
		t.Fatal(err)
	}
	call := semel.Call{Operation: "pay", Tenant: "ann", Key: "k", Payload: semel.JSON("x")}
	pay := func() (receipt, error) {
		return semel.Do(t.Context(), g, call, func(context.Context, *semel.Execution) (receipt, error) { return receipt{}, errors.New("lost") })
	}
	if _, err := pay(); err == nil {
		t.Fatal("it is not parked")
	}
	f, err := st.Get(t.Context(), store.Key{Operation: "pay", Tenant: "ann", Value: "k"})
	if err != nil {
		t.Fatal(err)
	}
	resolve := func(stdin string, args ...string) result {
		return commandIn(t, nil, stdin, append([]string{"inspect", "resolve", "k", "--operation", "pay", "--tenant", "ann", "--store", "sqlite:" + path,
			"--fence", fmt.Sprint(f.Record.Fence), "--reason", "r", "--verdict", "happened"}, args...)...)
	}
	if r := resolve("", "--status", "201"); r.code != program.ExitFailed || !strings.Contains(r.stderr, "--codec json") || !strings.Contains(r.stderr, `"result":"refused"`) {
		t.Errorf("a status: %+v", r)
	}
	if r := resolve("{", "--codec", "json", "--body-file", "-"); r.code != program.ExitUsage {
		t.Errorf("no JSON: %+v", r)
	}
	if r := resolve(`{"ID":7}`, "--codec", "json", "--body-file", "-"); r.code != program.ExitOK {
		t.Fatalf("%+v", r)
	}
	if got, err := pay(); err != nil || got.ID != 7 {
		t.Errorf("the caller gets %+v, %v", got, err)
	}
}

func TestInspectResolve_RequestOverHTTP_RefusesCodec(t *testing.T) {
	url, st := seed(t)
	r := commandIn(t, nil, "{}", "inspect", "resolve", "parked", "--tenant", "ann", "--store", url, "--fence", fenceOf(t, st, "parked"),
		"--reason", "r", "--verdict", "happened", "--codec", "json", "--body-file", "-")
	if r.code != program.ExitFailed || !strings.Contains(r.stderr, "give --status") {
		t.Errorf("%+v", r)
	}
}

func TestInspectGet_HashOfLogs_FindsRecord(t *testing.T) {
	url, st := seed(t)
	hash := store.Key{Operation: "http", Tenant: "ann", Value: "done"}.Short()
	if r := command(t, "inspect", "get", hash, "--store", url, "--json"); r.code != program.ExitOK || !strings.Contains(r.stdout, `"key":"done"`) {
		t.Errorf("%+v", r)
	}
	if r := command(t, "inspect", "get", "00000000", "--store", url); r.code != program.ExitFailed || !strings.Contains(r.stderr, "there is no record") {
		t.Errorf("no such hash: %+v", r)
	}
	hash = store.Key{Operation: "http", Tenant: "ann", Value: "parked"}.Short()
	r := command(t, "inspect", "resolve", hash, "--store", url, "--fence", fenceOf(t, st, "parked"), "--reason", "r", "--verdict", "did-not-happen")
	if r.code != program.ExitOK {
		t.Errorf("resolve by hash: %+v", r)
	}
}

func TestInspectList_StateParked_IsUnknown(t *testing.T) {
	url, _ := seed(t)
	if r := command(t, "inspect", "list", "--state", "parked", "--store", url, "--json"); r.code != program.ExitOK || strings.Count(r.stdout, "\n") != 1 || !strings.Contains(r.stdout, `"key":"parked"`) {
		t.Errorf("%+v", r)
	}
}
