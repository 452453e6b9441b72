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
	r, starts := o.sides()
	_, _ = io.WriteString(stderr, r.introduction(&o)) // at once, before anything starts
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
	for i, into := range []*Figures{&r.Without, &r.With} {
		s, err := starts[i](ctx, g, &o, dir)
		if err != nil {
			return errors.Join(context.Cause(ctx), err)
		}
		partBegun := time.Now()
		if *into, err = s.run(ctx, &o, stderr); err != nil {
			return err
		}
		into.Seconds = time.Since(partBegun).Seconds()
	}
	r.Seconds = time.Since(begun).Seconds()
	broken := r.judge()
	if o.HTML != "" {
		if err := r.writeHTML(o.HTML); err != nil {
			return errors.Join(broken, err)
		}
		_, _ = fmt.Fprintln(stderr, "wrote", o.HTML)
	}
	if o.JSON {
		e := json.NewEncoder(stdout)
		e.SetIndent("", "  ")
		err = e.Encode(r)
	} else if err = r.write(stdout); err == nil && broken == nil {
		_, err = fmt.Fprintln(stdout, "\n  "+strings.Join(r.next(&o), "\n  "))
	}
	return errors.Join(broken, err)
}

// runner is a part of the demo whose processes run.
type runner interface {
	run(ctx context.Context, o *Options, stderr io.Writer) (Figures, error)
}

// starter starts the processes of a part.
type starter func(ctx context.Context, g *proc.Group, o *Options, dir string) (runner, error)

// sides returns an empty report, and the parts without and with Semel.
func (o *Options) sides() (*Report, [2]starter) {
	if o.Events {
		plan := pipeline.NewPlan(o.Seed, o.Orders)
		with := func(semel bool) starter {
			return func(ctx context.Context, g *proc.Group, o *Options, dir string) (runner, error) {
				return openStream(ctx, g, o, plan, dir, semel)
			}
		}
		return &Report{events: true, Orders: o.Orders, Deliveries: plan.Messages, Changes: plan.Changes, Seed: o.Seed},
			[2]starter{with(false), with(true)}
	}
	plan := fleet.NewPlan(o.Seed, o.Orders)
	through := func(start func(context.Context, *proc.Group, *Options, *fleet.Plan, string) (*side, error)) starter {
		return func(ctx context.Context, g *proc.Group, o *Options, dir string) (runner, error) {
			return start(ctx, g, o, plan, dir)
		}
	}
	return &Report{Orders: o.Orders, Deliveries: plan.Deliveries, Changes: plan.Changes, Seed: o.Seed},
		[2]starter{through(straight), through(guarded)}
}
