//go:build unix

package cli

import (
	"database/sql"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
)

// homeGrown makes a table of keys as a service may have it.
func homeGrown(t *testing.T, rows string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "app.db")
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, s := range []string{"CREATE TABLE seen (account TEXT, id TEXT, code INTEGER, answer TEXT)", "INSERT INTO seen VALUES " + rows} {
		if _, err := db.ExecContext(t.Context(), s); err != nil {
			t.Fatal(err)
		}
	}
	return "sqlite:" + path
}

const seenQuery = "SELECT account AS tenant, id AS key, code AS status, answer AS body, 'application/json' AS content_type FROM seen"

func TestImport_TableRows_ProxyReplaysThem(t *testing.T) {
	t.Parallel()
	from, to := homeGrown(t, `('ann', 'k1', 201, '{"id":1}')`), "sqlite:"+filepath.Join(t.TempDir(), "semel.db")
	r := command(t, "import", "--from", from, "--query", seenQuery, "--to", to)
	if r.code != 0 || !strings.Contains(r.stdout, "read 1: imported 1,") {
		t.Fatalf("%+v", r)
	}
	b := newBank(t)
	p := start(t, "--listen", "127.0.0.1:0", "--upstream", b.URL, "--scope", "header:X-Tenant", "--store", to)
	for _, body := range []string{`{"amount":1}`, `{"amount":2}`} { // the old request is not known
		got, err := post(t.Context(), wire(t), p.Addr, "/pay", "k1", body, "X-Tenant", "ann")
		if err != nil || got.status != http.StatusCreated || !got.replayed() || got.body != `{"id":1}` || got.header.Get("Content-Type") != "application/json" {
			t.Errorf("%+v, %v", got, err)
		}
	}
	if got, err := post(t.Context(), wire(t), p.Addr, "/pay", "k1", "{}", "X-Tenant", "bob"); err != nil || got.replayed() || b.of("k1") != 1 {
		t.Errorf("the key of another tenant: %+v, %v", got, err)
	}
}

func TestImport_BadRow_NamedAndExitCode1(t *testing.T) {
	t.Parallel()
	from, to := homeGrown(t, `('ann', 'k1', 201, 'a'), ('ann', '', 201, 'a'), ('ann', 'k3', NULL, 'a')`), "sqlite:"+filepath.Join(t.TempDir(), "semel.db")
	r := command(t, "import", "--from", from, "--query", seenQuery, "--to", to)
	if r.code != 1 || !strings.Contains(r.stdout, "imported 1,") || !strings.Contains(r.stderr, "row 2: key: has 0 bytes") || !strings.Contains(r.stderr, "row 3: status: is 0") {
		t.Errorf("%+v", r)
	}
	if r := command(t, "import", "--from", from, "--query", seenQuery+" WHERE id <> ''", "--to", to, "--status", "200"); r.code != 0 || !strings.Contains(r.stdout, "imported 1, already there 1") {
		t.Errorf("%+v", r)
	}
}

func TestImport_WrongOptions_ExitCode2(t *testing.T) {
	t.Parallel()
	from := homeGrown(t, `('ann', 'k1', 201, 'a')`)
	for want, args := range map[string][]string{
		"--query: is required for a database":   {"--from", from},
		"--match: and --name are required":      {"--from", "redis://127.0.0.1:1/0"},
		"--name: \"idem\": has no {key}":        {"--from", "redis://127.0.0.1:1/0", "--match", "*", "--name", "idem"},
		"--field: \"x=y\": write COLUMN=NAME":   {"--from", from, "--query", "x", "--field", "x=y"},
		"--from: \"mysql\": choose sqlite:PATH": {"--from", "mysql:x"},
		"--status: \"42\"":                      {"--from", from, "--query", "x", "--status", "42"},
		"--from: cannot be read":                {"--from", from + ".missing", "--query", "x"},
	} {
		if r := command(t, append([]string{"import"}, args...)...); r.code != 2 || !strings.Contains(r.stderr, want) {
			t.Errorf("%v: %+v, want %q", args, r, want)
		}
	}
}
