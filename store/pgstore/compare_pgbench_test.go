package pgstore

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/semel-go/semel/store/pgstore/pgtest"
)

// pgbenchPair is the least SQL that claims and completes a key: two
// statements, two commits.
const pgbenchPair = `\set id random(1, 9000000000000000000)
INSERT INTO minimal (id, owner, state, until) VALUES (:id, :client_id, 2, 0) ON CONFLICT DO NOTHING;
UPDATE minimal SET state = 4, body = '%s' WHERE id = :id AND owner = :client_id AND state = 2;
`

// pgbench is a contender by the server's own load generator.
func (m *meter) pgbench(t *testing.T) competitor {
	t.Helper()
	bin, err := pgtest.Bin()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(bin, "pgbench")
	if _, err := os.Stat(path); err != nil {
		if os.Getenv("SEMEL_TEST_REQUIRE") == "1" {
			t.Fatal(err)
		}
		t.Skipf("SKIPPED, NOT TESTED: %v", err)
	}
	mustExec(t, m.conn, "CREATE TABLE minimal (id bigint PRIMARY KEY, owner bigint NOT NULL, state smallint NOT NULL, until bigint NOT NULL, body bytea) WITH (fillfactor = 80)")
	script := filepath.Join(t.TempDir(), "pair.sql")
	if err := os.WriteFile(script, fmt.Appendf(nil, pgbenchPair, result), 0o644); err != nil {
		t.Fatal(err)
	}
	count := regexp.MustCompile(`transactions actually processed: (\d+)`)
	return competitor{name: "pgbench", run: func(t testing.TB, g int, d time.Duration) (int, []time.Duration) {
		t.Helper()
		seconds := max(1, int(d.Round(time.Second)/time.Second))
		cmd := exec.CommandContext(t.Context(), path, "-n", "-M", "prepared", "-h", "127.0.0.1", "-p", strconv.Itoa(m.srv.Port()), "-U", "postgres",
			"-c", strconv.Itoa(g), "-j", "2", "-T", strconv.Itoa(seconds), "-f", script, "postgres")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("pgbench: %v\n%s", err, out)
		}
		is := count.FindSubmatch(out)
		if is == nil {
			t.Fatalf("pgbench does not say how many:\n%s", out)
		}
		n, _ := strconv.Atoi(string(is[1]))
		return n, nil
	}}
}
