package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// figurePrefix begins a line of a test's log that has a Figure as JSON.
const figurePrefix = "benchmark: "

// The tests of other folders that compare with libraries, whose clients only these
// folders link.
var otherTests = []struct{ dir, run string }{
	{"test/powertools", "^TestCompare_NewCalls_RequestsAndProcessorTime$"},
	{"test/dboscompare", "^TestSaga_ComparedWithDBOS$"},
}

// measureOthers runs these tests and collects their figures.
func measureOthers(ctx context.Context, l *lab) (all []Figure, err error) {
	for _, o := range otherTests {
		l.quiet(ctx)
		cmd := exec.CommandContext(ctx, "go", "test", "-count=1", "-timeout=20m", "-v", "-run", o.run, ".")
		cmd.Dir, cmd.Env = filepath.Join(l.root, o.dir), append(os.Environ(), "SEMEL_TEST_COMPARE=1")
		out, err := cmd.CombinedOutput()
		if err != nil {
			return nil, fmt.Errorf("%s: %w\n%s", o.dir, err, out)
		}
		figures, err := figuresIn(out)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", o.dir, err)
		}
		l.say("  %s: %d figures", o.dir, len(figures))
		all = append(all, figures...)
	}
	return all, nil
}

var errNoFigure = errors.New("the test reported no figure")

// figuresIn finds the figures in the log of a test.
func figuresIn(log []byte) (all []Figure, err error) {
	for lines := bufio.NewScanner(bytes.NewReader(log)); lines.Scan(); {
		_, text, ok := strings.Cut(lines.Text(), figurePrefix)
		if !ok {
			continue
		}
		var f Figure
		if err := json.Unmarshal([]byte(text), &f); err != nil {
			return nil, fmt.Errorf("a figure that cannot be read: %q: %w", text, err)
		}
		all = append(all, f)
	}
	if len(all) == 0 {
		return nil, errNoFigure
	}
	return all, nil
}
