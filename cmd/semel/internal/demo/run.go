package demo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/semel-go/semel/cmd/semel/internal/demo/fleet"
	"github.com/semel-go/semel/cmd/semel/internal/demo/ledger"
	"github.com/semel-go/semel/cmd/semel/internal/demo/proc"
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

	begun, plan := time.Now(), fleet.NewPlan(o.Seed, o.Orders)
	r := Report{Orders: o.Orders, Deliveries: plan.Deliveries, Changes: plan.Changes, Seed: o.Seed}
	for _, part := range []struct {
		start func(context.Context, *proc.Group, *Options, *fleet.Plan, string) (*side, error)
		into  *Figures
	}{{straight, &r.Unprotected}, {guarded, &r.Semel}} {
		s, err := part.start(ctx, g, &o, plan, dir)
		if err != nil {
			return errors.Join(context.Cause(ctx), err)
		}
		if *part.into, err = s.run(ctx, &o, stderr); err != nil {
			return err
		}
	}
	r.Seconds = time.Since(begun).Seconds()
	broken := r.judge()
	if o.JSON {
		e := json.NewEncoder(stdout)
		e.SetIndent("", "  ")
		err = e.Encode(&r)
	} else {
		err = r.write(stdout)
	}
	return errors.Join(broken, err)
}

// run lets the clients loose, and the storm, and counts.
func (s *side) run(ctx context.Context, o *Options, stderr io.Writer) (Figures, error) {
	limited, cancel := context.WithTimeout(ctx, o.limit())
	defer cancel()
	told, enough := context.WithCancel(limited)
	silent := make(chan struct{})
	go func() {
		defer close(silent)
		s.progress(told, stderr)
	}()
	storm := make(chan error, 1)
	go func() {
		err := s.storm(limited, o.Kills, o.Clients*3/4)
		if err != nil {
			cancel() // nothing would answer the clients
		}
		storm <- err
	}()
	s.fleet.Run(limited, o.Clients)
	err := <-storm
	enough()
	<-silent
	if ctx.Err() != nil {
		return Figures{}, context.Cause(ctx)
	}
	if err != nil {
		return Figures{}, err
	}
	s.stop()
	return s.figures(ctx)
}

func (s *side) figures(ctx context.Context) (f Figures, err error) {
	var is func(ledger.ID) bool
	if s.store != "" {
		done, err := completed(ctx, s.store)
		if err != nil {
			return f, err
		}
		is = func(id ledger.ID) bool { return done[id] }
	}
	err = s.look(func(st *ledger.State) { f = count(s.plan.Orders, s.fleet.Outcomes(), st, is) })
	f.counters(s)
	return f, err
}
