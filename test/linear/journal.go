package linear

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/semel-go/semel/store"
)

// recordSteps moves a client: it records a step, or reads the steps.
func (c *client) recordSteps(ctx context.Context, j store.Journal, rec *store.Record) {
	if c.rng.IntN(3) > 0 {
		in := &Input{Kind: RecordStep, Key: rec.Key, Lease: rec.Lease()}
		in.Step = store.Step{Name: "s" + strconv.Itoa(c.rng.IntN(3)), Outcome: store.Outcome{Body: []byte(strconv.Itoa(c.rng.IntN(2)))}}
		c.call(in, func(*Answer) error {
			return c.sent(func() error { return j.RecordStep(ctx, in.Lease, in.Step) })
		})
		return
	}
	in := &Input{Kind: Steps, Key: rec.Key, Lease: rec.Lease()}
	c.call(in, func(a *Answer) error {
		return c.sent(func() (err error) { a.Steps, err = j.Steps(ctx, in.Lease); return err })
	})
}

// stepText is a step as a row has it. Names have no '='.
func stepText(s *store.Step) string { return s.Name + "=" + string(s.Outcome.Body) + ";" }

// stepsText is the steps of a record, in their order.
func stepsText(steps []store.Step) (text string) {
	for i := range steps {
		text += stepText(&steps[i])
	}
	return text
}

// has reports whether a row has a step of the name of s, and whether it is s.
func (r *row) has(s *store.Step) (named, same bool) {
	all := strings.SplitAfter(r.steps, ";")
	named = slices.ContainsFunc(all, func(t string) bool { return strings.HasPrefix(t, s.Name+"=") })
	return named, slices.Contains(all, stepText(s))
}

// withStep is r after a step was recorded.
func (r row) withStep(s *store.Step) row {
	if named, _ := r.has(s); !named {
		r.steps += stepText(s)
	}
	return r
}

func recordStep(r row, in *Input, a *Answer, can func(row, bool)) {
	mayHold := r.held(&in.Lease) != no && r.state == store.Processing
	mustHold := r.held(&in.Lease) == yes && r.state == store.Processing
	named, same := r.has(&in.Step)
	switch {
	case a.Err == nil:
		can(r.taught(in).withStep(&in.Step), mayHold && named == same)
	case errors.Is(a.Err, store.ErrChanged):
		can(r.taught(in), mayHold && named && !same)
	default:
		can(r, errors.Is(a.Err, store.ErrLeaseLost) && !mustHold)
	}
}

func readSteps(r row, in *Input, a *Answer, can func(row, bool)) {
	if a.Err != nil {
		can(r, errors.Is(a.Err, store.ErrLeaseLost) && r.held(&in.Lease) != yes)
		return
	}
	can(r.taught(in), r.held(&in.Lease) != no && stepsText(a.Steps) == r.steps)
}
