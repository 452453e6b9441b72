package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/semel-go/semel/cmd/semel/demo/internal/fleet"
	"github.com/semel-go/semel/cmd/semel/demo/internal/pipeline"
	"github.com/semel-go/semel/cmd/semel/demo/internal/proc"
)

// Run shows both sides, one after the other, writes the result to stdout and
// what happens meanwhile to stderr. The error is a *BrokenError if a promise
// was broken. When Run returns, all processes that it started have ended.
func Run(ctx context.Context, o Options, stdout, stderr io.Writer) (err error) {
	if err := o.complete(); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "semel-demo-")
	if err != nil {
		return err
	}
	if o.Keep {
		defer func() { _, _ = fmt.Fprintln(stderr, "kept:", dir) }()
	} else {
		defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	}
	g := proc.NewGroup(dir)
	defer g.Close()

	begun := time.Now()
	r, starts := o.sides()
	for i, into := range []*Figures{&r.Unprotected, &r.Semel} {
		s, err := starts[i](ctx, g, &o, dir)
		if err != nil {
			return errors.Join(context.Cause(ctx), err)
		}
		if *into, err = s.run(ctx, &o, stderr); err != nil {
			return err
		}
	}
	r.Seconds = time.Since(begun).Seconds()
	broken := r.judge()
	if o.JSON {
		e := json.NewEncoder(stdout)
		e.SetIndent("", "  ")
		err = e.Encode(r)
	} else {
		err = r.write(stdout)
	}
	return errors.Join(broken, err)
}

// runner is a side that was started.
type runner interface {
	run(ctx context.Context, o *Options, stderr io.Writer) (Figures, error)
}

// starter starts a side.
type starter func(ctx context.Context, g *proc.Group, o *Options, dir string) (runner, error)

// sides are the one without Semel, and the one with it.
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
