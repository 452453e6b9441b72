package pgtest

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// Bouncer starts a PgBouncer in transaction mode in front of the server at
// url, with so few connections that its clients share them, and is its URL: one
// for prepared statements, if this PgBouncer knows them. It needs a server
// without a password. It skips the test if PgBouncer is not installed.
func Bouncer(t testing.TB, at string) string {
	t.Helper()
	bin, err := bouncerProgram()
	if err != nil {
		if os.Getenv("SEMEL_TEST_REQUIRE") == "1" || os.Getenv("SEMEL_TEST_PGBOUNCER_BIN") != "" {
			t.Fatal(err)
		}
		t.Skipf("SKIPPED, NOT TESTED: %v; install pgbouncer, or set SEMEL_TEST_PGBOUNCER_BIN", err)
	}
	knows, err := prepares(t.Context(), bin)
	if err != nil {
		t.Fatal(err)
	}
	b, err := startBouncer(bin, at, knows)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		b.proc.end(syscall.SIGINT)
		_ = os.RemoveAll(b.dir)
	})
	return b.url
}

func bouncerProgram() (bin string, err error) {
	if bin = os.Getenv("SEMEL_TEST_PGBOUNCER_BIN"); bin != "" {
		if bin, err = exec.LookPath(bin); err != nil {
			err = fmt.Errorf("pgtest: SEMEL_TEST_PGBOUNCER_BIN: %w", err)
		}
		return bin, err
	}
	if bin, err = exec.LookPath("pgbouncer"); err != nil {
		bin, err = exec.LookPath("/usr/sbin/pgbouncer")
	}
	return bin, err
}

// prepares reports whether a PgBouncer knows the prepared statements of its
// clients: from 1.21 on.
func prepares(ctx context.Context, bin string) (bool, error) {
	text, err := exec.CommandContext(ctx, bin, "--version").Output()
	if err != nil {
		return false, fmt.Errorf("pgtest: %s --version: %w", bin, err)
	}
	var major, minor int
	if _, err := fmt.Sscanf(string(text), "PgBouncer %d.%d", &major, &minor); err != nil {
		return false, fmt.Errorf("pgtest: %s --version says %q", bin, text)
	}
	return major > 1 || minor >= 21, nil
}

type bouncer struct {
	dir, url string
	proc     *process
}

func startBouncer(bin, at string, prepares bool) (*bouncer, error) {
	u, err := url.Parse(at)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "semel-bouncer-")
	if err != nil {
		return nil, err
	}
	for deadline := time.Now().Add(ready); ; {
		b, err := tryBouncer(bin, dir, u, prepares)
		if err == nil {
			return b, nil
		}
		if time.Now().After(deadline) {
			return nil, errors.Join(err, os.RemoveAll(dir))
		}
		pause(20 * time.Millisecond) // another may have taken the port meanwhile
	}
}

// tryBouncer starts one in front of the server at u, on a port that is free.
func tryBouncer(bin, dir string, u *url.URL, prepares bool) (*bouncer, error) {
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	attr, err := ownerAttr(dir)
	if err != nil {
		return nil, err
	}
	ini := fmt.Sprintf(`[databases]
* = host=%s port=%s
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = %d
unix_socket_dir =
auth_type = trust
auth_file = %s
pool_mode = transaction
default_pool_size = 4
max_client_conn = 200
`, u.Hostname(), u.Port(), port, filepath.Join(dir, "users"))
	options := "&default_query_exec_mode=exec"
	if prepares {
		ini += "max_prepared_statements = 200\n"
		options = ""
	}
	if err := errors.Join(os.WriteFile(filepath.Join(dir, "ini"), []byte(ini), 0o644),
		os.WriteFile(filepath.Join(dir, "users"), []byte("\"postgres\" \"\"\n"), 0o644)); err != nil {
		return nil, err
	}
	p, err := run(bin, []string{"-q", filepath.Join(dir, "ini")}, dir, attr, nil)
	if err != nil {
		return nil, err
	}
	b := &bouncer{dir: dir, proc: p, url: fmt.Sprintf("postgres://postgres@127.0.0.1:%d%s?sslmode=disable%s", port, u.Path, options)}
	for deadline := time.Now().Add(ready); ; pause(10 * time.Millisecond) {
		_, err := ping(b.url)
		select {
		case <-p.ended:
			return nil, errors.Join(errors.New("pgtest: pgbouncer ended"), err)
		default:
		}
		if err == nil {
			return b, nil
		}
		if time.Now().After(deadline) {
			p.end(syscall.SIGKILL)
			return nil, fmt.Errorf("pgtest: pgbouncer does not answer: %w", err)
		}
	}
}
