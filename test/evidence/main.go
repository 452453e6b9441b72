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
	"sync"
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
type teller struct {
	mu sync.Mutex
	to io.Writer
}

func (t *teller) say(format string, args ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	_, _ = fmt.Fprintf(t.to, format+"\n", args...)
}

func collect(ctx context.Context, args []string, stdout io.Writer) error {
	progress := &teller{to: stdout}
	flags := flag.NewFlagSet("evidence", flag.ContinueOnError)
	out := flags.String("out", "", "the `file` to write the page to, after each step; empty: to standard output at the end. Sections of other steps stay")
	together := flags.Int("together", 2, "how many steps run at a time; a step that measures times runs alone")
	only := flags.String("only", "", "the `names` of the steps to run, with commas; empty: all")
	left := flags.Bool("missing", false, "run only the steps that the file of -out does not show as passed with the code as it is now; changes of docs do not count")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *together < 1 {
		return fmt.Errorf("-together: is %d; it must be at least 1", *together)
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
	if *out != "" {
		before, err := os.ReadFile(*out)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		p.before = string(before)
	}
	if *left {
		chosen = missing(ctx, root, p.before, chosen)
	}
	var mu sync.Mutex
	var failed []string
	runAll(chosen, *together, func(s step) {
		if ctx.Err() != nil {
			return // its old section stays
		}
		d := run(ctx, root, s, progress)
		mu.Lock()
		defer mu.Unlock()
		if ctx.Err() != nil {
			return
		}
		p.sections = append(p.sections, d)
		if d.err != nil {
			failed = append(failed, d.name)
		}
		if *out == "" {
			return
		}
		if err := write(*out, p.String(), stdout); err != nil { // now, so that an interruption loses nothing
			progress.say("%v", err)
		}
	})
	if err := write(*out, p.String(), stdout); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return errors.New("interrupted; -missing runs the steps that are left")
	}
	if len(failed) > 0 {
		return fmt.Errorf("failed: %s", strings.Join(failed, ", "))
	}
	return nil
}

// runAll runs the steps, so many at a time, the slow ones first, and then those that run
// alone.
func runAll(steps []step, together int, run func(step)) {
	turns := make(chan step)
	var workers sync.WaitGroup
	for range together {
		workers.Go(func() {
			for s := range turns {
				run(s)
			}
		})
	}
	for _, slow := range []bool{true, false} {
		for _, s := range steps {
			if s.slow == slow && !s.alone {
				turns <- s
			}
		}
	}
	close(turns)
	workers.Wait()
	for _, s := range steps {
		if s.alone {
			run(s)
		}
	}
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
