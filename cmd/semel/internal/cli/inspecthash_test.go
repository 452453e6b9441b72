package cli

import (
	"context"
	"strings"
	"testing"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/cmd/semel/internal/program"
	"github.com/semel-go/semel/store"
)

// A client can use the hash of another key as its own key, and logs name a call by its hash.
func TestInspectGet_HashIsAlsoAKey_NamesBoth(t *testing.T) {
	t.Parallel()
	for name, hashed := range map[string]bool{"keys as given": false, "hashed keys": true} {
		var secret []byte
		var flags []string
		if hashed {
			file, s := hashKeys(t, "a")
			secret, flags = s, []string{"--hash-keys-file", file}
		}
		url, st := seedWith(t, secret)
		parked := store.Key{Operation: "http", Tenant: "ann", Value: "parked"}
		hash := parked.Short()
		if hashed {
			hash = parked.Hashed(secret).Short()
		}
		get := func(args ...string) result {
			return command(t, append(append([]string{"inspect", "get", hash, "--store", url}, flags...), args...)...)
		}
		if r := get(); r.code != program.ExitOK || !strings.Contains(r.stdout, "unknown") {
			t.Errorf("%s, before: %+v", name, r)
		}
		g, err := semel.New(st, &semel.Options{HashKeys: secret})
		if err != nil {
			t.Fatal(err)
		}
		for _, tenant := range []string{"ann", semel.Shared} {
			call := semel.Call{Operation: "http", Tenant: tenant, Key: hash, Payload: semel.NoPayload()}
			if _, err := g.Run(t.Context(), call, func(context.Context, *semel.Execution) (store.Outcome, error) { return store.Outcome{Code: 201}, nil }); err != nil {
				t.Fatal(err)
			}
		}
		for _, args := range [][]string{nil, {"--tenant", "ann"}} {
			if r := get(args...); r.code != program.ExitFailed || !strings.Contains(r.stderr, "there is a key "+hash) || !hashed && !strings.Contains(r.stderr, `parked --operation http --tenant "ann"`) {
				t.Errorf("%s, %v: %+v; want an error that names both", name, args, r)
			}
		}
		if r := get("--tenant", "ann", "--operation", "http"); r.code != program.ExitOK || !strings.Contains(r.stdout, "completed") {
			t.Errorf("%s, the key itself: %+v", name, r)
		}
		if r := command(t, append([]string{"inspect", "get", "parked", "--tenant", "ann", "--store", url}, flags...)...); r.code != program.ExitOK || !strings.Contains(r.stdout, "unknown") {
			t.Errorf("%s, the parked key: %+v", name, r)
		}
	}
}
