package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/cmd/semel/internal/config"
	"github.com/semel-go/semel/cmd/semel/internal/storeurl"
	"github.com/semel-go/semel/sweep"
)

type sweepCmd struct {
	storeFlag
	Once      bool            `name:"once" help:"Make one pass and end."`
	Every     config.Duration `name:"every" placeholder:"TIME" default:"1m" help:"Pause between two passes (default ${default})."`
	Retention config.Duration `name:"retention" placeholder:"TIME" default:"7d" help:"How long a recovered record is kept (default ${default}). Use at least the longest retention of all programs of the store."`
	Timeout   config.Duration `name:"store-timeout" placeholder:"TIME" default:"30s" help:"How long one request to the store may take (default ${default})."`
}

// Help implements kong.HelpProvider.
func (*sweepCmd) Help() string {
	return `semel proxy sweeps by itself. Use this command for the stores of programs that do not. A pass deletes records whose retention is over, and recovers the claims of all operations whose holder died: by their policy they may run again, or they are parked. The next call of the key applies the limit of attempts of its own program. It never touches a live claim or a parked request. A pass looks at every record, in small steps, and pauses for three quarters of its time, to leave the store to other callers; during a long one it says every 10 seconds what it has done. It can be stopped at any time. After a failure the next pass goes on where that one ended. Any number of sweeps may run.

Examples:

    semel sweep --store sqlite:/var/lib/semel.db --once
    semel sweep --store sqlite:/var/lib/semel.db --every 10m --json
`
}

// swept is the JSON of one pass.
type swept struct {
	Deleted  int    `json:"deleted"`
	Released int    `json:"released"`
	Parked   int    `json:"parked"`
	Error    string `json:"error,omitempty"`
}

func (c *sweepCmd) Run(ctx context.Context, e *env) error {
	if err := c.check(); err != nil {
		return err
	}
	return c.with(ctx, e.log, func(h storeurl.Handle) error { return c.sweep(ctx, e, h) })
}

func (c *sweepCmd) sweep(ctx context.Context, e *env, h storeurl.Handle) error {
	progress := newSweepProgress(e)
	o := &sweep.Options{
		Every: time.Duration(c.Every), Retention: time.Duration(c.Retention), StoreTimeout: time.Duration(c.Timeout),
		Observe:   semel.LogEvents(e.log),
		AfterStep: progress.step,
		AfterPass: func(s sweep.Stats, err error) { progress.pass(); c.print(e, s, err) },
	}
	if !c.Once {
		return sweep.Run(ctx, h, o)
	}
	s, err := sweep.Once(ctx, h, o)
	c.print(e, s, err)
	return err
}

func (c *sweepCmd) check() error {
	switch {
	case time.Duration(c.Every) < 100*time.Millisecond || time.Duration(c.Every) > 24*time.Hour:
		return wrong("--every", c.Every, "must be from 100ms to 1d")
	case time.Duration(c.Retention) < time.Second || time.Duration(c.Retention) > 3650*24*time.Hour:
		return wrong("--retention", c.Retention, "must be from 1s to 3650d")
	case time.Duration(c.Timeout) < 100*time.Millisecond || time.Duration(c.Timeout) > 24*time.Hour:
		return wrong("--store-timeout", c.Timeout, "must be from 100ms to 1d")
	}
	return nil
}

// progressInterval is how often a long pass says what it has done.
const progressInterval = 10 * time.Second

// sweepProgress says on standard error how far a pass is.
type sweepProgress struct {
	env         *env
	steps       int       // of the pass
	begun, said time.Time // its first step, and its last line
}

func newSweepProgress(e *env) *sweepProgress {
	return &sweepProgress{env: e}
}

// pass ends a pass.
func (p *sweepProgress) pass() { p.steps = 0 }

func (p *sweepProgress) step(s sweep.Stats) {
	now := time.Now()
	if p.steps++; p.steps == 1 {
		p.begun, p.said = now, now
	}
	if now.Sub(p.said) < progressInterval {
		return
	}
	p.said = now
	took := now.Sub(p.begun).Round(time.Second)
	if p.env.json {
		p.env.log.Info("the pass goes on", "after", took, "steps", p.steps, "deleted", s.Deleted, "released", s.Released, "parked", s.Parked)
		return
	}
	_, _ = fmt.Fprintf(p.env.stderr, "semel sweep: after %v and %d steps: deleted %d, released %d, parked %d\n", took, p.steps, s.Deleted, s.Released, s.Parked)
}

func (c *sweepCmd) print(e *env, s sweep.Stats, err error) {
	r := swept{Deleted: s.Deleted, Released: s.Released, Parked: s.Parked}
	if err != nil {
		r.Error = err.Error()
	}
	if e.json {
		_ = json.NewEncoder(e.stdout).Encode(r) // a closed output does not stop the sweep
		return
	}
	_, _ = fmt.Fprintf(e.stdout, "deleted %d, released %d, parked %d\n", r.Deleted, r.Released, r.Parked)
	if err != nil && !c.Once {
		_, _ = fmt.Fprintf(e.stderr, "semel sweep: %v; the next pass tries again\n", err)
	}
}
