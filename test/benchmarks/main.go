package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/semel-go/semel/test/internal/repo"
)

func main() {
	if role := os.Getenv(roleVar); role != "" {
		fmt.Fprintln(os.Stderr, play(role, os.Getenv(targetVar)))
		os.Exit(1)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := collect(ctx, os.Args[1:], normal, os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "benchmarks:", err)
		os.Exit(1)
	}
}

// section is measurements that run together and write one file.
type section struct {
	name    string
	measure func(ctx context.Context, l *lab) ([]Figure, error)
}

var sections = []section{
	{"stores", measureStores},
	{"doors", measureDoors},
	{"growth", measureGrowth},
	{"sizes", measureSizes},
	{"shards", measureShards},
	{"others", measureOthers},
}

// collect measures the sections that args choose, and writes the pages.
func collect(ctx context.Context, args []string, opt options, stdout io.Writer) error {
	flags := flag.NewFlagSet("benchmarks", flag.ContinueOnError)
	out := flags.String("out", "", "the `folder` docs, to which the pages and the figures are written; required")
	only := flags.String("only", "", "the `names` of the sections to measure, with commas: stores, doors, growth, sizes, shards, others; none: measure nothing; empty: all")
	rounds := flags.Int("rounds", opt.rounds, "`number` of rounds of which the medians are taken, at least 1")
	large := flags.Int("large", 0, "another `number` of records of the section growth, on PostgreSQL only, such as 10000000, which needs 6 GB; 0: none")
	wait := flags.Duration("wait", opt.wait, "how long each section may wait in all until other processes use less than a fifth of the processors")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *out == "" {
		return errors.New("-out is empty; name the folder docs")
	}
	if *rounds < 1 {
		return fmt.Errorf("-rounds is %d; it must be at least 1", *rounds)
	}
	opt.rounds, opt.wait, opt.large = *rounds, *wait, *large
	chosen, err := choose(*only)
	if err != nil {
		return err
	}
	root, err := repo.Root()
	if err != nil {
		return err
	}
	folder := filepath.Join(*out, "benchmarks")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	for _, s := range chosen {
		r, err := s.run(ctx, root, opt, stdout)
		if err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		if err := r.write(filepath.Join(folder, s.name+".jsonl")); err != nil {
			return err
		}
	}
	return writePages(folder, *out)
}

func choose(only string) (chosen []section, err error) {
	switch only {
	case "":
		return sections, nil
	case "none":
		return nil, nil
	}
	for name := range strings.SplitSeq(only, ",") {
		i := slices.IndexFunc(sections, func(s section) bool { return s.name == name })
		if i < 0 {
			return nil, fmt.Errorf("-only: there is no section %q", name)
		}
		chosen = append(chosen, sections[i])
	}
	return chosen, nil
}

// run measures a section.
func (s *section) run(ctx context.Context, root string, opt options, stdout io.Writer) (*results, error) {
	l, err := newLab(root, opt, stdout)
	if err != nil {
		return nil, err
	}
	l.say("%s", s.name)
	r := &results{header: header{
		Machine: thisMachine(), Go: runtime.Version(), Commit: commitOf(ctx, root), Date: time.Now().UTC().Format("2006-01-02 15:04"),
		Rounds: opt.rounds, Each: opt.each.String(),
	}}
	began, before := time.Now(), readProcessors()
	r.figures, err = s.measure(ctx, l)
	_, stolen := readProcessors().since(before)
	if err := errors.Join(err, l.end()); err != nil {
		return nil, err
	}
	r.Took, r.Others, r.Steal = time.Since(began).Round(time.Second).String(), quartiles(l.busy), once(stolen)
	l.say("%s took %s; other processes used %.0f to %.0f %% of the processors before the rounds", s.name, r.Took, r.Others[0], r.Others[2])
	return r, nil
}
