package pgtest_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/semel-go/semel/internal/proctest"
	"github.com/semel-go/semel/store/pgstore/pgtest"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }

func connect(t *testing.T, url string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

func TestServer_KilledAndStarted_HasItsData(t *testing.T) {
	s := pgtest.Start(t, pgtest.Durable...)
	if _, err := connect(t, s.URL()).Exec(t.Context(), "CREATE TABLE kept AS SELECT 7 AS n"); err != nil {
		t.Fatal(err)
	}
	if err := s.Start(); err == nil {
		t.Error("Start of a server that runs succeeded")
	}
	url := s.URL()
	for _, end := range []func(){s.Kill, s.Stop} {
		end()
		if conn, err := pgx.Connect(t.Context(), url); err == nil {
			_ = conn.Close(t.Context())
			t.Error("the server answers after its end")
		}
		if err := s.Start(); err != nil {
			t.Fatal(err)
		}
		n := 0
		if err := connect(t, url).QueryRow(t.Context(), "SELECT n FROM kept").Scan(&n); err != nil || n != 7 {
			t.Errorf("after the restart the value is %d, error %v; want 7", n, err)
		}
	}
}

// A killed server cannot remove shared memory that is outside of its data.
func TestNew_SharedMemory_IsInTheData(t *testing.T) {
	conn, err := pgx.Connect(t.Context(), pgtest.Start(t, pgtest.Fast...).URL())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	var kind string
	if err := conn.QueryRow(t.Context(), "SHOW dynamic_shared_memory_type").Scan(&kind); err != nil || kind != "mmap" {
		t.Errorf("the shared memory is of type %q, %v; want mmap", kind, err)
	}
}

func TestRemove_DeletesData(t *testing.T) {
	s, err := pgtest.New(pgtest.Fast...)
	proctest.Need(t, err, pgtest.ErrNotInstalled)
	if err := s.Remove(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(s.DataDir()); !os.IsNotExist(err) {
		t.Errorf("the data is still there: %v", err)
	}
}

func TestBin_EnvironmentNamesDirectory_BinariesMustBeThere(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("SEMEL_TEST_POSTGRES_BIN", dir)
	if got, err := pgtest.Bin(); err == nil || errors.Is(err, pgtest.ErrNotInstalled) || !strings.Contains(err.Error(), dir) {
		t.Errorf("an empty directory: got %q, error %v; want an error that names it and does not skip tests", got, err)
	}
	for _, name := range []string{"postgres", "initdb"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := pgtest.Bin(); err != nil || got != dir {
		t.Errorf("got %q, %v; want %q", got, err, dir)
	}
}

func TestURL_CalledTwice_SameServer(t *testing.T) {
	url := pgtest.URL(t)
	if pgtest.URL(t) != url || connect(t, url).Ping(t.Context()) != nil {
		t.Error("URL returned two servers, or one that does not answer")
	}
	t.Setenv("SEMEL_TEST_POSTGRES_URL", "postgres://elsewhere/db")
	if got := pgtest.URL(t); !strings.Contains(got, "elsewhere") {
		t.Errorf("SEMEL_TEST_POSTGRES_URL is set, but URL is %s", got)
	}
}
