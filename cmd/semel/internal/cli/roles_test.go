package cli

import (
	"context"
	"database/sql"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/cmd/semel/internal/program"
	"github.com/semel-go/semel/outbox"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/pgstore"
	"github.com/semel-go/semel/store/pgstore/pgoutbox"
	"github.com/semel-go/semel/store/pgstore/pgtest"
)

// The roles of docs/postgres.md, with the statements as they are there, let a service work and
// send messages. Without one of the grants semel doctor names it.
func TestDoctor_RolesOfTheGuide_WorkAndAreChecked(t *testing.T) {
	t.Parallel()
	guide, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "docs", "postgres.md"))
	if err != nil {
		t.Fatal(err)
	}
	var recipe []string
	for _, block := range strings.Split(string(guide), "```sql\n")[1:] {
		if text, _, _ := strings.Cut(block, "```"); strings.Contains(text, "semel_app") {
			recipe = append(recipe, text)
		}
	}
	if len(recipe) != 2 {
		t.Fatalf("the guide has %d blocks with semel_app, not the 2 that this test runs", len(recipe))
	}
	srv := pgtest.Start(t, pgtest.Durable...)
	u, err := url.Parse(srv.URL())
	if err != nil {
		t.Fatal(err)
	}
	exec := func(role, database, statements string) string {
		t.Helper()
		u.User, u.Path = url.User(role), "/"+database
		conn, err := pgx.Connect(t.Context(), u.String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close(t.Context())
		if _, err := conn.PgConn().Exec(t.Context(), statements).ReadAll(); err != nil {
			t.Fatalf("%s: %v", statements, err)
		}
		return u.String()
	}
	exec("postgres", "postgres", "CREATE DATABASE shop")
	admin := exec("postgres", "shop", recipe[0])
	migrate := strings.Replace(admin, "postgres@", "semel_migrate@", 1)
	if r := command(t, "migrate", "--store", migrate); r.code != program.ExitOK {
		t.Fatalf("%+v", r)
	}
	exec("semel_migrate", "shop", recipe[1])
	app := strings.Replace(admin, "postgres@", "semel_app@", 1)
	if r := command(t, "doctor", "--store", app); r.code != program.ExitOK {
		t.Errorf("%+v", r)
	}
	use(t, app)

	exec("semel_migrate", "shop", "REVOKE DELETE, UPDATE ON semel.semel_record FROM semel_app")
	const want = "semel_app has no UPDATE, DELETE on semel_record; as semel_migrate: GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA semel TO semel_app"
	if r := command(t, "doctor", "--store", app); r.code != program.ExitFailed || !strings.Contains(r.stderr, want) {
		t.Errorf("%+v, want %s", r, want)
	}
}

// use makes a call that keeps a message in the outbox, and publishes the message.
func use(t *testing.T, at string) {
	t.Helper()
	st, err := pgstore.Open(t.Context(), at, &pgstore.Options{NoMigrate: true})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	box, err := pgoutbox.New(st, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer box.Close()
	shop, err := pgstore.NewAtomic(st, nil)
	if err != nil {
		t.Fatal(err)
	}
	call := semel.Call{Operation: "order", Tenant: semel.Shared, Key: "1", Payload: semel.NoPayload()}
	if _, err := pgstore.Do(t.Context(), shop, call, func(ctx context.Context, _ *semel.Execution, tx pgx.Tx) (int, error) {
		return 1, box.Put(ctx, tx, outbox.Message{Topic: "orders", OrderKey: "ann", Body: []byte("1")})
	}); err != nil {
		t.Fatal(err)
	}
	lanes, _, err := box.Lease(t.Context(), "p", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	taken, err := box.Take(t.Context(), lanes, nil, nil, 10)
	if err != nil || len(taken) != 1 {
		t.Fatalf("%d messages, %v; want 1", len(taken), err)
	}
	if err := box.Settle(t.Context(), []outbox.Result{{Taken: &taken[0], Kind: outbox.Delivered, Keep: true}}); err != nil {
		t.Error(err)
	}
	if _, err := st.Sweep(t.Context(), store.Cursor(""), 10); err != nil {
		t.Error(err)
	}
}

// A store that a newer version has changed is not made fit by a migration of this one.
func TestDoctor_NewerSchema_DoesNotAdviseMigrate(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "semel.db")
	if r := command(t, "migrate", "--store", "sqlite:"+path); r.code != program.ExitOK {
		t.Fatalf("%+v", r)
	}
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.ExecContext(t.Context(), "UPDATE semel_meta SET schema = 99, compatible = 98"); err != nil {
		t.Fatal(err)
	}
	if r := command(t, "doctor", "--store", "sqlite:"+path); r.code != program.ExitFailed || !strings.HasSuffix(r.stderr, "update the package\n") {
		t.Errorf("%+v", r)
	}
}
