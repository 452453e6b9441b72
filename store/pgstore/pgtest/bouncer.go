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

	"github.com/semel-go/semel/internal/proctest"
)

// Bouncer starts a PgBouncer in transaction mode in front of the server at url,
// which must not ask for a password, and returns the PgBouncer's own URL. It
// has 4 connections to the server, so that clients share them. The URL turns
// prepared statements off if this PgBouncer does not support them. Bouncer
// skips the test if PgBouncer is not installed.
func Bouncer(t testing.TB, url string) string {
	t.Helper()
	bin, err := bouncerProgram()
	proctest.Need(t, err, exec.ErrNotFound)
	b, err := startBouncer(t.Context(), bin, url)
	if err != nil {
		t.Fatal(err)
	}
	proctest.RemoveAtEnd(t, b)
	return b.url()
}

func bouncerProgram() (bin string, err error) {
	if bin = os.Getenv("SEMEL_TEST_PGBOUNCER_BIN"); bin != "" {
		if bin, err = exec.LookPath(bin); err != nil {
			err = fmt.Errorf("pgtest: SEMEL_TEST_PGBOUNCER_BIN: %s", err.Error()) // not an ErrNotFound: the test must not be skipped
		}
		return bin, err
	}
	if bin, err = exec.LookPath("pgbouncer"); err != nil {
		if bin, err = exec.LookPath("/usr/sbin/pgbouncer"); err != nil {
			err = fmt.Errorf("pgtest: install pgbouncer, or set SEMEL_TEST_PGBOUNCER_BIN: %w", exec.ErrNotFound)
		}
	}
	return bin, err
}

// supportsPrepared reports whether a PgBouncer supports the prepared statements
// of its clients, which came with version 1.21.
func supportsPrepared(ctx context.Context, bin string) (bool, error) {
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
	bin      string
	server   *url.URL
	port     int
	prepared bool
	proc     proctest.Server
}

func startBouncer(ctx context.Context, bin, server string) (*bouncer, error) {
	b := &bouncer{bin: bin}
	var err error
	if b.server, err = url.Parse(server); err != nil {
		return nil, err
	}
	if b.prepared, err = supportsPrepared(ctx, bin); err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "semel-bouncer-")
	if err != nil {
		return nil, err
	}
	b.proc = proctest.Server{Name: "pgtest: pgbouncer", Dir: dir, Limit: limit, Command: b.command, Ready: func(*proctest.Process) error {
		_, err := ping(b.url())
		return err
	}}
	if err := b.proc.Start(); err != nil {
		return nil, errors.Join(err, b.Remove())
	}
	return b, nil
}

func (b *bouncer) command(bool) (*exec.Cmd, error) {
	var err error
	if b.port, err = proctest.FreePort(); err != nil {
		return nil, err
	}
	in := func(name string) string { return filepath.Join(b.proc.Dir, name) }
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
`, b.server.Hostname(), b.server.Port(), b.port, in("users"))
	if b.prepared {
		ini += "max_prepared_statements = 200\n"
	}
	cmd := exec.Command(b.bin, "-q", in("ini")) //nolint:noctx // it runs until it is ended
	return cmd, errors.Join(ownData(cmd, b.proc.Dir),
		os.WriteFile(in("ini"), []byte(ini), 0o644), os.WriteFile(in("users"), []byte("\"postgres\" \"\"\n"), 0o644))
}

func (b *bouncer) url() string {
	mode := ""
	if !b.prepared {
		mode = "&default_query_exec_mode=exec"
	}
	return fmt.Sprintf("postgres://postgres@127.0.0.1:%d%s?sslmode=disable%s", b.port, b.server.Path, mode)
}

// Remove ends the PgBouncer and deletes its files.
func (b *bouncer) Remove() error { return b.proc.Remove(syscall.SIGINT) }
