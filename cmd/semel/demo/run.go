package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/semel-go/semel/cmd/semel/demo/internal/fleet"
	"github.com/semel-go/semel/cmd/semel/demo/internal/pipeline"
	"github.com/semel-go/semel/cmd/semel/demo/internal/proc"
)

// Run runs the demo without Semel, then with it. It writes the result to stdout
// and the progress to stderr. The error is a *BrokenError if a guarantee did not
// hold. When Run returns, all processes that it started have ended.
func Run(ctx context.Context, o Options, stdout, stderr io.Writer) (err error) {
	if err := o.complete(); err != nil {
		return err
	}
	d := o.demo()
	_, _ = io.WriteString(stderr, d.introduction(&o)) // at once, before anything starts
	dir, err := os.MkdirTemp("", "semel-demo-")
	if err != nil {
		return err
	}
	if o.Keep {
		defer func() { _, _ = fmt.Fprintln(stderr, "kept the files in", dir) }()
	} else {
		defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	}
	g := proc.NewGroup(dir)
	defer g.Close()

	begun := time.Now()
	for _, play := range d.parts {
		if err := play(ctx, g, &o, dir, stderr); err != nil {
			return err
		}
	}
	*d.seconds = time.Since(begun).Seconds()
	broken := d.judge()
	if o.HTML != "" {
		if err := d.page().write(o.HTML); err != nil {
			return errors.Join(broken, err)
		}
		_, _ = fmt.Fprintln(stderr, "wrote", o.HTML)
	}
	if o.JSON {
		e := json.NewEncoder(stdout)
		e.SetIndent("", "  ")
		err = e.Encode(d.report)
	} else if err = writeTable(stdout, d.rows(), d.summary()); err == nil && broken == nil {
		_, err = fmt.Fprintln(stdout, "\n  "+strings.Join(d.next(&o), "\n  "))
	}
	return errors.Join(broken, err)
}

// report is the result of a demo, and its JSON.
type report interface {
	introduction(o *Options) string // says what is about to happen
	judge() error                   // a *BrokenError, or nil
	rows() []row
	summary() []string
	page() *page
	next(o *Options) []string // says what to try after the demo
}

// demo is what the options choose.
type demo struct {
	report
	seconds *float64 // of the report
	parts   [2]part  // without and with Semel
}

// part plays one half of the demo. It ends the processes that it has started.
type part func(ctx context.Context, g *proc.Group, o *Options, dir string, stderr io.Writer) error

// runner is a half whose processes run, and F are its figures.
type runner[F any] interface {
	run(ctx context.Context, o *Options, stderr io.Writer) (F, error)
}

// play makes a part of a function that starts the processes.
func play[F any](into *F, c *Course, start func(ctx context.Context, g *proc.Group, o *Options, dir string) (runner[F], error)) part {
	return func(ctx context.Context, g *proc.Group, o *Options, dir string, stderr io.Writer) error {
		s, err := start(ctx, g, o, dir)
		if err != nil {
			return errors.Join(context.Cause(ctx), err)
		}
		begun := time.Now()
		if *into, err = s.run(ctx, o, stderr); err != nil {
			return err
		}
		c.Seconds = time.Since(begun).Seconds()
		return nil
	}
}

func (o *Options) demo() *demo {
	switch {
	case o.Saga:
		return o.sagaDemo()
	case o.Events:
		return o.eventDemo()
	}
	return o.requestDemo()
}

func (o *Options) requestDemo() *demo {
	plan := fleet.NewPlan(o.Seed, o.Orders)
	r := &Report{Orders: o.Orders, Deliveries: plan.Deliveries, Changes: plan.Changes, Seed: o.Seed}
	half := func(into *Figures, start func(context.Context, *proc.Group, *Options, *fleet.Plan, string) (*side, error)) part {
		return play(into, &into.Course, func(ctx context.Context, g *proc.Group, o *Options, dir string) (runner[Figures], error) {
			return start(ctx, g, o, plan, dir)
		})
	}
	return &demo{r, &r.Seconds, [2]part{half(&r.Without, straight), half(&r.With, guarded)}}
}

func (o *Options) eventDemo() *demo {
	plan := pipeline.NewPlan(o.Seed, o.Orders)
	r := &Report{events: true, Orders: o.Orders, Deliveries: plan.Messages, Changes: plan.Changes, Seed: o.Seed}
	half := func(into *Figures, semel bool) part {
		return play(into, &into.Course, func(ctx context.Context, g *proc.Group, o *Options, dir string) (runner[Figures], error) {
			return openStream(ctx, g, o, plan, dir, semel)
		})
	}
	return &demo{r, &r.Seconds, [2]part{half(&r.Without, false), half(&r.With, true)}}
}
