//go:build unix

package chaos

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/semel-go/semel/internal/proctest"
	"github.com/semel-go/semel/test/internal/repo"
)

// binary is the semel command, built once for all tests of this package.
var binary = sync.OnceValues(func() (string, error) {
	root, err := repo.Root()
	if err != nil {
		return "", err
	}
	dir, err := os.MkdirTemp("", "semel-chaos-")
	if err != nil {
		return "", err
	}
	built.Store(&dir)
	path := filepath.Join(dir, "semel")
	cmd := exec.Command("go", "build", "-o", path, ".")
	cmd.Dir = filepath.Join(root, "cmd", "semel")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build: %w\n%s", err, out)
	}
	return path, nil
})

var built atomic.Pointer[string]

func removeBinary() {
	if dir := built.Load(); dir != nil {
		_ = os.RemoveAll(*dir)
	}
}

// startProxy starts semel proxy, and returns the address that it listens on.
func startProxy(t *testing.T, args ...string) string {
	t.Helper()
	path, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(path, append([]string{"proxy", "--listen", "127.0.0.1:0"}, args...)...)
	stderr, out := io.Pipe()
	cmd.Stderr = out
	p := proctest.Run(t, cmd)
	go func() {
		<-p.Ended()
		_ = out.Close()
	}()
	lines := bufio.NewScanner(stderr)
	var output []string
	for lines.Scan() {
		if _, rest, ok := strings.Cut(lines.Text(), "msg=listening addr="); ok {
			go func() { _, _ = io.Copy(io.Discard, stderr) }() // ends with the process
			addr, _, _ := strings.Cut(rest, " ")
			return addr
		}
		output = append(output, lines.Text())
	}
	t.Fatalf("semel proxy ended:\n%s", strings.Join(output, "\n"))
	return ""
}
