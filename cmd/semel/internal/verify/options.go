package verify

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/semel-go/semel/cmd/semel/internal/input"
	"github.com/semel-go/semel/store"
)

// Target is the store to test.
type Target struct {
	Name string
	// Stores are one store, opened several times as several processes would.
	// At least one. The caller closes them after Run.
	Stores []store.Store
	// Volatile says that the records are lost with the process.
	Volatile bool
	// Start starts a process that runs Work for the tenant on the same store.
	// Nil: the store cannot be shared with another process.
	Start func(ctx context.Context, tenant string) (*Worker, error)
}

// Worker is a process that was started. Closing In ends it.
type Worker struct {
	In   io.WriteCloser
	Out  io.Reader
	Wait func() error // for its end; nil error if it ended well
}

// Options are the options of semel verify.
type Options struct {
	Only, Skip []string // names of checks; Only empty: all
	Keys       int      // of each race
	Parallel   int      // callers at once
	Processes  int      // besides this one; 0: none
	Body       int      // the largest body, in bytes
	Seed       uint64   // of the data
	Limit      time.Duration
	// Progress gets the name of each check when it begins, and "" at the end.
	// Nil: no progress.
	Progress func(name string)
}

// The limits of the options.
const (
	mostKeys, mostParallel, mostProcesses = 100_000, 256, 16
	mostBody                              = 64 << 20
	leastLimit, mostLimit                 = time.Second, 24 * time.Hour
)

// Check reports all that is wrong with the options.
func (o *Options) Check() error {
	for _, n := range []struct {
		flag              string
		is, least, atMost int
	}{
		{"--keys", o.Keys, 1, mostKeys},
		{"--parallel", o.Parallel, 2, mostParallel},
		{"--processes", o.Processes, 0, mostProcesses},
		{"--body", o.Body, 1, mostBody},
	} {
		if n.is < n.least || n.is > n.atMost {
			return &input.Error{Field: n.flag, Value: strconv.Itoa(n.is), Want: fmt.Sprintf("must be from %d to %d", n.least, n.atMost)}
		}
	}
	if o.Limit < leastLimit || o.Limit > mostLimit {
		return &input.Error{Field: "--limit", Value: o.Limit.String(), Want: fmt.Sprintf("must be from %v to %v", leastLimit, mostLimit)}
	}
	for flag, names := range map[string][]string{"--only": o.Only, "--skip": o.Skip} {
		for _, name := range names {
			if !slices.ContainsFunc(checks, func(c check) bool { return c.name == name }) {
				return &input.Error{Field: flag, Value: name, Want: "choose among " + strings.Join(Names(), ", ")}
			}
		}
	}
	if len(o.chosen()) == 0 {
		return &input.Error{Field: "--skip", Value: strings.Join(o.Skip, ","), Want: "leaves no check to run; leave one of them out"}
	}
	return nil
}

// chosen are the checks to run.
func (o *Options) chosen() []check {
	var cs []check
	for _, c := range checks {
		if (len(o.Only) == 0 || slices.Contains(o.Only, c.name)) && !slices.Contains(o.Skip, c.name) {
			cs = append(cs, c)
		}
	}
	return cs
}

var settingsCheck = check{
	name:  "settings",
	claim: "The store's own check finds no setting under which it cannot keep its promises.",
	run: func(ctx context.Context, p *probe) error {
		if p.target.Volatile {
			p.warn("the records are in memory: when the process ends, all keys are free again")
		}
		p.tried(1)
		c, ok := store.As[store.Checker](p.target.Stores[0])
		if !ok {
			if !p.target.Volatile {
				p.warn("the store has no check of its settings: whether what it has acknowledged survives a crash is not known")
			}
			return nil
		}
		for _, line := range input.Lines(c.Check(ctx)) {
			p.broken("%s", line)
		}
		return ctx.Err()
	},
}
