package pgtest_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

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

func TestAKilledServerComesBackWithItsData(t *testing.T) {
	s := pgtest.Start(t, pgtest.Durable...)
	if _, err := connect(t, s.URL()).Exec(t.Context(), "CREATE TABLE kept AS SELECT 7 AS n"); err != nil {
		t.Fatal(err)
	}
	if err := s.Start(); err == nil {
		t.Error("a server that runs was started again")
	}
	url := s.URL()
	for _, end := range []func(){s.Kill, s.Stop} {
		end()
		if conn, err := pgx.Connect(t.Context(), url); err == nil {
			_ = conn.Close(t.Context())
			t.Error("it answers after its end")
		}
		if err := s.Start(); err != nil {
			t.Fatal(err)
		}
		n := 0
		if err := connect(t, url).QueryRow(t.Context(), "SELECT n FROM kept").Scan(&n); err != nil || n != 7 {
			t.Errorf("%d is left, error %v", n, err)
		}
	}
}

func TestRemoveLeavesNothing(t *testing.T) {
	if _, err := pgtest.Bin(); err != nil {
		if os.Getenv("SEMEL_TEST_REQUIRE") == "1" {
			t.Fatal(err)
		}
		t.Skipf("SKIPPED, NOT TESTED: %v", err)
	}
	s, err := pgtest.New(pgtest.Fast...)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Remove(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(s.DataDir()); !os.IsNotExist(err) {
		t.Errorf("the data is still there: %v", err)
	}
}

func TestOtherBinariesAreNamedByTheEnvironment(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("SEMEL_TEST_POSTGRES_BIN", dir)
	if got, err := pgtest.Bin(); err == nil || errors.Is(err, pgtest.ErrNotInstalled) || !strings.Contains(err.Error(), dir) {
		t.Errorf("a directory without them: %q, %v", got, err) // and no test is skipped for it
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

func TestTheSharedServerIsOne(t *testing.T) {
	url := pgtest.URL(t)
	if pgtest.URL(t) != url || connect(t, url).Ping(t.Context()) != nil {
		t.Error("two servers, or one that does not answer")
	}
	t.Setenv("SEMEL_TEST_POSTGRES_URL", "postgres://elsewhere/db")
	if got := pgtest.URL(t); !strings.Contains(got, "elsewhere") {
		t.Errorf("the environment names another, got %s", got)
	}
}
