package proxy

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/cmd/semel/internal/config"
	"github.com/semel-go/semel/cmd/semel/internal/hook"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/sweep"
)

// sweeps count what the sweeps did.
type sweeps struct{ deleted, released, parked, failed, broken atomic.Uint64 }

// reconcileRound is how many parked requests of an operation are asked about
// in one round.
const reconcileRound = 1000

// Run does the work behind the requests until ctx ends: sweeps, and questions
// about parked requests.
func (p *Proxy) Run(ctx context.Context) error {
	c := p.Config
	ops, err := p.parking()
	if err != nil {
		return err
	}
	var wg sync.WaitGroup
	defer wg.Wait()
	if c.SweepEvery > 0 {
		wg.Go(func() {
			_ = sweep.Run(ctx, p.Store, &sweep.Options{ // it fails for wrong options only
				Every: c.SweepEvery, Retention: c.Retention(), MaxAttempts: c.MaxAttempts,
				Observe: p.observe, AfterPass: p.swept,
			})
		})
	}
	if c.ReconcileEvery > 0 && len(ops) > 0 {
		wg.Go(func() { p.reconcileAll(ctx, ops) })
	}
	return nil
}

func (p *Proxy) observe(ctx context.Context, e semel.Event) {
	p.behind.Observe(ctx, e)
	semel.LogEvents(p.Log)(ctx, e)
}

func (p *Proxy) swept(s sweep.Stats, err error) {
	p.sweeps.deleted.Add(uint64(s.Deleted))
	p.sweeps.released.Add(uint64(s.Released))
	p.sweeps.parked.Add(uint64(s.Parked))
	p.sweeps.failed.Add(uint64(s.Failed))
	if err != nil {
		p.sweeps.broken.Add(1)
		p.Log.Warn("a sweep failed; the next one tries again", "error", err)
	}
}

// parked is an operation some of whose requests may be parked.
type parked struct {
	operation string
	guard     *semel.Guard
}

// parking are the operations that park, each with the guard of its first rule.
func (p *Proxy) parking() ([]parked, error) {
	if p.reconcile == nil {
		return nil, nil
	}
	if _, ok := store.As[store.Lister](p.Store); !ok {
		return nil, errors.New("reconcile-every: the store cannot be searched; set it to 0")
	}
	var ops []parked
	seen := map[string]bool{}
	routes := append([]config.Route{p.Config.Rest}, p.Config.Rules...)
	for i := range routes {
		r := &routes[i]
		if r.PassThrough || r.OnDoubt != semel.Park || seen[r.Operation] {
			continue
		}
		g, err := semel.New(p.Store, p.options(r, p.behind))
		if err != nil {
			return nil, err
		}
		seen[r.Operation] = true
		ops = append(ops, parked{string(r.Operation), g})
	}
	return ops, nil
}

func (p *Proxy) reconcileAll(ctx context.Context, ops []parked) {
	tick := time.NewTicker(p.Config.ReconcileEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		for _, op := range ops {
			n, err := op.guard.Reconcile(ctx, op.operation, reconcileRound)
			if ctx.Err() != nil {
				return
			}
			if err != nil {
				p.Log.Warn("parked requests could not all be asked about; the next round tries again", "operation", op.operation, "error", err)
			}
			if n > 0 {
				p.Log.Info("parked requests were reconciled", "operation", op.operation, "settled", n)
			}
		}
	}
}

// ask is the semel.ReconcileFunc.
func (p *Proxy) ask(ctx context.Context, x *semel.Execution) (semel.Verdict, error) {
	key := store.Key{Operation: x.Operation(), Tenant: x.Tenant(), Value: x.Key()}
	f, err := p.Store.Get(ctx, key)
	if err != nil {
		return semel.Verdict{}, fmt.Errorf("when it was first seen: %w", err)
	}
	return p.reconcile.Reconcile(ctx, hook.Question{
		Operation: key.Operation, Tenant: key.Tenant, Key: key.Value, RequestDigest: x.Fingerprint(),
		Fence: x.Fence(), Attempts: x.Attempt(), FirstSeen: f.Record.Created,
	})
}
