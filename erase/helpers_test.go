package erase_test

import (
	"cmp"
	"context"
	"errors"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/erase"
	"github.com/semel-go/semel/store"
)

const canary = "canary-4711"

func call(tenant, key string) semel.Call {
	return semel.Call{Operation: "pay", Tenant: tenant, Key: key, Payload: semel.NoPayload()}
}

func guard(t *testing.T, st store.Store, o *semel.Options) *semel.Guard {
	t.Helper()
	g, err := semel.New(st, o)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// run runs a call whose handler ends with err. Its answer has the canary.
func run(t *testing.T, g *semel.Guard, c semel.Call, err error) (runs int, _ error) {
	t.Helper()
	_, got := g.Run(t.Context(), c, func(context.Context, *semel.Execution) (store.Outcome, error) {
		runs++
		return store.Outcome{Code: 201, Header: []store.Header{{Name: "Location", Value: canary}}, Body: []byte(canary)}, err
	})
	return runs, got
}

// everyState makes a record of a tenant in each state. The key is the state.
func everyState(t *testing.T, st store.Store, tenant string) {
	t.Helper()
	g, whose := guard(t, st, nil), cmp.Or(tenant, semel.Shared)
	_, _ = run(t, g, call(whose, "completed"), nil)
	_, _ = run(t, g, call(whose, "failed"), semel.Final(&semel.Failure{Code: "declined", Message: canary}))
	_, _ = run(t, g, call(whose, "released"), errors.New(canary))
	_, _ = run(t, guard(t, st, &semel.Options{OnDoubt: semel.Park}), call(whose, "unknown"), errors.New(canary))
	for _, s := range []store.State{store.Started, store.Processing} {
		k := store.Key{Operation: "pay", Tenant: tenant, Value: s.String()}
		if _, err := st.Claim(t.Context(), store.Proposal{Key: k, State: s, Owner: store.Owner{9}, Attempt: 1, Lease: time.Hour}); err != nil {
			t.Fatal(err)
		}
	}
}

// states are the records of a tenant: each key with its state.
func states(t *testing.T, st store.Lister, tenant string) map[string]store.State {
	t.Helper()
	all := map[string]store.State{}
	for f, err := range st.List(t.Context(), store.Filter{Tenant: tenant}) {
		if err != nil {
			t.Fatal(err)
		}
		all[f.Record.Key.Value] = f.Record.State
	}
	return all
}

func mustRun(t *testing.T, st store.Store, s erase.Scope, o *erase.Options) erase.Report {
	t.Helper()
	r, err := erase.Run(t.Context(), st, s, o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}
