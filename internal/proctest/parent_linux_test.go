package proctest

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// The test kills a process that has started another with this package.
func TestStart_ParentKilled_ChildDies(t *testing.T) {
	cmd := Self(t, childVariable+"=parent")
	out, in := io.Pipe()
	cmd.Stdout = in
	p := Run(t, cmd)
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, 0); err != nil {
		t.Fatalf("the child does not run: %v", err)
	}
	if err := p.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if err := Until(limit, 0, func() error {
		err := syscall.Kill(pid, 0)
		if err == nil && !zombie(pid) {
			return errors.New("the child runs after its parent was killed")
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
}

// zombie reports whether a process has ended and nobody has collected it.
func zombie(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err != nil || strings.Contains(string(stat), ") Z ")
}
