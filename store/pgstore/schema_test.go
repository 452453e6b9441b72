package pgstore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store/pgstore/internal/pgwire"
	"github.com/semel-go/semel/store/pgstore/pgtest"
)

// dump is what a schema has in it, as the server shows it.
func dump(t *testing.T, db pgwire.Querier, schema string) []string {
	t.Helper()
	rows, err := db.Query(t.Context(), `SELECT c.relname || ' ' || c.relkind::text || ' ' || coalesce(array_to_string(c.reloptions, ','), '') || ' ' ||
			coalesce((SELECT string_agg(a.attname || ' ' || format_type(a.atttypid, a.atttypmod) || CASE WHEN a.attnotnull THEN ' not null' ELSE '' END, ', ' ORDER BY a.attnum)
				FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attnum > 0), '')
		FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = $1
		UNION ALL SELECT proname FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace WHERE n.nspname = $1 ORDER BY 1`, schema)
	if err != nil {
		t.Fatal(err)
	}
	all, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// database makes a database of its own on the shared server, and is its URL.
func database(t *testing.T, name string) string {
	t.Helper()
	at := pgtest.URL(t)
	conn, err := pgx.Connect(t.Context(), at)
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	t.Cleanup(func() { _ = conn.Close(ctx) })
	mustExec(t, conn, "DROP DATABASE IF EXISTS "+name+" WITH (FORCE)")
	mustExec(t, conn, "CREATE DATABASE "+name)
	t.Cleanup(func() { mustExec(t, conn, "DROP DATABASE "+name+" WITH (FORCE)") })
	u, err := url.Parse(at)
	if err != nil {
		t.Fatal(err)
	}
	u.Path = "/" + name
	return u.String()
}

func pool(t *testing.T, url string) *pgxpool.Pool {
	t.Helper()
	p, err := pgxpool.New(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

func runScript(t *testing.T, db *pgxpool.Pool, name string) {
	t.Helper()
	b, err := fs.ReadFile(Migrations(), name)
	if err != nil {
		t.Fatal(err)
	}
	mustExec(t, db, string(b))
}

func TestMigrations_RunByHand_SameSchema(t *testing.T) {
	t.Parallel()
	if allPartitions > 0 {
		t.Skip("the scripts are of one table: see TestPartitionedInit_RunByHand_SameSchema")
	}
	url := database(t, "semel_by_hand")
	names, err := fs.Glob(Migrations(), "*.up.sql")
	if err != nil || len(names) == 0 {
		t.Fatalf("Migrations has %v, error %v", names, err)
	}
	db := pool(t, url)
	for _, name := range names {
		runScript(t, db, name)
	}
	byHand := dump(t, db, "semel")
	complete(t, openAt(t, url, &Options{NoMigrate: true}), "k", "result")
	made := openNew(t, nil)
	if got := dump(t, made.ownPool, made.options.Schema); !slices.Equal(got, byHand) || len(got) < 4 {
		t.Errorf("Open made\n%q\nby hand it is\n%q", got, byHand)
	}
	slices.Reverse(names)
	for _, name := range names {
		runScript(t, db, strings.Replace(name, ".up.", ".down.", 1))
	}
	if rest := dump(t, db, "semel"); len(rest) != 0 {
		t.Errorf("the down scripts leave\n%q", rest)
	}
}

func TestOpen_Concurrently_MigratesOnce(t *testing.T) {
	t.Parallel()
	url := database(t, "semel_at_once")
	var all sync.WaitGroup
	stores := make([]*Store, 8)
	for i := range stores {
		all.Go(func() { stores[i] = openAt(t, url, nil) })
	}
	all.Wait()
	for _, s := range stores {
		if s == nil || s.id != stores[0].id {
			t.Error("two stores in one schema, or none")
		}
	}
}

func TestOpen_NoMigrateWithoutSchema_ErrSchema(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	if _, err := Open(t.Context(), url, &Options{NoMigrate: true, Schema: newSchema(t, url)}); !errors.Is(err, ErrSchema) {
		t.Errorf("got %v, want ErrSchema", err)
	}
}

func TestOpen_NewerSchema_ErrSchema(t *testing.T) {
	t.Parallel()
	s := openNew(t, nil)
	mustExec(t, s.ownPool, "UPDATE "+s.quoted()+".semel_meta SET schema = 99, compatible = 98")
	o := s.options
	for _, no := range []bool{true, false} {
		o.NoMigrate = no
		if _, err := Open(t.Context(), pgtest.URL(t), &o); !errors.Is(err, ErrSchema) || !strings.Contains(err.Error(), "99") {
			t.Errorf("NoMigrate %v: %v, want ErrSchema with the number", no, err)
		}
	}
	if err := s.Check(t.Context()); !errors.Is(err, ErrSchema) {
		t.Errorf("Check: %v, want ErrSchema", err)
	}
}

// During a rolling upgrade, a process of the version before starts again after the
// migration. It works, because the migration only adds.
func TestOpen_LaterAdditiveMigration_Works(t *testing.T) {
	t.Parallel()
	s := openNew(t, nil)
	done := complete(t, s, "done", "result")
	for _, sql := range []string{
		"ALTER TABLE {s}.semel_record ADD COLUMN extra bytea", "ALTER TABLE {s}.semel_watermark ADD COLUMN extra int", "ALTER TABLE {s}.semel_crash_marker ADD COLUMN extra int",
		"CREATE TABLE {s}.semel_extra (x int)", "ALTER TABLE {s}.semel_meta ADD COLUMN extra int", "UPDATE {s}.semel_meta SET schema = 99",
	} {
		mustExec(t, s.ownPool, strings.ReplaceAll(sql, "{s}", s.quoted()))
	}
	o := s.options
	for _, no := range []bool{true, false} {
		o.NoMigrate = no
		later := openAt(t, pgtest.URL(t), &o)
		for _, st := range []*Store{s, later} { // one that was open meanwhile, too
			mustExec(t, st.ownPool, "UPDATE "+s.quoted()+".semel_record SET extra = 'x'")
			if f, err := st.Claim(t.Context(), proposal("done")); err != nil || f.Won || !f.Record.Outcome.Equal(done.Outcome) {
				t.Errorf("a duplicate: %v", err)
			}
			complete(t, st, fmt.Sprint("new ", no, st == s), "result")
			a, err := NewAtomic(st, nil)
			if err != nil {
				t.Fatal(err)
			}
			for range 2 {
				if err := Once(t.Context(), a, call(fmt.Sprint("atomic ", no, st == s)), func(context.Context, *semel.Execution, pgx.Tx) error { return nil }); err != nil {
					t.Error(err)
				}
				for _, end := range a.RunBatch(t.Context(), poll(fmt.Sprint("a ", no, st == s), fmt.Sprint("b ", no, st == s)), func(context.Context, []*PendingCall) error { return nil }) {
					if end.Err != nil {
						t.Error(end.Err)
					}
				}
			}
			if err := st.Check(t.Context()); errors.Is(err, ErrSchema) {
				t.Error(err)
			}
		}
	}
}

func TestOpen_RoleWithRowRightsOnly_Works(t *testing.T) { bothTables(t, aRoleIsEnough) }

func aRoleIsEnough(t *testing.T, partitions int) {
	at := database(t, "semel_grants")
	owner := openAt(t, at, &Options{Partitions: partitions})
	mustExec(t, owner.ownPool, "DROP ROLE IF EXISTS semel_worker")
	mustExec(t, owner.ownPool, "CREATE ROLE semel_worker LOGIN")
	t.Cleanup(func() {
		mustExec(t, owner.ownPool, "DROP OWNED BY semel_worker")
		mustExec(t, owner.ownPool, "DROP ROLE semel_worker")
	})
	mustExec(t, owner.ownPool, "GRANT USAGE ON SCHEMA semel TO semel_worker")
	mustExec(t, owner.ownPool, "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA semel TO semel_worker")
	u, err := url.Parse(at)
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.User("semel_worker")
	s := openAt(t, u.String(), nil)
	r := complete(t, s, "k", `{"n":1}`)
	if _, err := s.Swap(t.Context(), r.Seen(), proposal("k")); err != nil {
		t.Errorf("Swap: %v", err)
	}
	if _, err := s.Renew(t.Context(), nil, 1); err != nil {
		t.Errorf("Renew: %v", err)
	}
	if _, err := s.Sweep(t.Context(), "", 10); err != nil {
		t.Errorf("Sweep: %v", err)
	}
	a, err := NewAtomic(s, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := Once(t.Context(), a, call("k"), nothing); err != nil {
		t.Errorf("Atomic: %v", err)
	}
	// The tables of package pgkafka, whose tests this package cannot import.
	mustExec(t, s.ownPool, "INSERT INTO semel.semel_watermark VALUES ('c', 't', 0, '', 0, 1, 1); UPDATE semel.semel_watermark SET next_offset = 1; DELETE FROM semel.semel_watermark")
	mustExec(t, s.ownPool, "INSERT INTO semel.semel_crash_marker VALUES ('c', 't', 0, '', gen_random_uuid(), 0, 1, '{}', 1); UPDATE semel.semel_crash_marker SET starts = 0; DELETE FROM semel.semel_crash_marker")
	if n := ask[int](t, s.ownPool, "SELECT count(*) FROM semel.semel_readable"); n != 2 {
		t.Errorf("the view shows %d records, want 2", n)
	}
	if err := owner.Migrate(t.Context()); err != nil {
		t.Errorf("Migrate again: %v", err)
	}
}

func TestView_ShowsText(t *testing.T) {
	t.Parallel()
	s := openNew(t, nil)
	complete(t, s, "order 7", `{"paid":true}`)
	odd := proposal("\x00\xff")
	if _, err := s.Claim(t.Context(), odd); err != nil {
		t.Fatal(err)
	}
	view := s.quoted() + ".semel_readable"
	got := ask[string](t, s.ownPool, "SELECT concat_ws('|', operation, tenant, key, state, policy, attempt, code, codec, header, body_json, holder, gone) FROM "+
		view+" WHERE state = 'completed'")
	if want := `charge|acme|order 7|completed|retry|1|201|json|[["Content-Type","application/json"]]|{"paid":true}|test/1|f`; got != want {
		t.Errorf("the view shows\n%s\nwant\n%s", got, want)
	}
	if got := ask[string](t, s.ownPool, "SELECT key FROM "+view+" WHERE state = 'processing'"); got != `\000\377` {
		t.Errorf("a key of any bytes shows as %q", got)
	}
}

func TestSchema_OnlyPrimaryKeyIndex(t *testing.T) {
	t.Parallel()
	s := openNew(t, nil)
	for i := range 50 {
		complete(t, s, itoa(i), "result")
	}
	var indexes []string
	rows, err := s.ownPool.Query(t.Context(), "SELECT indexname FROM pg_indexes WHERE schemaname = $1 AND tablename = 'semel_record'", s.options.Schema)
	if err == nil {
		indexes, err = pgx.CollectRows(rows, pgx.RowTo[string])
	}
	if err != nil || len(indexes) != 1 {
		t.Errorf("indexes are %q, error %v, want the primary key alone", indexes, err)
	}
}
