package program_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/semel-go/semel/cmd/semel/internal/program"
)

// The text of an error can be a server's, or a part of a row.
func TestReport_ControlCharacters_DoNotReachTerminal(t *testing.T) {
	var out strings.Builder
	code := program.Report(&out, "semel import", errors.Join(errors.New("--query: \x1b[2Jgone\rsemel: done"), errors.New("second")))
	if want := "semel import: --query: ·[2Jgone·semel: done\nsemel import: second\n"; code != program.ExitFailed || out.String() != want {
		t.Errorf("exit code %d, %q; want %q", code, out.String(), want)
	}
}
