package main

import (
	"context"
	"errors"
	"maps"
	"path/filepath"
	"strings"
	"testing"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/cmd/semel/demo/internal/ledger"
	"github.com/semel-go/semel/cmd/semel/internal/storeurl"
	"github.com/semel-go/semel/store/sqlitestore"
)

func TestRecords_NotCompleted_AreNotDone(t *testing.T) {
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
	const op = "http"
	for _, c := range []struct {
		tenant, key string
		err         error
	}{
		{"ada", "paid", nil}, {"bob", "paid", nil}, {"ada", "parked", errors.New("no answer")},
		{"ada", "released", semel.NoEffect(errors.New("not sent"))}, {"ada", "failed", semel.Final(errors.New("no money"))},
	} {
		err := semel.Once(t.Context(), g, semel.Call{Operation: op, Tenant: c.tenant, Key: c.key, Payload: semel.NoPayload()}, func(context.Context, *semel.Execution) error { return c.err })
		if (err == nil) != (c.err == nil) {
			t.Fatalf("%s: %v", c.key, err)
		}
	}
	got, err := completed(t.Context(), sqliteURL(t, path))
	want := map[ledger.ID]bool{{Tenant: "ada", Key: "paid"}: true, {Tenant: "bob", Key: "paid"}: true}
	if err != nil || !maps.Equal(got, want) {
		t.Errorf("got %v, %v", got, err)
	}
}

func TestRecords_StoreMissing_IsAnError(t *testing.T) {
	if got, err := completed(t.Context(), sqliteURL(t, filepath.Join(t.TempDir(), "absent.db"))); err == nil {
		t.Errorf("got %v", got)
	}
}

func sqliteURL(t *testing.T, path string) storeurl.URL {
	t.Helper()
	u, err := storeurl.Parse("sqlite:"+path, "--store")
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func TestStore_Password_IsNoArgument(t *testing.T) {
	r, err := newRecords(&Options{Store: "postgres://ann:secret@h/d?sslmode=disable"}, "dir")
	if err != nil {
		t.Fatal(err)
	}
	env := strings.Join(r.env(), " ")
	if len(r.args()) != 0 || !strings.HasPrefix(env, "SEMEL_STORE=postgres://ann:secret@h/d?") || !strings.Contains(env, "semel-schema=semel_demo_") {
		t.Errorf("arguments %q, environment %s", r.args(), env)
	}
	other, err := newRecords(&Options{Store: "postgres://h/d"}, "dir")
	if err != nil || other.name == r.name {
		t.Errorf("two demos share the schema %s; %v", r.name, err)
	}
	if r, err = newRecords(&Options{}, "dir"); err != nil || len(r.env()) != 0 || len(r.args()) != 1 || !strings.HasPrefix(r.args()[0], "--store=sqlite:dir") || r.drop(t.Context()) != nil {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestStore_Redis_HasAPrefixOfItsOwn(t *testing.T) {
	r, err := newRecords(&Options{Store: "rediss://ann:secret@h:1/3?semel-fsync=true&max_retries=2"}, "dir")
	if err != nil {
		t.Fatal(err)
	}
	env := strings.Join(r.env(), " ")
	for _, want := range []string{"SEMEL_STORE=rediss://ann:secret@h:1/3?", "semel-prefix=semel_demo_", "semel-allow-park=true", "semel-fsync=true", "max_retries=2"} {
		if !strings.Contains(env, want) || len(r.args()) != 0 {
			t.Errorf("arguments %q, environment %s; want %s", r.args(), env, want)
		}
	}
}

func TestStore_CannotBeDropped_IsNamed(t *testing.T) {
	for _, at := range []string{"postgres://ann:secret@127.0.0.1:1/d", "redis://ann:secret@127.0.0.1:1/0?semel-fsync=true"} {
		r, err := newRecords(&Options{Store: at}, "dir")
		if err != nil {
			t.Fatal(err)
		}
		if err := r.drop(t.Context()); err == nil || !strings.Contains(err.Error(), r.name) || strings.Contains(err.Error(), "secret") {
			t.Errorf("got %v", err)
		}
	}
}
