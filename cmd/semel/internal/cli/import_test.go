//go:build unix

package cli

import (
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/semel-go/semel/cmd/semel/internal/program"
	"github.com/semel-go/semel/cmd/semel/internal/storeurl"
	"github.com/semel-go/semel/internal/proctest"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/pgstore/pgtest"
	"github.com/semel-go/semel/store/redisstore/redistest"
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
	from, to := homeGrown(t, `('ann', 'k1', 201, '{"id":1}'), ('ann', 'untyped', 201, '{"id":1}')`), "sqlite:"+filepath.Join(t.TempDir(), "semel.db")
	query := strings.Replace(seenQuery, "'application/json'", "CASE id WHEN 'k1' THEN 'application/json' END", 1)
	r := command(t, "import", "--from", from, "--query", query, "--to", to)
	if r.code != 0 || !strings.Contains(r.stdout, "read 2: imported 2,") {
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
	if got, err := post(t.Context(), wire(t), p.Addr, "/pay", "untyped", "{}", "X-Tenant", "ann"); err != nil || !got.replayed() || got.header.Values("Content-Type") != nil {
		t.Errorf("a row without a content type: %+v, %v", got, err) // docs/migrate.md has this
	}
	if got, err := post(t.Context(), wire(t), p.Addr, "/pay", "k1", "{}", "X-Tenant", "bob"); err != nil || got.replayed() || b.of("k1") != 1 {
		t.Errorf("the key of another tenant: %+v, %v", got, err)
	}
}

func TestImport_BadRow_NamedAndExitCode1(t *testing.T) {
	t.Parallel()
	from, to := homeGrown(t, `('ann', 'k1', 201, 'a'), ('ann', '', 201, 'a'), ('ann', 'k3', NULL, 'a')`), "sqlite:"+filepath.Join(t.TempDir(), "semel.db")
	r := command(t, "import", "--from", from, "--query", seenQuery, "--to", to)
	if r.code != 1 || !strings.Contains(r.stdout, "imported 1,") || !strings.Contains(r.stderr, "row 2: key: is empty") || !strings.Contains(r.stderr, "row 3: status: is missing") ||
		!strings.Contains(r.stderr, "for rows without one: operation http, tenant ann, key k3\n") {
		t.Errorf("%+v", r)
	}
	if r := command(t, "import", "--from", from, "--query", seenQuery+" WHERE id <> ''", "--to", to, "--status", "200"); r.code != 0 || !strings.Contains(r.stdout, "imported 1, already there 1") {
		t.Errorf("%+v", r)
	}
}

// A dry run needs no new store, makes none, and says what it could not see.
func TestDryRun_NoTarget_CountsAndCreatesNothing(t *testing.T) {
	t.Parallel()
	from, rows := filled(t, store.Completed, store.Unknown), homeGrown(t, `('ann', 'k1', 201, 'a'), ('ann', '', 201, 'a')`)
	server := pgtest.Start(t)
	for name, to := range map[string]string{
		"no file":             "sqlite:" + filepath.Join(t.TempDir(), "new.db"),
		"no folder":           "sqlite:" + filepath.Join(t.TempDir(), "none", "new.db"),
		"a file of the app":   homeGrown(t, `('ann', 'k1', 201, 'a')`),
		"PostgreSQL":          server.URL(),
		"a schema of its own": server.URL() + "&semel-schema=other",
	} {
		before := contents(t, to)
		for _, c := range []struct {
			args []string
			code int
			out  string
		}{
			{[]string{"copy", "--from", from}, program.ExitOK, "read 2: would copy 2, already there 0"},
			{[]string{"import", "--from", rows, "--query", seenQuery}, program.ExitFailed, "read 2: would import 1, already there 0, different 0, expired 0, bad 1"},
		} {
			r := command(t, append(c.args, "--to", to, "--dry-run")...)
			if r.code != c.code || !strings.Contains(r.stdout, c.out) || !strings.Contains(r.stderr, "does not exist yet; semel migrate --store") || strings.Contains(r.stderr, "mkdir") != (name == "no folder") {
				t.Errorf("%s: %v: %+v", name, c.args, r)
			}
			if r := command(t, append(c.args, "--to", to, "--dry-run", "--json")...); r.code != c.code || !strings.Contains(r.stdout, `"target_absent":true`) {
				t.Errorf("%s: %v: %+v", name, c.args, r)
			}
		}
		r := command(t, "copy", "--from", from, "--to", to, "--dry-run", "--verify")
		if r.code != program.ExitFailed || !strings.Contains(r.stderr, "nothing to compare") {
			t.Errorf("%s: verify: %+v", name, r)
		}
		if after := contents(t, to); after != before {
			t.Errorf("%s: the target was changed from %.40q to %.40q", name, before, after)
		}
	}
}

// contents are the bytes of a SQLite file, or whether PostgreSQL has a store.
func contents(t *testing.T, to string) string {
	t.Helper()
	u, err := storeurl.Parse(to, "--to")
	if err != nil {
		t.Fatal(err)
	}
	if path, ok := u.File(); ok {
		b, err := os.ReadFile(path)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
		return string(b)
	}
	st, err := u.OpenExisting(t.Context())
	if err == nil {
		_ = st.Close()
	}
	return fmt.Sprint("absent: ", errors.Is(err, store.ErrNoSchema))
}

// An import that could not begin has no counts to show.
func TestImport_QueryFails_ShowsNoCounts(t *testing.T) {
	t.Parallel()
	to := "sqlite:" + filepath.Join(t.TempDir(), "new.db")
	for _, more := range [][]string{{"--dry-run"}, {"--dry-run", "--json"}, nil} {
		r := command(t, append([]string{"import", "--from", homeGrown(t, `('ann', 'k1', 201, 'a')`), "--query", "SELECT x FROM nothing", "--to", to}, more...)...)
		if r.code != program.ExitFailed || r.stdout != "" || !strings.Contains(r.stderr, "nothing") {
			t.Errorf("%v: %+v", more, r)
		}
	}
}

// A source that cannot be read leaves no new store behind.
func TestImport_SourceFails_NoStoreMade(t *testing.T) {
	t.Parallel()
	for name, from := range map[string][]string{
		"no server":          {"--from", "postgres://app@127.0.0.1:1/app", "--query", "SELECT 1 AS key"},
		"no server of Redis": {"--from", "redis://127.0.0.1:1/0", "--match", "*", "--name", "{key}"},
		"no table":           {"--from", homeGrown(t, `('ann', 'k1', 201, 'a')`), "--query", "SELECT x FROM nothing"},
	} {
		path := filepath.Join(t.TempDir(), "new.db")
		r := command(t, append([]string{"import", "--to", "sqlite:" + path}, from...)...)
		if _, err := os.Stat(path); r.code != program.ExitFailed || !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %+v; the store: %v", name, r, err)
		}
	}
}

// With --hash-keys-file the messages show no name; without it they show it in one clean line.
func TestImport_RedisBadRow_ShowsNameOnlyInTheClear(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	o, err := redis.ParseURL(server.URL())
	if err != nil {
		t.Fatal(err)
	}
	client := redis.NewClient(o)
	defer client.Close()
	for name, value := range map[string]string{
		"idem:canary\x1b[2J:k1": "no object", "idem:canary": "{}", "idem:canary:k\x1b[2J": "{}", "idem:canary:k2": `{"key":"canary","status":200}`,
		"idem:canary:k3": `{"status":200,"operation":"\u001b[2J"}`, "idem:canary:" + strings.Repeat("k", 9999): "",
	} {
		if err := client.Set(t.Context(), name, value, 0).Err(); err != nil {
			t.Fatal(err)
		}
	}
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte(strings.Repeat("5a", 32)), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, hashed := range []bool{false, true} {
		args := []string{"import", "--from", server.URL(), "--match", "idem:*", "--name", "idem:{tenant}:{key}", "--to", "memory:"}
		if hashed {
			args = append(args, "--hash-keys-file", secret)
		}
		r := command(t, args...)
		if r.code != program.ExitFailed || !strings.Contains(r.stdout, "read 6: imported 0, already there 0, different 0, expired 0, bad 6") {
			t.Errorf("%+v", r)
		}
		if strings.Contains(r.stderr, ": idem:canary: the name does not fit idem:{tenant}:{key}\n") == hashed || strings.Contains(r.stderr, ": idem:canary·[2J:k1: the value is no JSON") == hashed {
			t.Errorf("hashed %v: %q", hashed, r.stderr)
		}
		if strings.Contains(r.stderr, "canary") == hashed || strings.Contains(r.stderr, "\x1b") || len(r.stderr) > 4000 {
			t.Errorf("hashed %v: %d bytes: %q", hashed, len(r.stderr), r.stderr)
		}
	}
}

func TestImport_WrongOptions_ExitCode2(t *testing.T) {
	t.Parallel()
	from := homeGrown(t, `('ann', 'k1', 201, 'a')`)
	for want, args := range map[string][]string{
		"--query: is required for a database":                   {"--from", from},
		"--match: and --name are required":                      {"--from", "redis://127.0.0.1:1/0"},
		"--name: \"idem\": has no {key}":                        {"--from", "redis://127.0.0.1:1/0", "--match", "*", "--name", "idem"},
		"--field: \"x=y\": write COLUMN=NAME":                   {"--from", from, "--query", "x", "--field", "x=y"},
		"--field: \"key=b\": key has a --field":                 {"--from", from, "--query", "x", "--field", "key=a", "--field", "key=b"},
		"--field: \"key=a\": a is the source of tenant already": {"--from", from, "--query", "x", "--field", "tenant=a", "--field", "key=a"},
		"--from: \"mysql\": choose sqlite:PATH":                 {"--from", "mysql:x"},
		"--status: \"42\"":                                      {"--from", from, "--query", "x", "--status", "42"},
		"--from: \"" + from + ".missing\": there is no such file; see what is there with: ls -l ": {"--from", from + ".missing", "--query", "x"},
	} {
		if r := command(t, append([]string{"import"}, args...)...); r.code != 2 || !strings.Contains(r.stderr, want) {
			t.Errorf("%v: %+v, want %q", args, r, want)
		}
	}
}

func TestImport_NoSuchDatabase_IsAnErrorOfFrom(t *testing.T) {
	t.Parallel()
	from, err := url.Parse(pgtest.URL(t))
	if err != nil {
		t.Fatal(err)
	}
	from.Path = "/absent"
	r := command(t, "import", "--from", from.String(), "--query", "SELECT 1 AS key", "--to", "memory:")
	if r.code != program.ExitFailed || !strings.HasPrefix(r.stderr, "semel import: --from: ") || !strings.Contains(r.stderr, "createdb") || strings.Contains(r.stderr, "--query") {
		t.Errorf("%+v", r)
	}
}

func TestRedisURL_NoServer_SaysHowToSee(t *testing.T) {
	t.Parallel()
	port, err := proctest.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	address := fmt.Sprintf("redis://127.0.0.1:%d/0", port)
	see := fmt.Sprintf("see whether the server listens there with: redis-cli -h 127.0.0.1 -p %d ping", port)
	for want, args := range map[string][]string{
		"semel import: --from: ": {"import", "--from", address, "--match", "*", "--name", "{key}", "--to", "memory:"},
		"semel inspect list: ":   {"inspect", "list", "--store", address},
	} {
		if r := command(t, args...); r.code != program.ExitFailed || !strings.Contains(r.stderr, want) || !strings.Contains(r.stderr, see) {
			t.Errorf("%v: %+v", args, r)
		}
	}
}
