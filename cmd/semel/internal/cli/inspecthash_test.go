package cli

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/cmd/semel/internal/program"
	"github.com/semel-go/semel/cmd/semel/internal/shell"
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
			if r := get(args...); r.code != program.ExitFailed || !strings.Contains(r.stderr, "there is a key "+hash) || !hashed && !strings.Contains(r.stderr, `parked --operation http --tenant ann`) {
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

// Clients choose keys, and two keys can have one hash. The names in the error are pasted into a
// shell, so they are quoted for it.
func TestInspectGet_SeveralKeysHaveHash_NamesAreQuoted(t *testing.T) {
	t.Parallel()
	url, st := seed(t)
	g, err := semel.New(st, nil)
	if err != nil {
		t.Fatal(err)
	}
	first, second := sameHash(t, "$(touch /tmp/x) '", "-")
	for _, k := range []store.Key{first, second} {
		call := semel.Call{Operation: k.Operation, Tenant: k.Tenant, Key: k.Value, Payload: semel.NoPayload()}
		if _, err := g.Run(t.Context(), call, func(context.Context, *semel.Execution) (store.Outcome, error) { return store.Outcome{Code: 201}, nil }); err != nil {
			t.Fatal(err)
		}
	}
	r := command(t, "inspect", "get", first.Short(), "--store", url)
	for _, k := range []store.Key{first, second} {
		if want := strings.TrimSpace(shell.Command("", []string{k.Value}, shell.Flag("operation", k.Operation), shell.Flag("tenant", k.Tenant))); r.code != program.ExitFailed || !strings.Contains(r.stderr, want) {
			t.Errorf("%+v; want an error with %s", r, want)
		}
	}
}

// sameHash finds two keys whose short hashes are equal, and whose values begin with these texts.
func sameHash(t *testing.T, first, second string) (a, b store.Key) {
	t.Helper()
	seen := map[string]store.Key{}
	for n := range 1 << 20 {
		a = store.Key{Operation: "http", Tenant: "$(id)", Value: fmt.Sprint(first, n)}
		b = store.Key{Operation: "http", Tenant: "$(id)", Value: fmt.Sprint(second, n)}
		seen[a.Short()] = a
		if other, ok := seen[b.Short()]; ok && strings.HasPrefix(other.Value, first) {
			return other, b
		}
	}
	t.Fatal("no two keys have one hash")
	return a, b
}
