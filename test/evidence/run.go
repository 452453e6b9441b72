package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
	"unicode"

	"github.com/semel-go/semel/test/internal/figure"
)

// done is a step that was run.
type done struct {
	step
	figures []figure.Figure
	took    time.Duration
	err     error
}

func (d *done) verdict() string {
	if d.err != nil {
		return "FAILED: " + d.err.Error()
	}
	return "passed"
}

var errNothing = errors.New("it reported no figure")

// run runs a step and collects its figures. It shows the step's other output only
// if the step fails.
func run(ctx context.Context, root string, s step, progress *teller) done {
	d := done{step: s}
	began := time.Now()
	progress.say("%s: %s", s.name, s.about)
	cmd := exec.CommandContext(ctx, "go", append([]string{"test", "-count=1", "-v"}, append(s.args, ".")...)...)
	cmd.Dir, cmd.Env = filepath.Join(root, s.dir), append(os.Environ(), s.env...)
	out, in := io.Pipe()
	cmd.Stdout, cmd.Stderr = in, in
	go func() { _ = in.CloseWithError(cmd.Run()) }()
	var whole []string
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		f, ok, err := parse(lines.Text())
		switch {
		case err != nil:
			d.err = errors.Join(d.err, err)
		case ok:
			d.figures = append(d.figures, f)
			progress.say("%s:   %s %s: %d of %d failed", s.name, f.Where, f.Claim, f.Failures, f.Trials)
		default:
			whole = append(whole, lines.Text())
		}
	}
	tail := whole[max(0, len(whole)-40):]
	d.took = time.Since(began)
	if err := lines.Err(); err != nil {
		d.err = errors.Join(d.err, err)
		progress.say("%s: its last lines, all are in %s:\n%s", s.name, keep(s.name, whole), strings.Join(tail, "\n"))
	} else if len(d.figures) == 0 {
		d.err = errors.Join(d.err, errNothing)
	}
	progress.say("%s: %d figures, %v, %s", s.name, len(d.figures), d.took.Round(time.Second), d.verdict())
	return d
}

// keep writes the output of a step that failed to a file for temporary files, and returns
// its name.
func keep(name string, lines []string) string {
	f, err := os.CreateTemp("", "semel-"+strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) {
			return r
		}
		return '-'
	}, name)+"-*.log")
	if err != nil {
		return "no file: " + err.Error()
	}
	_, err = f.WriteString(strings.Join(lines, "\n") + "\n")
	if err = errors.Join(err, f.Close()); err != nil {
		return "no file: " + err.Error()
	}
	return f.Name()
}

// parse finds a figure in a line of a test's log.
func parse(line string) (figure.Figure, bool, error) {
	var f figure.Figure
	_, text, ok := strings.Cut(line, figure.Prefix+"{")
	if !ok {
		return f, false, nil
	}
	if err := json.Unmarshal([]byte("{"+text), &f); err != nil {
		return f, false, fmt.Errorf("a figure that cannot be read: %q: %w", text, err)
	}
	return f, true, nil
}
