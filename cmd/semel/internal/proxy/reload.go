package proxy

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/cmd/semel/internal/input"
	"github.com/semel-go/semel/cmd/semel/internal/secrets"
)

// reloadEvery is the pause between two looks at the file of secrets.
const reloadEvery = 5 * time.Second

// currentGuard is a semel.Runner whose Guard can be replaced. A call ends with the
// Guard with which it began.
type currentGuard struct {
	guard atomic.Pointer[semel.Guard]
	build func([]semel.Secret) (*semel.Guard, error)
}

// Run implements semel.Runner.
func (c *currentGuard) Run(ctx context.Context, call semel.Call, fn semel.Handler) (semel.Result, error) {
	return c.guard.Load().Run(ctx, call, fn)
}

func (c *currentGuard) use(list []semel.Secret) error {
	g, err := c.build(list)
	if err == nil {
		c.guard.Store(g)
	}
	return err
}

// newGuard makes a guard that reloadSecrets can replace.
func (p *Proxy) newGuard(build func([]semel.Secret) (*semel.Guard, error)) (*currentGuard, error) {
	c := &currentGuard{build: build}
	if err := c.use(p.Secrets); err != nil {
		return nil, err
	}
	p.guards = append(p.guards, c)
	return c, nil
}

// reloadSecrets reads the file of secrets again and again, until ctx ends, and puts other
// secrets into use. It logs an error once until the error is another one.
func (p *Proxy) reloadSecrets(ctx context.Context, every time.Duration) {
	path := p.Config.SecretFile
	inUse, used, failed := p.Secrets, secrets.Used{}, ""
	_ = used.Add(p.Secrets, path, "secret-file") // each ID is new
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		list, changed, err := secrets.Reread(path, "secret-file", inUse)
		if err == nil && !changed && failed == "" {
			continue
		}
		if err == nil {
			err = used.Add(list, path, "secret-file")
		}
		for _, g := range p.guards {
			if err == nil {
				err = g.use(list)
			}
		}
		if err != nil {
			if err.Error() != failed {
				p.Log.Error("the secrets have changed, but cannot be used; the last ones stay in use until this process stops, so that there is time; docs/how-to/rotate-secrets.md says what to do without a copy", "error", err)
			}
			failed = err.Error()
			continue
		}
		failed = ""
		p.Log.Info("read the secrets again", secrets.Order(list)...)
		secrets.WarnDropped(p.Log, inUse, list, path)
		inUse = list
		input.WarnMode(p.Log, path)
	}
}
