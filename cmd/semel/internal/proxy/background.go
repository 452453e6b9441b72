package proxy

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/cmd/semel/internal/config"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/sweep"
)

// reconcileRound is the largest number of parked requests of one operation that
// one round asks about.
const reconcileRound = 1000

// Run sweeps the store and reconciles parked requests until ctx ends.
func (p *Proxy) Run(ctx context.Context) error {
	c := p.Config
	ops, err := p.parkingOperations()
	if err != nil {
		return err
	}
	var wg sync.WaitGroup
	defer wg.Wait()
	if c.SweepEvery > 0 {
		wg.Go(func() {
			_ = sweep.Run(ctx, p.Store, &sweep.Options{ // it fails for wrong options only
				Every: c.SweepEvery, Observe: p.observe, AfterPass: p.sweeps.After(p.Log), AfterStep: p.sweeps.AfterStep,
				Retention: max(c.Retention(), sweep.DefaultRetention), // records of other programs, too
			})
		})
	}
	if p.observer != nil {
		wg.Go(func() { p.observer.logCounts(ctx, LogEvery) })
	}
	if c.SecretFile != "" {
		wg.Go(func() { p.reloadSecrets(ctx, reloadEvery) })
	}
	if c.ReconcileEvery > 0 {
		for _, op := range ops {
			wg.Go(func() { p.reconcileOperation(ctx, op) })
		}
	}
	return nil
}

func (p *Proxy) observe(ctx context.Context, e semel.Event) {
	p.background.Observe(ctx, e)
	semel.LogEvents(p.Log)(ctx, e)
}

// parkingOperation is an operation whose requests can be parked.
type parkingOperation struct {
	operation string
	guard     *semel.Guard
}

// parkingOperations returns the operations that park, each with one Guard for all its
// rules, because a parked record does not name its rule.
func (p *Proxy) parkingOperations() ([]parkingOperation, error) {
	if p.reconcile == nil {
		return nil, nil
	}
	if _, ok := store.As[store.Lister](p.Store); !ok {
		return nil, errors.New("reconcile-every: this store cannot list its records; set reconcile-every to 0")
	}
	var ops []parkingOperation
	for _, r := range mergedByOperation(p.Config) {
		if r.OnDoubt != semel.Park {
			continue
		}
		g, err := semel.New(p.Store, p.options(r, p.background, p.Secrets))
		if err != nil {
			return nil, err
		}
		ops = append(ops, parkingOperation{r.Operation, g})
	}
	return ops, nil
}

// mergedByOperation returns one route for each operation. It parks if a rule of the
// operation parks, has the longest retention of the rules, and keeps no answers if a
// rule has no-store. So a background verdict never expires too early for its rule, and
// never keeps an answer that its rule does not keep.
func mergedByOperation(c *config.Config) (merged []*config.Route) {
	byName := map[string]*config.Route{}
	routes := append([]config.Route{c.Rest}, c.Rules...) // copies, which may change
	for i := range routes {
		r := &routes[i]
		m := byName[r.Operation]
		switch {
		case r.PassThrough:
		case m == nil:
			byName[r.Operation] = r
			merged = append(merged, r)
		default:
			m.Retention, m.NoStore = max(m.Retention, r.Retention), m.NoStore || r.NoStore
			if r.OnDoubt == semel.Park {
				m.OnDoubt = semel.Park
			}
		}
	}
	return merged
}

// reconcileOperation asks about the parked requests of one operation, one after the other.
// Other operations do not wait for its answers, which may take their whole limit.
func (p *Proxy) reconcileOperation(ctx context.Context, op parkingOperation) {
	tick := time.NewTicker(p.Config.ReconcileEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		n, err := op.guard.Reconcile(ctx, op.operation, reconcileRound)
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			p.Log.Warn("could not reconcile all parked requests; the next round tries again", "operation", op.operation, "error", err)
		}
		if n > 0 {
			p.Log.Info("reconciled parked requests", "operation", op.operation, "resolved", n)
		}
	}
}
