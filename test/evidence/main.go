package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"slices"
	"strings"
	"time"

	"github.com/semel-go/semel/test/internal/repo"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := collect(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "evidence:", err)
		os.Exit(1)
	}
}

// teller tells people how far it is. That nobody listens is no reason to stop.
type teller struct{ to io.Writer }

func (t teller) say(format string, args ...any) {
	_, _ = fmt.Fprintf(t.to, format+"\n", args...)
}

func collect(ctx context.Context, args []string, stdout io.Writer) error {
	progress := teller{stdout}
	flags := flag.NewFlagSet("evidence", flag.ContinueOnError)
	out := flags.String("out", "", "the `file` to write the page to; empty: to standard output. With -only, its other sections stay")
	only := flags.String("only", "", "the `names` of the steps to run, with commas; empty: all")
	if err := flags.Parse(args); err != nil {
		return err
	}
	chosen, err := choose(*only)
	if err != nil {
		return err
	}
	root, err := repo.Root()
	if err != nil {
		return err
	}
	p := page{machine: thisMachine(ctx, root), began: time.Now()}
	if *only != "" && *out != "" {
		before, err := os.ReadFile(*out)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		p.before = string(before)
	}
	var failed []string
	for i, s := range chosen {
		progress.say("[%d/%d] %s: %s", i+1, len(chosen), s.name, s.about)
		d := run(ctx, root, s, progress)
		p.sections = append(p.sections, d)
		progress.say("      %d figures, %v, %s", len(d.figures), d.took.Round(time.Second), d.verdict())
		if d.err != nil {
			failed = append(failed, s.name)
		}
	}
	if err := write(*out, p.String(), stdout); err != nil {
		return err
	}
	if len(failed) > 0 {
		return fmt.Errorf("failed: %s", strings.Join(failed, ", "))
	}
	return nil
}

func choose(only string) ([]step, error) {
	if only == "" {
		return steps, nil
	}
	var chosen []step
	for name := range strings.SplitSeq(only, ",") {
		i := slices.IndexFunc(steps, func(s step) bool { return s.name == name })
		if i < 0 {
			return nil, fmt.Errorf("-only: there is no step %q", name)
		}
		chosen = append(chosen, steps[i])
	}
	return chosen, nil
}

func write(file, text string, stdout io.Writer) error {
	if file == "" {
		_, err := io.WriteString(stdout, text)
		return err
	}
	return os.WriteFile(file, []byte(text), 0o644)
}
