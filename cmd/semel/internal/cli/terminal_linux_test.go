package cli

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"github.com/semel-go/semel/cmd/semel/internal/program"
)

// openTerminal makes a terminal, and the file from which a test reads the text on it.
func openTerminal(t *testing.T) (terminal, other *os.File) {
	t.Helper()
	other, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Skip("this machine has no terminals:", err)
	}
	t.Cleanup(func() { _ = other.Close() })
	var number, unlocked int32
	for request, value := range map[uintptr]*int32{syscall.TIOCGPTN: &number, syscall.TIOCSPTLCK: &unlocked} {
		if _, _, errno := syscall.Syscall(syscall.SYS_IOCTL, other.Fd(), request, uintptr(unsafe.Pointer(value))); errno != 0 {
			t.Fatal(errno)
		}
	}
	if terminal, err = os.OpenFile(fmt.Sprint("/dev/pts/", number), os.O_RDWR|syscall.O_NOCTTY, 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = terminal.Close() })
	return terminal, other
}

// A person reads a refusal once; with --json a program gets both lines, as from a pipe.
func TestInspectResolve_RefusedOnTerminal_IsSaidOnce(t *testing.T) {
	t.Parallel()
	url, st := seed(t)
	for _, c := range []struct {
		fence string
		flags []string
		lines []string
	}{
		{"1", nil, []string{"semel inspect resolve: nothing was changed"}},
		{"1", []string{"--json"}, []string{`"result":"not done"`, "nothing was changed"}},
		{fenceOf(t, st, "parked"), nil, []string{`"result":"done"`}},
	} {
		terminal, other := openTerminal(t)
		args := append([]string{"inspect", "resolve", "parked", "--tenant", "ann", "--store", url, "--fence", c.fence, "--verdict", "failed", "--reason", "r"}, c.flags...)
		code := Run(t.Context(), args, func(string) string { return "" }, nil, new(strings.Builder), terminal)
		const end = "== end =="
		if _, err := terminal.WriteString(end); err != nil {
			t.Fatal(err)
		}
		var text string
		for b := make([]byte, 4096); !strings.HasSuffix(text, end); {
			n, err := other.Read(b)
			if err != nil {
				t.Fatal(err)
			}
			text += string(b[:n])
		}
		lines := strings.Split(text, "\n")
		lines = lines[:len(lines)-1]
		if len(lines) != len(c.lines) || (code == program.ExitOK) != (c.fence != "1") {
			t.Fatalf("exit code %d, and %d lines, want %d:\n%s", code, len(lines), len(c.lines), text)
		}
		for i, want := range c.lines {
			if !strings.Contains(lines[i], want) {
				t.Errorf("line %d is %q, want one with %q", i, lines[i], want)
			}
		}
	}
}
