package sqlitestore

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
)

// dump is the schema of a file, as SQLite shows it.
func dump(t *testing.T, db *sql.DB) string {
	t.Helper()
	rows, err := db.Query("SELECT coalesce(sql, name) FROM sqlite_schema ORDER BY name")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var all strings.Builder
	for rows.Next() {
		var s string
		if err := rows.Scan(&s); err != nil {
			t.Fatal(err)
		}
		all.WriteString(s + "\n")
	}
	return all.String()
}

// file is a database of the application's own, and its path.
func file(t *testing.T, script string) (string, *sql.DB) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "app.db")
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	if script != "" {
		mustExec(t, db, script)
	}
	return path, db
}

func script(t *testing.T, name string) string {
	t.Helper()
	b, err := fs.ReadFile(Migrations(), name)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestMigrations_RunByHand_MakeSameSchema(t *testing.T) {
	t.Parallel()
	names, err := fs.Glob(Migrations(), "*.up.sql")
	if err != nil || len(names) == 0 {
		t.Fatalf("Migrations has %v, error %v", names, err)
	}
	path, db := file(t, "")
	for _, name := range names {
		mustExec(t, db, script(t, name))
	}
	byHand := dump(t, db)
	openAt(t, path, &Options{NoMigrate: true})
	made := openNew(t, nil)
	if got := dump(t, application(t, made, "")); got != byHand {
		t.Errorf("Open made\n%s\nby hand it is\n%s", got, byHand)
	}
	slices.Reverse(names)
	for _, name := range names {
		mustExec(t, db, script(t, strings.Replace(name, ".up.", ".down.", 1)))
	}
	if rest := dump(t, db); rest != "" {
		t.Errorf("the down scripts leave\n%s", rest)
	}
}

func TestMigrate_Repeated_ChangesNothing(t *testing.T) {
	t.Parallel()
	s := openNew(t, nil)
	r := complete(t, s, "k", "result")
	for range 2 {
		if err := s.Migrate(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	if again := get(t, openAt(t, s.path, nil), "k"); again.Fence != r.Fence {
		t.Error("the record changed")
	}
}

func TestOpen_ConcurrentlyOnNewFile_MigratesOnce(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "semel.db")
	var all sync.WaitGroup
	stores := make([]*Store, 8)
	for i := range stores {
		all.Go(func() {
			s, err := Open(context.Background(), path, nil)
			if err != nil {
				t.Error(err)
				return
			}
			stores[i] = s
		})
	}
	all.Wait()
	for _, s := range stores {
		if s == nil {
			continue
		}
		if s.id != stores[0].id {
			t.Error("two stores in one file")
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestOpen_WrongSchema_IsRefused(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		script string
		opt    Options
		want   error
		says   string
	}{
		"newer":                   {"UPDATE semel_meta SET schema = 99, compatible = 98", Options{}, ErrSchema, "update the package"},
		"newer, not migrating":    {"UPDATE semel_meta SET schema = 99, compatible = 98", Options{NoMigrate: true}, ErrSchema, "update the package"},
		"invalid":                 {"UPDATE semel_meta SET schema = 0", Options{}, ErrSchema, "number is 0"},
		"missing, not migrating":  {"-", Options{NoMigrate: true}, ErrSchema, "call Migrate"},
		"no row":                  {"DELETE FROM semel_meta", Options{}, ErrForeign, "has no schema number"},
		"another's semel_ tables": {"DROP TABLE semel_meta", Options{}, ErrForeign, "has no schema number"},
		"another's semel_meta":    {"ALTER TABLE semel_meta RENAME COLUMN schema TO x", Options{}, ErrForeign, "has no schema number"},
	} {
		t.Run(name, func(t *testing.T) {
			init := script(t, "0001_init.up.sql") + c.script
			if c.script == "-" {
				init = ""
			}
			path, db := file(t, init)
			before := dump(t, db)
			s, err := Open(context.Background(), path, &c.opt)
			if err == nil {
				_ = s.Close()
			}
			if !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), path) {
				t.Errorf("got %v, want %v that says %q and the path", err, c.want, c.says)
			}
			if after := dump(t, db); after != before {
				t.Errorf("the refused file was changed to\n%s", after)
			}
		})
	}
}

// The version after this one adds columns and tables. A process of this version can go
// on, and start again, beside it.
func TestOpen_LaterAdditiveMigration_Works(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "semel.db")
	s := openAt(t, path, nil)
	done := complete(t, s, "done", "result")
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	for _, table := range []string{"semel_record", "semel_step", "semel_timer", "semel_meta"} {
		mustExec(t, db, "ALTER TABLE "+table+" ADD COLUMN extra TEXT")
	}
	mustExec(t, db, "CREATE TABLE semel_extra (x INTEGER); UPDATE semel_meta SET schema = 99; UPDATE semel_record SET extra = 'x'")
	for _, no := range []bool{true, false} {
		later := openAt(t, path, &Options{NoMigrate: no})
		for _, st := range []*Store{s, later} { // one that was open meanwhile, too
			if f, err := st.Claim(t.Context(), proposal("done")); err != nil || f.Won || !f.Record.Outcome.Equal(done.Outcome) {
				t.Errorf("a duplicate: %v", err)
			}
			name := fmt.Sprint(no, st == s)
			complete(t, st, "new "+name, "result")
			a, err := NewAtomic(st, nil)
			if err != nil {
				t.Fatal(err)
			}
			for range 2 {
				if err := Once(t.Context(), a, call("atomic "+name), func(context.Context, *semel.Execution, *sql.Tx) error { return nil }); err != nil {
					t.Error(err)
				}
			}
			if err := st.Check(t.Context()); errors.Is(err, ErrSchema) {
				t.Error(err)
			}
		}
	}
}

func TestMigrate_Fails_ChangesNothing(t *testing.T) {
	t.Parallel()
	path, db := file(t, "CREATE TABLE t (a); CREATE INDEX semel_record ON t (a)") // in the way of the second table
	before := dump(t, db)
	s, err := Open(context.Background(), path, nil)
	if err == nil {
		_ = s.Close()
	}
	if err == nil || !strings.Contains(err.Error(), "migration 1") {
		t.Errorf("got %v, want the error of migration 1", err)
	}
	if after := dump(t, db); after != before {
		t.Errorf("left\n%s", after)
	}
}

func TestOpen_ApplicationsDatabase_StaysAsItIs(t *testing.T) {
	t.Parallel()
	path, db := file(t, "PRAGMA application_id = 77; PRAGMA user_version = 5; CREATE TABLE payment (id TEXT); INSERT INTO payment VALUES ('p')")
	s := openAt(t, path, nil)
	complete(t, s, "k", "result")
	var id, version, rows int
	for query, into := range map[string]*int{"PRAGMA application_id": &id, "PRAGMA user_version": &version, "SELECT count(*) FROM payment": &rows} {
		if err := db.QueryRow(query).Scan(into); err != nil {
			t.Fatal(err)
		}
	}
	if id != 77 || version != 5 || rows != 1 {
		t.Errorf("application_id %d, user_version %d, %d rows; want 77, 5, 1", id, version, rows)
	}
}

func TestOpen_FileIsNoDatabase_IsRefusedAndUnchanged(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "notes.txt")
	text := strings.Repeat("dear diary\n", 1000)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(context.Background(), path, nil); !errors.Is(err, ErrForeign) {
		t.Errorf("got %v, want ErrForeign", err)
	}
	if b, err := os.ReadFile(path); err != nil || string(b) != text {
		t.Errorf("the file was changed, or %v", err)
	}
}

// A store that may not make its schema leaves the file of another program as it is.
func TestOpen_NoMigrateWithoutSchema_FileUnchanged(t *testing.T) {
	path := filepath.Join(t.TempDir(), "app.db")
	db, err := sql.Open("sqlite", path)
	if err == nil {
		_, err = db.ExecContext(t.Context(), "CREATE TABLE app (a)")
	}
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Open(t.Context(), path, &Options{NoMigrate: true}); !errors.Is(err, ErrSchema) || !errors.Is(err, store.ErrNoSchema) {
		t.Errorf("%v, want ErrSchema and store.ErrNoSchema", err)
	}
	if after, err := os.ReadFile(path); err != nil || !bytes.Equal(before, after) {
		t.Errorf("the file has changed, or %v", err)
	}
}
