package redistest

import (
	"context"
	_ "embed"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// shim is the C library that moves a server's clock.
//
//go:embed shim/clock.c
var shim []byte

// ErrNoCompiler says that the library that moves a server's clock cannot be
// compiled on this machine.
var ErrNoCompiler = errors.New("redistest: no C compiler (cc) in PATH, or not on Linux: a server's clock cannot be moved; install gcc and libc6-dev")

// Clock is the wall clock of one server. Safe for concurrent use.
type Clock struct {
	server *Server
	file   *os.File
}

// StartWithClock is [Start] for a server whose wall clock a test can set forward
// and back. It skips the test if there is no C compiler.
func StartWithClock(t testing.TB, args ...string) (*Server, *Clock) {
	t.Helper()
	dir := t.TempDir()
	lib, err := compile(dir)
	need(t, err)
	path := filepath.Join(dir, "offset")
	if err := os.WriteFile(path, make([]byte, 8), 0o600); err != nil {
		t.Fatal(err)
	}
	file, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	s := started(t, &Server{args: args, env: []string{"LD_PRELOAD=" + lib, "SEMEL_CLOCK_FILE=" + path}})
	t.Cleanup(func() { _ = file.Close() })
	return s, &Clock{s, file}
}

// compile makes the library, in a directory.
func compile(dir string) (lib string, err error) {
	cc, err := exec.LookPath("cc")
	if err != nil || runtime.GOOS != "linux" {
		return "", ErrNoCompiler
	}
	source := filepath.Join(dir, "clock.c")
	lib = filepath.Join(dir, "clock.so")
	if err := os.WriteFile(source, shim, 0o600); err != nil {
		return "", err
	}
	out, err := exec.CommandContext(context.Background(), cc, "-shared", "-fPIC", "-O2", "-Wall", "-Werror", "-o", lib, source).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("redistest: %w: %s", err, out)
	}
	return lib, nil
}

// Set sets the server's clock to the machine's clock plus d, which may be
// negative. It returns when the server reports that time.
func (c *Clock) Set(d time.Duration) error {
	var b [8]byte
	binary.NativeEndian.PutUint64(b[:], uint64(d.Microseconds()))
	if _, err := c.file.WriteAt(b[:], 0); err != nil {
		return err
	}
	return with(c.server.Addr(), func(r *redis.Client) error {
		before := time.Now()
		now, err := r.Time(context.Background()).Result()
		if err != nil {
			return err
		}
		// The server rounds to a microsecond.
		if now.Before(before.Add(d-time.Microsecond)) || now.After(time.Now().Add(d+time.Microsecond)) {
			return fmt.Errorf("redistest: the server's clock is ahead of the machine's by %v, want %v", now.Sub(before), d)
		}
		return nil
	})
}
