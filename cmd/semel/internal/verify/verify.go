package verify

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/semel-go/semel/cmd/semel/internal/input"
	"github.com/semel-go/semel/store"
)

// runPrefix begins the tenant of a run.
const runPrefix = "run-"

// Run tries the store out, and removes what it has made, also if ctx ends
// meanwhile. The error is a *BrokenError if a promise was broken or could not
// be tried; the report is whole then, too. It is an input.Error for bad
// options, and the end of ctx if that came first.
func Run(ctx context.Context, t Target, o Options) (*Report, error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	var id [8]byte
	_, _ = rand.Read(id[:]) // never fails
	p := newProbe(&t, &o, runPrefix+hex.EncodeToString(id[:]))
	begun := time.Now()
	r := &Report{Store: t.Name, Run: p.tenant, Seed: o.Seed, Connections: len(t.Stores)}
	if t.Start != nil {
		r.Processes = o.Processes
	}
	limited, cancel := context.WithTimeoutCause(ctx, o.Limit, errLimit)
	defer cancel()
	for _, c := range o.chosen() {
		if ctx.Err() != nil {
			break
		}
		r.Checks = append(r.Checks, p.try(limited, c, r))
	}
	r.Checks = append(r.Checks, p.try(context.WithoutCancel(ctx), cleanup, r))
	if o.Progress != nil {
		o.Progress("")
	}
	r.Resent = p.resent.Load()
	r.Seconds = time.Since(begun).Seconds()
	err := r.judge()
	if ctx.Err() != nil {
		err = errors.Join(context.Cause(ctx), err)
	}
	return r, err
}

var errLimit = errors.New("the time of --limit is over")

func newProbe(t *Target, o *Options, tenant string) *probe {
	p := &probe{target: t, o: o, tenant: tenant, made: &made{keys: map[store.Key]bool{}, owners: map[store.Owner]bool{}}, resent: &atomic.Int64{}}
	for _, st := range t.Stores {
		p.stores = append(p.stores, patient{st, p.resent})
	}
	return p
}

// try runs one check.
func (p *probe) try(ctx context.Context, c check, r *Report) Result {
	if p.o.Progress != nil {
		p.o.Progress(c.name)
	}
	begun, one := time.Now(), p.forCheck(c)
	err := c.run(ctx, one)
	res := &one.result
	switch {
	case errors.Is(err, errSkipped):
		res.Verdict = Skipped
		res.Info = append(res.Info, err.Error())
	case err != nil:
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		res.Verdict = Incomplete
		res.Info = append(res.Info, "it could not be tried to the end: "+input.Lines(err)[0])
	case res.Trials == 0:
		res.Verdict = Incomplete
		res.Info = append(res.Info, "nothing could be tried: somebody's sweep was always faster")
	default:
		res.Verdict = OK
	}
	if res.Failures > 0 {
		res.Verdict = Broken
		if more := res.Failures - int64(len(res.Violations)); more > 0 {
			res.Violations = append(res.Violations, fmt.Sprintf("and %d more", more))
		}
	}
	if one.latency != nil {
		r.Latency = one.latency
	}
	res.Seconds = time.Since(begun).Seconds()
	return *res
}
