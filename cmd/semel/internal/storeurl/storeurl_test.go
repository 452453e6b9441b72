package storeurl_test

import (
	"errors"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/semel-go/semel/cmd/semel/internal/input"
	"github.com/semel-go/semel/cmd/semel/internal/storeurl"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/dynamostore/dynamotest"
	"github.com/semel-go/semel/store/pgstore/pgtest"
	"github.com/semel-go/semel/store/redisstore/redistest"
)

func parse(t *testing.T, text string) storeurl.URL {
	t.Helper()
	u, err := storeurl.Parse(text, "--store")
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func TestParse_UnknownStore_ListsChoices(t *testing.T) {
	for _, text := range []string{"", "memory", "memory:x", "sqlite", "sqlite:", "sqlite://host/x", "sqlite:a?mode=ro", "postgres:x", "mysql://x", "semel.db"} {
		_, err := storeurl.Parse(text, "--store")
		if err == nil || !input.Is(err) || !strings.Contains(err.Error(), "sqlite:PATH") || !strings.Contains(err.Error(), "memory:") {
			t.Errorf("%q: got %v", text, err)
		}
	}
}

func TestOpen_SQLiteAndMemory_KeepRecord(t *testing.T) {
	for _, text := range []string{"memory:", "sqlite:" + filepath.Join(t.TempDir(), "a.db")} {
		h, err := parse(t, text).Open(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		p := store.Proposal{Key: store.Key{Operation: "o", Value: "k"}, State: store.Processing, Owner: store.Owner{1}, Lease: time.Minute}
		if f, err := h.Claim(t.Context(), p); err != nil || !f.Won {
			t.Errorf("%s: got %+v, %v", text, f, err)
		}
		if _, ok := store.As[store.Lister](h); !ok {
			t.Errorf("%s: cannot be searched", text)
		}
		if err := h.Close(); err != nil {
			t.Errorf("%s: close: %v", text, err)
		}
	}
}

func TestOpenExisting_MissingStore_Error(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.db")
	u := parse(t, "sqlite:"+path)
	if _, err := u.OpenExisting(t.Context()); err == nil || input.Is(err) || !strings.Contains(err.Error(), "no such file") {
		t.Errorf("got %v", err)
	}
	if names, _ := filepath.Glob(path + "*"); len(names) > 0 {
		t.Errorf("it made %q", names)
	}
	h, err := u.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	again, err := u.OpenExisting(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if _, err := parse(t, "memory:").OpenExisting(t.Context()); !input.Is(err) {
		t.Errorf("memory: got %v", err)
	}
}

func TestMigrations_ListsScripts(t *testing.T) {
	files, ok := parse(t, "sqlite:a.db").Migrations()
	if names, err := fs.Glob(files, "*.up.sql"); !ok || err != nil || len(names) == 0 {
		t.Errorf("got %q, %v", names, err)
	}
	if _, ok := parse(t, "memory:").Migrations(); ok {
		t.Error("memory has a schema")
	}
	if got := parse(t, "memory:").String() + " " + parse(t, "sqlite:x").String(); got != "memory: sqlite:x" {
		t.Errorf("got %s", got)
	}
}

func TestString_Password_Hidden(t *testing.T) {
	u := parse(t, "postgres://ann:secret@db:5432/app?password=secret&sslmode=disable")
	if got := u.Secret(); got != "postgres://ann:secret@db:5432/app?password=secret&sslmode=disable" {
		t.Errorf("for another process it is %q", got)
	}
	if got := u.String(); strings.Contains(got, "secret") || got != "postgres://ann@db:5432/app?sslmode=disable" {
		t.Errorf("it shows as %q", got)
	}
	_, err := storeurl.Parse("postgres://ann:sec%ret@db/app", "--store")
	if !input.Is(err) || strings.Contains(err.Error(), "sec%ret") {
		t.Errorf("a wrong URL: %v", err)
	}
	if _, err := storeurl.Parse("mysql://ann:pass@db/app", "--store"); !input.Is(err) || strings.Contains(err.Error(), "pass@") {
		t.Errorf("another database: %v", err)
	}
	if files, ok := u.Migrations(); !ok {
		t.Error("no migrations")
	} else if names, err := fs.Glob(files, "*.up.sql"); err != nil || len(names) == 0 {
		t.Errorf("migrations are %q, %v", names, err)
	}
}

func TestPostgres_Open_KeepsRecord(t *testing.T) {
	at, err := url.Parse(pgtest.URL(t))
	if err != nil {
		t.Fatal(err)
	}
	u := parse(t, at.String())
	h, err := u.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	p := store.Proposal{Key: store.Key{Operation: "o", Value: t.Name()}, State: store.Processing, Owner: store.Owner{1}, Lease: time.Minute}
	if f, err := h.Claim(t.Context(), p); err != nil || !f.Won {
		t.Errorf("got %+v, %v", f, err)
	}
	again, err := u.OpenExisting(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if _, err := again.Get(t.Context(), p.Key); err != nil {
		t.Error(err)
	}
}

func TestMain(m *testing.M) { os.Exit(redistest.Main(withPostgres{m})) }

// withPostgres removes its servers as well.
type withPostgres struct{ m *testing.M }

func (w withPostgres) Run() int { return pgtest.Main(withDynamo(w)) }

type withDynamo struct{ m *testing.M }

func (w withDynamo) Run() int { return dynamotest.Main(w.m) }

// One file has many names. A copy from a file into itself says that all is there.
func TestSame_OneFileOtherName_IsSame(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	if err := errors.Join(os.WriteFile("a.db", nil, 0o600), os.WriteFile("b.db", nil, 0o600), os.Symlink("a.db", "link.db")); err != nil {
		t.Fatal(err)
	}
	a := parse(t, "sqlite:a.db")
	for text, want := range map[string]bool{
		"sqlite:a.db": true, "sqlite:./a.db": true, "sqlite:link.db": true, "sqlite:" + filepath.Join(dir, "a.db"): true,
		"sqlite:b.db": false, "sqlite:none.db": false, "memory:": false,
	} {
		if got := a.Same(parse(t, text)); got != want {
			t.Errorf("%s: same %v", text, got)
		}
	}
}
