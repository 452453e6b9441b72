package sqlitestore

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
)

func TestOpen_AfterClose_RecordsAreThere(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "odd ?#%&'\" name.db")
	s, err := Open(context.Background(), path, nil)
	if err != nil {
		t.Fatal(err)
	}
	was := complete(t, s, "k", "result")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Errorf("the file is not where it was to be: %v", err)
	}
	is := get(t, openAt(t, path, nil), "k")
	if is.Fence != was.Fence || !is.Outcome.Equal(was.Outcome) || is.State != store.Completed {
		t.Errorf("came back as %+v, was %+v", is, was)
	}
}

func TestOpen_PathIsNoFile_IsRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, path := range map[string]string{
		"nothing": "", "memory": ":memory:", "memory with options": ":memory:?x=1", "a DSN": "file:" + dir + "/a.db",
		"a missing directory": filepath.Join(dir, "no", "a.db"), "a directory": dir,
	} {
		s, err := Open(context.Background(), path, nil)
		if err == nil {
			_ = s.Close()
			t.Errorf("%s: opened", name)
		} else if !strings.HasPrefix(err.Error(), "sqlitestore: ") {
			t.Errorf("%s: the error does not say whose it is: %v", name, err)
		}
	}
}

func TestOpen_NoPermission_IsError(t *testing.T) {
	t.Parallel()
	if os.Getuid() == 0 {
		t.Skip("root may write anything")
	}
	path := filepath.Join(t.TempDir(), "semel.db")
	if err := os.WriteFile(path, nil, 0o400); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(context.Background(), path, nil); err == nil || !strings.Contains(err.Error(), "may") {
		t.Errorf("a read-only file: %v", err)
	}
}

func TestOpen_NewFile_IsReadableByOwnerOnly(t *testing.T) {
	t.Parallel()
	s := openNew(t, nil)
	complete(t, s, "k", "result")
	for _, suffix := range []string{"", "-wal"} {
		info, err := os.Stat(s.path + suffix)
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has mode %v: others can read the outcomes", filepath.Base(s.path+suffix), info.Mode())
		}
	}
}

func TestOptions_Negative_AreRefused(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]Options{
		"BusyTimeout": {BusyTimeout: -1}, "MaxBatch": {MaxBatch: -1}, "MaxTx": {MaxTx: -1},
	} {
		if _, err := Open(context.Background(), filepath.Join(t.TempDir(), "a.db"), &o); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("negative %s: %v", name, err)
		}
	}
}

func TestWriter_Pragmas_AreDurable(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		opt  *Options
		sync int
	}{"default": {nil, syncFull}, "relaxed": {&Options{Relaxed: true}, syncNormal}} {
		s := openNew(t, c.opt)
		claim(t, s, "connects")
		var journal string
		var sync int
		if err := s.writer.conn.QueryRowContext(background, "PRAGMA journal_mode").Scan(&journal); err != nil {
			t.Fatal(err)
		}
		if err := s.writer.conn.QueryRowContext(background, "PRAGMA synchronous").Scan(&sync); err != nil {
			t.Fatal(err)
		}
		if journal != "wal" || sync != c.sync {
			t.Errorf("%s: journal_mode %s, synchronous %d; want wal, %d", name, journal, sync, c.sync)
		}
		if err := s.Check(context.Background()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		a, err := NewAtomic(s, nil)
		if err != nil {
			t.Fatal(err)
		}
		err = Once(t.Context(), a, call("k"), func(ctx context.Context, _ *semel.Execution, tx *sql.Tx) error {
			return tx.QueryRowContext(ctx, "PRAGMA synchronous").Scan(&sync)
		})
		if err != nil || sync != c.sync {
			t.Errorf("%s: a handler's synchronous is %d, error %v; want %d", name, sync, err, c.sync)
		}
	}
}

// The application's settings on the connections of its handlers must not make
// commits less durable.
func TestCheck_UnsafePragmasOfHandlers_AreNamed(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "semel.db")
	for pragma, safe := range map[string][2]bool{ // as it is, and Relaxed
		"foreign_keys = on": {true, true}, "synchronous=extra": {true, true}, "synchronous(normal)": {false, true}, "synchronous=off": {false, false},
	} {
		for i, relaxed := range []bool{false, true} {
			err := reopen(t.Context(), path, &Options{Pragmas: []string{pragma}, Relaxed: relaxed})
			if safe[i] && err != nil || !safe[i] && !errors.Is(err, ErrUnsafe) {
				t.Errorf("%s, relaxed %v: %v", pragma, relaxed, err)
			}
		}
	}
}

// The file may be the application's own, which has made it. Nothing is written to it.
func TestOpen_FileIsUTF16_IsRefused(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "semel.db")
	db, err := sql.Open("sqlite", path+"?_pragma=encoding('UTF-16le')")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.ExecContext(t.Context(), "CREATE TABLE orders (id INTEGER)"); err != nil {
		t.Fatal(err)
	}
	for _, noMigrate := range []bool{false, true} {
		if err := reopen(t.Context(), path, &Options{NoMigrate: noMigrate}); !errors.Is(err, ErrUnsafe) || !strings.Contains(err.Error(), "UTF-16le") {
			t.Errorf("NoMigrate %v: %v, want ErrUnsafe that names the encoding", noMigrate, err)
		}
	}
	var tables int
	if err := db.QueryRowContext(t.Context(), "SELECT count(*) FROM sqlite_schema").Scan(&tables); err != nil || tables != 1 {
		t.Errorf("the file has %d tables, %v", tables, err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestCheck_UnsafeSetting_IsNamed(t *testing.T) {
	t.Parallel()
	if err := checkSettings("wal", syncFull, false); err != nil {
		t.Error(err)
	}
	if err := checkSettings("wal", syncNormal, true); err != nil {
		t.Error(err)
	}
	for _, c := range []struct {
		journal string
		sync    int
		relaxed bool
		says    string
	}{{"delete", syncFull, false, "journal_mode"}, {"wal", syncNormal, false, "synchronous"}, {"wal", 0, true, "synchronous"}} {
		if err := checkSettings(c.journal, c.sync, c.relaxed); !errors.Is(err, ErrUnsafe) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%+v: %v, want ErrUnsafe that names %s", c, err, c.says)
		}
	}
}

func TestClose_AfterUse_LeavesNoGoroutine(t *testing.T) {
	path := filepath.Join(t.TempDir(), "semel.db")
	before := runtime.NumGoroutine()
	s, err := Open(context.Background(), path, nil)
	if err != nil {
		t.Fatal(err)
	}
	complete(t, s, "k", "result")
	for range s.List(context.Background(), store.Filter{}) {
		break
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(time.Minute); runtime.NumGoroutine() > before; runtime.Gosched() {
		if time.Now().After(deadline) {
			t.Fatalf("%d goroutines left", runtime.NumGoroutine()-before)
		}
	}
}
