package cli

import (
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/semel-go/semel/cmd/semel/internal/program"
	"github.com/semel-go/semel/store"
)

// A key of nanoid begins with a dash once in 64. All commands that an operator gets about it
// can be pasted into a shell.
func TestPrintedCommands_KeyWithDash_Work(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("sh"); err != nil {
		t.Skip("there is no sh")
	}
	url, st := seed(t)
	k := store.Key{Operation: "-pay", Tenant: "-ann", Value: "-k"}
	p := store.Proposal{Key: k, State: store.Unknown, Attempt: 1, Keep: time.Hour}
	if _, err := st.Claim(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	// words is a command as a shell takes it.
	words := func(printed string) []string {
		t.Helper()
		out, err := exec.CommandContext(t.Context(), "sh", "-c", "printf '%s\\n' "+printed).Output()
		if err != nil {
			t.Fatalf("%s: %v", printed, err)
		}
		return strings.Split(strings.TrimPrefix(strings.TrimSuffix(string(out), "\n"), "semel\n"), "\n")
	}
	c := storeFlag{Store: url}
	shown := command(t, words(c.getCommand(k))...)
	if shown.code != program.ExitOK {
		t.Fatalf("%s: %+v", c.getCommand(k), shown)
	}
	for line := range strings.Lines(shown.stdout) {
		if line = strings.TrimSpace(line); !strings.HasPrefix(line, "semel inspect resolve") || !strings.Contains(line, "did-not-happen") {
			continue
		}
		if r := command(t, words(line)...); r.code != program.ExitOK {
			t.Errorf("%s: %+v", line, r)
		}
		return
	}
	t.Errorf("no command to resolve it in %s", shown.stdout)
}
