package cli

import (
	"database/sql"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/pgstore/pgtest"
	"github.com/semel-go/semel/store/sqlitestore"

	"github.com/semel-go/semel/cmd/semel/internal/program"
)

// Nothing can be read from the tables of records and of steps any more, nor from
// their indexes, so doctor can only pass if it does not try.
func TestDoctor_RecordsCannotBeRead_ReadsNone(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "semel.db")
	st, err := sqlitestore.Open(t.Context(), path, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := st.Claim(t.Context(), store.Proposal{Key: store.Key{Operation: "o", Value: "k"}, State: store.Processing, Owner: store.Owner{1}, Lease: 1e9}); err != nil {
		t.Fatal(err)
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	overwrite(t, path, "semel_record", "semel_step")
	if r := command(t, "inspect", "list", "--store", "sqlite:"+path); r.code != program.ExitFailed || !strings.Contains(r.stderr, "malformed") {
		t.Fatalf("the records can be read: %+v", r)
	}
	if r := command(t, "doctor", "--store", "sqlite:"+path); r.code != program.ExitOK || r.stdout != "sqlite:"+path+": ok\n" {
		t.Errorf("doctor: %+v", r)
	}
}

// overwrite clears the first page of tables and of their indexes.
func overwrite(t *testing.T, path string, tables ...string) {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var size int64
	if err := db.QueryRowContext(t.Context(), "PRAGMA page_size").Scan(&size); err != nil {
		t.Fatal(err)
	}
	rows, err := db.QueryContext(t.Context(), "SELECT rootpage FROM sqlite_schema WHERE rootpage > 0 AND tbl_name IN ('"+strings.Join(tables, "', '")+"')")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	file, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for rows.Next() {
		var page int64
		if err := rows.Scan(&page); err != nil {
			t.Fatal(err)
		}
		if _, err := file.WriteAt(make([]byte, size), (page-1)*size); err != nil {
			t.Fatal(err)
		}
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
}

// A server without a standby is safe, so a note does not change the exit code.
func TestDoctor_NoSynchronousStandby_NotesIt(t *testing.T) {
	t.Parallel()
	srv := pgtest.Start(t, "fsync=on", "full_page_writes=on", "synchronous_commit=on")
	if r := command(t, "migrate", "--store", srv.URL()); r.code != program.ExitOK {
		t.Fatalf("%+v", r)
	}
	r := command(t, "doctor", "--store", srv.URL())
	if r.code != program.ExitOK || !strings.Contains(r.stdout, ": ok\nnote: synchronous_standby_names is empty") {
		t.Errorf("%+v", r)
	}
	var d diagnosis
	if r = command(t, "doctor", "--store", srv.URL(), "--json"); json.Unmarshal([]byte(r.stdout), &d) != nil || !d.OK || len(d.Notes) != 1 {
		t.Errorf("%+v", r)
	}
}

func TestDoctor_SecretFileMissingOrUnfit_IsAProblem(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	at := "sqlite:" + filepath.Join(dir, "semel.db")
	if r := command(t, "migrate", "--store", at); r.code != program.ExitOK {
		t.Fatalf("%+v", r)
	}
	file := func(name, content string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for path, want := range map[string]string{
		filepath.Join(dir, "none"): "none: there is no such file; see what is there with: ls -l " + dir,
		file("empty", ""):          "empty: is empty; copy the file of the processes that use it",
		dir:                        "cannot be read: is a directory",
	} {
		if r := command(t, "doctor", "--store", at, "--secret-files", path); r.code != program.ExitFailed || r.stdout != "" || !strings.Contains(r.stderr, want) {
			t.Errorf("%s: %+v", path, r)
		}
	}
	if r := command(t, "doctor", "--store", at, "--secret-files", file("good", "x")); r.code != program.ExitOK {
		t.Errorf("a file that is there: %+v", r)
	}
}
